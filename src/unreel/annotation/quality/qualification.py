"""Qualification of annotators: accuracy on clips with known answers, and unanimity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from unreel.annotation.agreement import measure_overall_agreement
from unreel.annotation.campaign import AnnotationInterface, AnnotationTask
from unreel.annotation.consensus.outcome import SAME_FAULT
from unreel.annotation.consensus.trace_matching import cluster_annotator_traces
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.opinion import (
    AnnotatorOpinion,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_mean

_TRUTH: Final = ""

Gold = TypeVar("Gold", bound=AnnotatorOpinion)


@dataclass(frozen=True, slots=True)
class KnownAnswerScore:
    """Correctness, from 0 to 1, of one answer to a task whose right answer is known."""

    scene: str
    share: float
    submitted_us: int


def select_gold_opinions(opinions: Iterable[Gold]) -> list[Gold]:
    """Return the opinions on tasks whose right answer is known."""
    return [opinion for opinion in opinions if opinion.task.known is not None]


def measure_gold_accuracy(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, Measured]:
    """Compute each annotator's accuracy on known tasks; intervals resample clips, grouped by scene."""
    accuracies: dict[str, Measured] = {}
    for who in sorted({opinion.annotator for opinion in opinions}):
        rights = score_answers_to_known_tasks([o for o in opinions if o.annotator == who])
        if not rights:
            accuracies[who] = Unmeasured("judged no task with a known answer")
            continue
        shares = np.array([right.share for right in rights])
        scenes = [right.scene for right in rights]
        accuracies[who] = bootstrap_mean(shares, seed=seed, clusters=scenes, bounds=(0.0, 1.0))
    return accuracies


def score_answers_to_known_tasks(opinions: Iterable[AnnotatorOpinion]) -> list[KnownAnswerScore]:
    """Return the correctness of each answer to a task whose right answer is known, oldest first."""
    scores = [
        KnownAnswerScore(
            opinion.task.group or opinion.task.id,
            score_against_known_answer(opinion.task, opinion.value),
            at,
        )
        for opinion in opinions
        if opinion.task.known is not None
        for at in (opinion.submitted_us,)
    ]
    return sorted(scores, key=lambda right: right.submitted_us)


def score_against_known_answer(task: AnnotationTask, answer: AnyValue) -> float:
    """Return 1 if `answer` is the known answer of the task, else 0.

    For known traces, return the fraction of them that the annotator marked: an answer `generated`
    that marks none of them scores 0. Marks of other faults are not penalised, because an injected
    clip may have other faults.
    """
    known = task.known
    if isinstance(known, TraceAnswer) and isinstance(answer, TraceAnswer) and known.traces:
        by_author = {_TRUTH: known.traces, "said": answer.traces}
        clusters = cluster_annotator_traces(by_author, task.copies[0], same_fault=SAME_FAULT)
        return sum(len(cluster) > 1 for cluster in clusters) / len(known.traces)
    return float(
        known is not None and get_categorical_answer(known) == get_categorical_answer(answer)
    )


UNANIMOUS: Final = 0.9
"""Minimum fraction of unanimous clips, as in VideoRealBench, where three annotators must agree."""
UNANIMOUS_CLIPS: Final = 100
"""Minimum number of clips for that fraction, as in VideoRealBench."""
PASSING: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class QualificationResult:
    """Annotators who qualify by their accuracy on known clips, and the agreement of all annotators."""

    right: Mapping[str, Measured]
    """Accuracy of each annotator on clips with known answers."""
    qualified: tuple[str, ...]
    """Annotators whose accuracy is at least the passing threshold."""
    unanimity: Measured
    n_shared: int
    """Number of clips that all annotators judged."""
    unanimous: bool
    """Whether all annotators agree on at least 90 % of at least 100 clips that all of them judged."""
    beyond_chance: Mapping[str, Measured]
    """Alpha and kappa; unanimity alone is high if one answer is common."""


def qualify_annotators(
    opinions: Sequence[AnnotatorOpinion],
    *,
    interface: AnnotationInterface,
    passing: float = PASSING,
    seed: int,
) -> QualificationResult:
    """Select annotators with known-clip accuracy of `passing` or more; also compute agreement on shared clips."""
    right = measure_gold_accuracy(select_gold_opinions(opinions), seed=seed)
    people = {opinion.annotator for opinion in opinions}
    shared = [
        opinion
        for those in group_opinions_by_task(opinions).values()
        if {o.annotator for o in those} == people
        for opinion in those
    ]
    agreed = measure_overall_agreement(shared, interface, seed=seed)
    unanimity = agreed["unanimity"]
    n_shared = len(shared) // max(1, len(people))
    return QualificationResult(
        right=right,
        qualified=tuple(
            who for who, m in right.items() if isinstance(m, Estimate) and m.value >= passing
        ),
        unanimity=unanimity,
        n_shared=n_shared,
        unanimous=isinstance(unanimity, Estimate)
        and unanimity.value >= UNANIMOUS
        and n_shared >= UNANIMOUS_CLIPS,
        beyond_chance={name: m for name, m in agreed.items() if "alpha" in name or "kappa" in name},
    )
