"""How much better several people together are than the best of them, over simulated people of known skill.

    python benchmarks/consensus.py --seeds 20

Prints the table of docs/consensus.md: 20 people, 1,000 clips, 3 votes each, two spammers of whom one says
`generated` of everything and the other guesses. *Suspicious and trusting*: all others see equally well,
and differ in how much they want to see before they call a clip generated. *Good and poor*: they see
unequally well, and the best one sees so well that three votes drawn at random cannot reach them. `--small` prints campaigns of 40 tasks that everybody judges: three
people who are right in 80 %, and the same with two more who share one answer that is right in 60 %.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from opinions import UnstoredOpinion
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorClipCopy,
    VoteAnswer,
)
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import (
    ConsensusMethod,
    ConsensusRule,
    SettledTask,
    get_categorical_answer,
)
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.estimate import Estimate, Measured
from unreel.core.judgement import Label
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.dawid_skene import dawid_skene

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
    copy = AnnotatorClipCopy(
        clip=compute_placeholder_clip_id("simulated", name),
        location=f"{number}.mp4",
        rate=Fraction(25),
        n_frames=100,
        width=640,
        height=360,
    )
    return AnnotationTask(names=(name,), copies=(copy,))


N_CLIPS, OVERLAP = 1_000, 3
SPAMMERS = (SimulatedPerson("always", 0.0, 1.0), SimulatedPerson("guesses", 0.5, 0.5))


def suspicious_and_trusting() -> tuple[SimulatedPerson, ...]:
    """Eighteen who see equally well, from the most suspicious to the most trusting, and two spammers."""
    trusts = np.linspace(-1.2, 1.2, 18)
    seeing = (watcher(f"p{at:02d}", sees=2.2, trusts=float(c)) for at, c in enumerate(trusts))
    return (*seeing, *SPAMMERS)


def good_and_poor() -> tuple[SimulatedPerson, ...]:
    """Eighteen who see unequally well and lean to neither side, and two spammers."""
    sees = np.linspace(0.5, 3.0, 18)
    seeing = (watcher(f"p{at:02d}", sees=float(s), trusts=0.0) for at, s in enumerate(sees))
    return (*seeing, *SPAMMERS)


CROWDS = {"suspicious and trusting": suspicious_and_trusting, "good and poor": good_and_poor}


@dataclass(frozen=True)
class Finding:
    """What one simulated campaign shows."""

    right: Mapping[str, np.ndarray]
    """For each clip whether it was settled rightly: by weighing, by counting, by the best person alone."""
    skills: float
    """Rank correlation of the recovered skills (each person's on real and on generated clips) with the true ones."""

    def measure(self, name: str) -> Measured:
        """Share right of a way of settling, or what weighing has more than one."""
        if name.startswith("over "):
            gain = self.right["weighed"] - self.right[name.removeprefix("over ")]
            return bootstrap_mean(gain, seed=1, bounds=(-1, 1))
        return bootstrap_mean(self.right[name], seed=1, bounds=(0, 1))


def run(people: Sequence[SimulatedPerson], seed: int) -> Finding:
    """One campaign, settled by counting and by weighing, beside the best person alone on as many such clips."""
    made = simulate_votes(people, n_clips=N_CLIPS, overlap=OVERLAP, seed=seed)
    expert = max(people, key=lambda person: person.accuracy)
    alone = simulate_votes([expert], n_clips=N_CLIPS, overlap=1, seed=seed + 10_000)
    return Finding(
        right={
            "weighed": _right(made, ConsensusMethod.DAWID_SKENE),
            "counted": _right(made, ConsensusMethod.MAJORITY),
            "best": _right(alone, ConsensusMethod.MAJORITY),
        },
        skills=_recovered(made),
    )


def _names(people: Sequence[SimulatedPerson]) -> list[str]:
    return [person.name for person in people]


def _right(made: SimulatedCampaign, method: ConsensusMethod) -> np.ndarray:
    """For each clip whether the settled label is the true one; one left open counts as wrong."""
    rule = ConsensusRule(quorum=1, min_overlap=1, method=method)
    found = compute_consensus(made.opinions, rule, interface=AnnotationInterface.REALITY).tasks
    return np.array(
        [
            float(
                isinstance(got := found[id_], SettledTask)
                and get_categorical_answer(got.value) == label.value
            )
            for id_, label in made.truth.items()
        ]
    )


def _recovered(made: SimulatedCampaign) -> float:
    places = {name: place for place, name in enumerate(_names(made.people))}
    tasks = {id_: place for place, id_ in enumerate(made.truth)}
    found = dawid_skene(
        [places[each.annotator] for each in made.opinions],
        [tasks[each.task.id] for each in made.opinions],
        [int(get_categorical_answer(each.value) == "generated") for each in made.opinions],
    )
    recovered = [*found.confusion[:, 0, 0], *found.confusion[:, 1, 1]]
    true = [p.on_real for p in made.people] + [p.on_generated for p in made.people]
    return rank_correlation(recovered, true)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's, ties at their average rank."""
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def _mean(findings: Sequence[Finding], name: str) -> str:
    values = [value for each in findings if isinstance(value := each.measure(name), Estimate)]
    value, low, high = np.mean([(each.value, each.low, each.high) for each in values], axis=0)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def small(n_campaigns: int) -> None:
    """Print certainty, accuracy and the gain over majorities in campaigns of 40 tasks, with 95 % intervals over campaigns."""
    print("| people | stated | true | weighed less counted | pair found | another pair |")
    for name, n_shared in (("three equal", 0), ("three and a pair", 2)):
        rows, pairs = [], []
        for seed in range(n_campaigns):
            honest = [SimulatedPerson(f"p{at}", 0.8, 0.8) for at in range(3)]
            voices = [*honest, SimulatedPerson("pair", 0.6, 0.6)][: 3 + bool(n_shared)]
            made = simulate_votes(voices, n_clips=40, overlap=len(voices), seed=seed)
            copies = [
                replace(o, annotator="pair 2") for o in made.opinions if o.annotator == "pair"
            ]
            made = replace(made, opinions=(*made.opinions, *copies))
            rule = ConsensusRule(quorum=1, min_overlap=1, method=ConsensusMethod.DAWID_SKENE)
            result = compute_consensus(made.opinions, rule, interface=AnnotationInterface.REALITY)
            right = _right(made, ConsensusMethod.DAWID_SKENE).mean()
            gain = right - _right(made, ConsensusMethod.MAJORITY).mean()
            stated = np.mean([one.p_right for one in result.settled.values()])
            rows.append((stated, right, gain))
            pairs.append([note for note in result.notes if "one voice" in note])
        cells = []
        for column in np.array(rows).T:
            shown = bootstrap_mean(column, seed=1, bounds=(-1, 1))
            assert isinstance(shown, Estimate)
            cells.append(f"{shown.value:.3f} [{shown.low:.3f}, {shown.high:.3f}]")
        own = [sum(note.startswith("pair and pair 2") for note in notes) for notes in pairs]
        other = sum(len(notes) > n for notes, n in zip(pairs, own, strict=True))
        print("|", " | ".join([name, *cells, f"{sum(own)}", f"{other}"]), "|", flush=True)


def main() -> None:
    """Print a line for each crowd, means over all seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--small", action="store_true", help="campaigns of 40 tasks")
    given = parser.parse_args()
    if given.small:
        small(given.seeds)
        return
    seeds = range(given.seeds)
    figures = ("weighed", "counted", "best", "over counted", "over best")
    print("| crowd |", " | ".join(figures), "| skills |")
    for crowd, people in CROWDS.items():
        found = [run(people(), seed) for seed in seeds]
        cells = [_mean(found, name) for name in figures]
        skills = [each.skills for each in found]
        cells.append(f"{np.mean(skills):.3f}, least {min(skills):.3f}")
        print("|", " | ".join([crowd, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
