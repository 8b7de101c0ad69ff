"""People of known skill, made up to see what a rule of consensus does before anybody is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from unreel.annotation.campaign import AnnotationTask, ClipCopy
from unreel.annotation.judgements import VoteAnswer
from unreel.annotation.opinion import UnstoredOpinion
from unreel.core.identity import digest_id
from unreel.core.judgement import Label

_SIDES: Final = (Label.REAL, Label.GENERATED)


@dataclass(frozen=True, slots=True)
class SimulatedPerson:
    """Simulated person: probability of the right answer for real and for generated clips."""

    name: str
    on_real: float
    on_generated: float

    @property
    def accuracy(self) -> float:
        """Share right where both kinds are equally common."""
        return (self.on_real + self.on_generated) / 2

    def chance_generated(self, truth: Label) -> float:
        """Return the probability of the answer `generated` for a clip that is `truth`."""
        return self.on_generated if truth is Label.GENERATED else 1 - self.on_real


@dataclass(frozen=True, slots=True)
class SimulatedCampaign:
    """Simulated answers, and the true labels of the clips."""

    people: tuple[SimulatedPerson, ...]
    opinions: tuple[UnstoredOpinion, ...]
    truth: dict[str, Label]
    """By the task's id."""


def watcher(name: str, *, sees: float, trusts: float) -> SimulatedPerson:
    """Return a simulated annotator with discrimination `sees` and criterion `trusts`.

    Signal detection: people have similar discrimination and different criteria for calling a clip
    generated.
    """
    curve = NormalDist()
    return SimulatedPerson(name, curve.cdf(sees / 2 + trusts), curve.cdf(sees / 2 - trusts))


def simulate_votes(
    people: Sequence[SimulatedPerson], *, n_clips: int, overlap: int, seed: int
) -> SimulatedCampaign:
    """Votes on clips of which half are generated, each by `overlap` people drawn at random."""
    rng = np.random.default_rng(seed)
    opinions: list[UnstoredOpinion] = []
    truth: dict[str, Label] = {}
    for number in range(n_clips):
        task, label = _task(number), _SIDES[int(rng.integers(2))]
        truth[task.id] = label
        for place in rng.permutation(len(people))[:overlap]:
            person = people[place]
            said = _SIDES[int(rng.random() < person.chance_generated(label))]
            opinions.append(
                UnstoredOpinion(annotator=person.name, task=task, value=VoteAnswer(label=said))
            )
    return SimulatedCampaign(tuple(people), tuple(opinions), truth)


def _task(number: int) -> AnnotationTask:
    name = f"clip {number:06d}"
    copy = ClipCopy(
        clip=digest_id("simulated", name),
        location=f"{number}.mp4",
        rate=Fraction(25),
        n_frames=100,
        width=640,
        height=360,
    )
    return AnnotationTask(names=(name,), copies=(copy,))
