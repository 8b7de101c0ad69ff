"""People of known skill, made up to see what a rule of consensus does before anybody is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from unreel.annotate.campaign import Copy, Task
from unreel.annotate.judgements import Voted
from unreel.annotate.opinion import Said
from unreel.core.identity import digest_id
from unreel.core.judgement import Label

_SIDES: Final = (Label.REAL, Label.GENERATED)


@dataclass(frozen=True, slots=True)
class Person:
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
class Simulated:
    """Simulated answers, and the true labels of the clips."""

    people: tuple[Person, ...]
    opinions: tuple[Said, ...]
    truth: dict[str, Label]
    """By the task's id."""


def watcher(name: str, *, sees: float, trusts: float) -> Person:
    """Somebody who sees a difference of `sees` spreads, and says `real` up to `trusts` spreads beyond its middle.

    Signal detection: people see about equally well and differ in how much they want to see before they
    call a clip generated.
    """
    curve = NormalDist()
    return Person(name, curve.cdf(sees / 2 + trusts), curve.cdf(sees / 2 - trusts))


def simulate_votes(people: Sequence[Person], *, n_clips: int, overlap: int, seed: int) -> Simulated:
    """Votes on clips of which half are generated, each by `overlap` people drawn at random."""
    rng = np.random.default_rng(seed)
    opinions: list[Said] = []
    truth: dict[str, Label] = {}
    for number in range(n_clips):
        task, label = _task(number), _SIDES[int(rng.integers(2))]
        truth[task.id] = label
        for place in rng.permutation(len(people))[:overlap]:
            person = people[place]
            said = _SIDES[int(rng.random() < person.chance_generated(label))]
            opinions.append(Said(annotator=person.name, task=task, value=Voted(label=said)))
    return Simulated(tuple(people), tuple(opinions), truth)


def _task(number: int) -> Task:
    name = f"clip {number:06d}"
    copy = Copy(
        clip=digest_id("simulated", name),
        location=f"{number}.mp4",
        rate=Fraction(25),
        n_frames=100,
        width=640,
        height=360,
    )
    return Task(names=(name,), copies=(copy,))
