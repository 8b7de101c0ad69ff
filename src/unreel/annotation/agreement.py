"""Agreement between annotators, with confidence intervals.

Chance-corrected: Krippendorff's alpha and Fleiss' kappa over all people. Uncorrected: the
agreement of each two people on the same task, also by annotator or by trace category.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations

import numpy as np

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.consensus.outcome import (
    DISCARD,
    SAME_FAULT,
    AnnotatorOpinion,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.annotation.consensus.trace_consensus import (
    build_trace_tube,
    cluster_annotator_traces,
    mean_box_iou_on_shared_frames,
    temporal_iou,
    tube_iou,
)
from unreel.annotation.judgements import TraceAnswer
from unreel.core.estimate import Measured, Unmeasured
from unreel.core.trace import Category
from unreel.stats.agreement import fleiss_kappa, krippendorff_alpha
from unreel.stats.bootstrap import bootstrap_mean


class AgreementMetric(StrEnum):
    """Metrics of agreement between two people who judged the same task, from 0 to 1."""

    SAME_ANSWER = "same-answer"
    SAME_FAULTS = "same-faults"
    """Fraction of the marks in a clip whose fault both annotators marked (Dice); one of them missed the others."""
    TUBE_IOU = "tube-iou"
    BOX_IOU = "box-iou"
    TEMPORAL_IOU = "temporal-iou"
    SAME_KINDS = "same-kinds"
    """Categories that both annotators gave to a fault, divided by those that either gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorPairAgreement:
    """Value of one agreement metric for two people on one task, or on one fault of the task."""

    figure: AgreementMetric
    scene: str
    """Resampling cluster: the task's group, or the task id if it has no group."""
    pair: tuple[str, str]
    value: float
    kinds: frozenset[Category] = frozenset()
    """Categories that either annotator gave to the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignAgreement:
    """Agreement of the annotators of one campaign."""

    overall: Mapping[str, Measured]
    by_annotator: Mapping[str, Mapping[AgreementMetric, Measured]] = field(default_factory=dict)
    by_category: Mapping[Category, Mapping[AgreementMetric, Measured]] = field(default_factory=dict)


def measure_annotator_agreement(
    opinions: Sequence[AnnotatorOpinion], *, interface: AnnotationInterface, seed: int
) -> CampaignAgreement:
    """Compute the agreement between annotators: of all, of each annotator, and by trace category."""
    compared = list(iter_annotator_pair_agreements(opinions))
    means = compute_mean_agreement(compared, seed=seed)
    return CampaignAgreement(
        overall={
            **measure_overall_agreement(opinions, interface, seed=seed),
            **{metric.value: value for metric, value in means.items()},
        },
        by_annotator={
            who: compute_mean_agreement([p for p in compared if who in p.pair], seed=seed)
            for who in sorted({opinion.annotator for opinion in opinions})
        },
        by_category={
            kind: compute_mean_agreement([p for p in compared if kind in p.kinds], seed=seed)
            for kind in sorted({kind for p in compared for kind in p.kinds})
        },
    )


def compute_mean_agreement(
    compared: Sequence[AnnotatorPairAgreement], *, seed: int
) -> dict[AgreementMetric, Measured]:
    """Compute each metric's mean over annotator pairs, without absent metrics; resample tasks by scene."""
    means = {}
    for metric in AgreementMetric:
        rows = [p for p in compared if p.figure is metric]
        if rows:
            values = np.array([p.value for p in rows])
            scenes = [p.scene for p in rows]
            means[metric] = bootstrap_mean(values, seed=seed, clusters=scenes, bounds=(0.0, 1.0))
    return means


def measure_agreement_by_annotator(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> dict[str, Measured]:
    """Return, by annotator who shares a task, the fraction of the others' answers that equal theirs."""
    shared: dict[str, list[AnnotatorPairAgreement]] = {}
    for a, b in _iter_opinion_pairs(opinions):
        compared = _compare_opinions(a, b)
        for who in compared.pair:
            shared.setdefault(who, []).append(compared)
    return {
        who: compute_mean_agreement(shared[who], seed=seed)[AgreementMetric.SAME_ANSWER]
        for who in sorted(shared)
    }


def iter_annotator_pair_agreements(
    opinions: Sequence[AnnotatorOpinion], *, same_fault: float = SAME_FAULT
) -> Iterator[AnnotatorPairAgreement]:
    """Yield the value of each agreement metric for each two annotators and each task that both judged."""
    for a, b in _iter_opinion_pairs(opinions):
        compared = _compare_opinions(a, b)
        yield compared
        if not isinstance(a.value, TraceAnswer) or not isinstance(b.value, TraceAnswer):
            continue
        marked = {a.annotator: a.value.traces, b.annotator: b.value.traces}
        copy = a.task.copies[0]
        clusters = cluster_annotator_traces(marked, copy, same_fault=same_fault)
        if not clusters:
            continue
        shared = [(c[0].trace, c[1].trace) for c in clusters if len(c) > 1]
        share = 2 * len(shared) / sum(map(len, clusters))
        yield replace(compared, figure=AgreementMetric.SAME_FAULTS, value=share)
        for left, right in shared:
            kinds = left.categories | right.categories
            tubes = build_trace_tube(left, copy), build_trace_tube(right, copy)
            values = {
                AgreementMetric.TUBE_IOU: tube_iou(*tubes),
                AgreementMetric.BOX_IOU: mean_box_iou_on_shared_frames(*tubes),
                AgreementMetric.TEMPORAL_IOU: temporal_iou(left.span, right.span),
            }
            if kinds:
                same_kinds = len(left.categories & right.categories) / len(kinds)
                values[AgreementMetric.SAME_KINDS] = same_kinds
            for metric, value in values.items():
                if value is not None:
                    yield replace(compared, figure=metric, value=value, kinds=kinds)


def measure_unanimity(opinions: Sequence[AnnotatorOpinion], *, seed: int) -> Measured:
    """Compute the fraction of unanimous tasks among the tasks that two or more annotators judged."""
    groups = [those for those in group_opinions_by_task(opinions).values() if len(those) > 1]
    if not groups:
        return Unmeasured("no task was judged by two people")
    alike = [float(len({get_categorical_answer(o.value) for o in those}) == 1) for those in groups]
    scenes = [those[0].task.group or those[0].task.id for those in groups]
    return bootstrap_mean(alike, seed=seed, clusters=scenes, bounds=(0.0, 1.0))


def _iter_opinion_pairs(
    opinions: Sequence[AnnotatorOpinion],
) -> Iterator[tuple[AnnotatorOpinion, AnnotatorOpinion]]:
    for group in group_opinions_by_task(opinions).values():
        yield from combinations(group, 2)


def _compare_opinions(a: AnnotatorOpinion, b: AnnotatorOpinion) -> AnnotatorPairAgreement:
    return AnnotatorPairAgreement(
        figure=AgreementMetric.SAME_ANSWER,
        scene=a.task.group or a.task.id,
        pair=(a.annotator, b.annotator),
        value=float(get_categorical_answer(a.value) == get_categorical_answer(b.value)),
    )


def measure_overall_agreement(
    opinions: Sequence[AnnotatorOpinion], interface: AnnotationInterface, *, seed: int
) -> dict[str, Measured]:
    """Compute unanimity, Krippendorff's alpha and Fleiss' kappa over the answers of all annotators."""
    answers = _build_answer_table(opinions)
    metrics = {
        "unanimity": measure_unanimity(opinions, seed=seed),
        "alpha-nominal": krippendorff_alpha(answers, scale="nominal", seed=seed),
        "fleiss-kappa": fleiss_kappa(answers, seed=seed),
    }
    if interface is AnnotationInterface.REALISM:
        scored = _build_answer_table(
            [o for o in opinions if get_categorical_answer(o.value) != DISCARD]
        )
        metrics["alpha-ordinal"] = krippendorff_alpha(scored, scale="ordinal", seed=seed)
    return metrics


def _build_answer_table(opinions: Sequence[AnnotatorOpinion]) -> np.ndarray:
    """Return answers as numbers `[row, task]`, NaN if empty; a row mixes annotators, in any order."""
    labels = sorted({get_categorical_answer(o.value) for o in opinions})
    number = {label: float(i) for i, label in enumerate(labels)}
    groups = group_opinions_by_task(opinions).values()
    table = np.full((max(map(len, groups), default=0), len(groups)), np.nan)
    for column, those in enumerate(groups):
        table[: len(those), column] = [number[get_categorical_answer(o.value)] for o in those]
    return table
