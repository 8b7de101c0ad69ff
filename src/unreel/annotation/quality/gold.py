"""Answers to tasks whose answer is known beforehand: injected traces and gold clips."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from unreel.annotation.campaign import AnnotationTask
from unreel.annotation.consensus.matching import cluster_marks
from unreel.annotation.consensus.rule import SAME_FAULT
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.opinion import AnnotatorOpinion, answer_of
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_mean

_TRUTH: Final = ""

Gold = TypeVar("Gold", bound=AnnotatorOpinion)


@dataclass(frozen=True, slots=True)
class KnownAnswerScore:
    """Correctness of one answer to a task with a known answer, from 0 to 1."""

    scene: str
    share: float
    submitted_us: int


def on_gold(opinions: Iterable[Gold]) -> list[Gold]:
    """The opinions on tasks whose answer is known."""
    return [opinion for opinion in opinions if opinion.task.known is not None]


def share_right(opinions: Sequence[AnnotatorOpinion], *, seed: int) -> Mapping[str, Measured]:
    """By annotator, the share of right answers to tasks with a known answer, drawing clips."""
    found: dict[str, Measured] = {}
    for who in sorted({opinion.annotator for opinion in opinions}):
        rights = rights_of([each for each in opinions if each.annotator == who])
        if not rights:
            found[who] = Unmeasured("judged no task with a known answer")
            continue
        shares = np.array([right.share for right in rights])
        scenes = [right.scene for right in rights]
        found[who] = bootstrap_mean(shares, seed=seed, clusters=scenes, bounds=(0.0, 1.0))
    return found


def rights_of(opinions: Iterable[AnnotatorOpinion]) -> list[KnownAnswerScore]:
    """Return the correctness of each answer to a task with a known answer, in order of arrival."""
    found = [
        KnownAnswerScore(
            opinion.task.group or opinion.task.id, how_right(opinion.task, opinion.value), at
        )
        for opinion in opinions
        if opinion.task.known is not None
        for at in (opinion.submitted_us,)
    ]
    return sorted(found, key=lambda right: right.submitted_us)


def how_right(task: AnnotationTask, said: AnyValue) -> float:
    """1 for the known answer and 0 for another one; where traces are known, the share that was found.

    A clip with known traces that is called generated without a mark of any of them is 0: who calls all
    clips generated finds nothing. Marks beyond the known traces cost nothing, as an injected clip may
    have faults of its own.
    """
    known = task.known
    if isinstance(known, TraceAnswer) and isinstance(said, TraceAnswer) and known.traces:
        both = {_TRUTH: known.traces, "said": said.traces}
        clusters = cluster_marks(both, task.copies[0], same_fault=SAME_FAULT)
        return sum(len(found) > 1 for found in clusters) / len(known.traces)
    return float(known is not None and answer_of(known) == answer_of(said))
