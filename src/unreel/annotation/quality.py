"""Agreement between annotators, and the quality of each: accuracy on known answers, speed, drift and prefill bias."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from typing import Protocol

import numpy as np

from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationTask,
    AnnotatorJudgement,
    AnyValue,
    PrefillStudyArm,
    TraceAnswer,
)
from unreel.annotation.consensus.consensus import (
    build_trace_tube,
    cluster_annotator_traces,
    mean_box_iou_on_shared_frames,
    tube_iou,
)
from unreel.annotation.consensus.outcome import (
    DISCARD,
    SAME_FAULT,
    AnnotatorOpinion,
    get_categorical_answer,
    group_opinions_by_task,
)
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.trace import Category
from unreel.stats.agreement import fleiss_kappa, krippendorff_alpha
from unreel.stats.bootstrap import StatisticLimits, bootstrap, bootstrap_mean
from unreel.stats.row_sample import Array, RowSample, weighted_sum


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

    metric: AgreementMetric
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
        rows = [p for p in compared if p.metric is metric]
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
        yield replace(compared, metric=AgreementMetric.SAME_FAULTS, value=share)
        for left, right in shared:
            kinds = left.categories | right.categories
            tubes = build_trace_tube(left, copy), build_trace_tube(right, copy)
            values = {
                AgreementMetric.TUBE_IOU: tube_iou(*tubes),
                AgreementMetric.BOX_IOU: mean_box_iou_on_shared_frames(*tubes),
                AgreementMetric.TEMPORAL_IOU: left.span.iou(right.span),
            }
            if kinds:
                same_kinds = len(left.categories & right.categories) / len(kinds)
                values[AgreementMetric.SAME_KINDS] = same_kinds
            for metric, value in values.items():
                if value is not None:
                    yield replace(compared, metric=metric, value=value, kinds=kinds)


def measure_unanimity(opinions: Sequence[AnnotatorOpinion], *, seed: int) -> Measured:
    """Compute the fraction of unanimous tasks among the tasks that two or more annotators judged."""
    groups = [those for those in group_opinions_by_task(opinions).values() if len(those) > 1]
    if not groups:
        return Unmeasured("no task was judged by two people")
    is_unanimous = [
        float(len({get_categorical_answer(o.value) for o in those}) == 1) for those in groups
    ]
    scenes = [those[0].task.group or those[0].task.id for those in groups]
    return bootstrap_mean(is_unanimous, seed=seed, clusters=scenes, bounds=(0.0, 1.0))


def _iter_opinion_pairs(
    opinions: Sequence[AnnotatorOpinion],
) -> Iterator[tuple[AnnotatorOpinion, AnnotatorOpinion]]:
    for group in group_opinions_by_task(opinions).values():
        yield from combinations(group, 2)


def _compare_opinions(a: AnnotatorOpinion, b: AnnotatorOpinion) -> AnnotatorPairAgreement:
    return AnnotatorPairAgreement(
        metric=AgreementMetric.SAME_ANSWER,
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


_TRUTH = ""


def measure_gold_accuracy(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, Measured]:
    """Compute each annotator's accuracy on known tasks; intervals resample clips, grouped by scene."""
    accuracies: dict[str, Measured] = {}
    for who in sorted({opinion.annotator for opinion in opinions}):
        known = [o for o in opinions if o.annotator == who and o.task.known is not None]
        if not known:
            accuracies[who] = Unmeasured("judged no task with a known answer")
            continue
        known.sort(key=lambda opinion: opinion.submitted_us)
        proportions = np.array([score_against_known_answer(o.task, o.value) for o in known])
        scenes = [o.task.group or o.task.id for o in known]
        accuracies[who] = bootstrap_mean(proportions, seed=seed, clusters=scenes, bounds=(0.0, 1.0))
    return accuracies


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


UNANIMOUS = 0.9
"""Minimum fraction of unanimous clips, as in VideoRealBench, where three annotators must agree."""
UNANIMOUS_CLIPS = 100
"""Minimum number of clips for that fraction, as in VideoRealBench."""
PASSING = 0.8


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
    gold = [opinion for opinion in opinions if opinion.task.known is not None]
    right = measure_gold_accuracy(gold, seed=seed)
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


FAR = 3.5
"""Threshold of unusual times, in robust standard deviations of the logarithm (Iglewicz and Hoaglin 1993)."""
_NORMAL = 1.4826
"""Ratio of standard deviation and median absolute deviation of a normal distribution."""
_MIN_SPREAD = 0.1
"""Minimum standard deviation of the logarithm, so that nearly equal times give no outliers."""
MIN_TIMED_TASKS = 10


class TimedJudgement(Protocol):
    """Protocol of a judgement with the time that the annotator spent on the task."""

    @property
    def annotator(self) -> str:
        """Return the name of the annotator who judged the task."""
        ...

    @property
    def task(self) -> AnnotationTask: ...

    @property
    def lead_us(self) -> int | None:
        """Return the time that the annotator spent on the task, in microseconds; `None` if unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorSpeed:
    """Median time per task of one annotator, and the tasks answered unusually fast or slowly."""

    n: int
    median_us: int
    fast: tuple[str, ...]
    """Identifiers of tasks answered much faster than the annotator's other tasks."""
    slow: tuple[str, ...]
    unseen: tuple[str, ...]
    """Identifiers of tasks answered in less than half of the clip's duration."""


def measure_annotator_speeds(judgements: Sequence[TimedJudgement]) -> Mapping[str, AnnotatorSpeed]:
    """Return the timed annotators' time per task; unusual tasks are listed from `MIN_TIMED_TASKS` tasks on."""
    times: dict[str, list[tuple[str, int, int]]] = {}
    for j in judgements:
        if j.lead_us is not None and j.lead_us > 0:
            lasts = sum(copy.duration_us for copy in j.task.copies)
            times.setdefault(j.annotator, []).append((j.task.id, j.lead_us, lasts))
    speeds = {}
    for who, rows in sorted(times.items()):
        rows.sort()
        logs = np.log([lead_us for _, lead_us, _ in rows])
        middle = float(np.median(logs))
        spread = max(_MIN_SPREAD, _NORMAL * float(np.median(np.abs(logs - middle))))
        z = (logs - middle) / spread if len(rows) >= MIN_TIMED_TASKS else np.zeros(len(rows))
        speeds[who] = AnnotatorSpeed(
            n=len(rows),
            median_us=int(np.median([lead_us for _, lead_us, _ in rows])),
            fast=tuple(id_ for (id_, _, _), score in zip(rows, z, strict=True) if score < -FAR),
            slow=tuple(id_ for (id_, _, _), score in zip(rows, z, strict=True) if score > FAR),
            unseen=tuple(id_ for id_, lead_us, lasts_us in rows if 2 * lead_us < lasts_us),
        )
    return speeds


ALARM = 0.01
"""Significance level: probability of a false alarm for each of the two statistics."""
MIN_DRIFT_ANSWERS = 20
"""Minimum number of answers for a result."""
_SHUFFLES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDrift:
    """Largest difference between an annotator's earlier and later answers, with its p-value."""

    what: str
    p_chance: float
    """P-value: fraction of random orders of the same answers with a change at least as large."""
    since: int
    """Number of answers before the largest change."""
    n: int
    before: float
    after: float

    @property
    def alarm(self) -> bool:
        """Return whether the change of the annotator's answers is significant at the level `ALARM`."""
        return self.p_chance <= ALARM


def measure_answer_drift(
    opinions: Sequence[AnnotatorOpinion], *, seed: int
) -> Mapping[str, tuple[AnswerDrift, ...]]:
    """Return, by annotator, the change over time of the accuracy on known clips and of the answers.

    Answers are summarised by the fraction of the annotator's most common answer, or the mean score.
    A series of fewer than `MIN_DRIFT_ANSWERS` values has no result.
    """
    by_person: dict[str, list[AnnotatorOpinion]] = {}
    for opinion in sorted(opinions, key=lambda o: (o.submitted_us, o.task.id)):
        by_person.setdefault(opinion.annotator, []).append(opinion)
    drifts = {}
    for who, own in sorted(by_person.items()):
        known = [o for o in own if o.task.known is not None]
        rights = np.array([score_against_known_answer(o.task, o.value) for o in known])
        words = [get_categorical_answer(o.value) for o in own]
        if all(word.isdigit() for word in words):
            answers = np.array([float(word) for word in words])
        else:
            common = max(sorted(set(words)), key=words.count)
            answers = np.array([float(word == common) for word in words])
        drifts[who] = tuple(
            _measure_drift(what, values, seed=seed)
            for what, values in (("right", rights), ("answers", answers))
            if len(values) >= MIN_DRIFT_ANSWERS
        )
    return drifts


def _measure_drift(what: str, values: Array, *, seed: int) -> AnswerDrift:
    """Find the largest change between earlier and later values, and its p-value by random reordering."""
    rng = np.random.default_rng(seed)
    heights, since = _compute_largest_shifts(values[np.newaxis])
    shuffled = rng.permuted(np.tile(values, (_SHUFFLES, 1)), axis=1)
    chance, _ = _compute_largest_shifts(shuffled)
    # The observed order is one of the possible orders.
    p_chance = (1 + int((chance >= heights[0] - 1e-12).sum())) / (1 + _SHUFFLES)
    at = int(since[0])
    return AnswerDrift(
        what=what,
        p_chance=p_chance,
        since=at,
        n=len(values),
        before=float(values[:at].mean()),
        after=float(values[at:].mean()),
    )


def _compute_largest_shifts(orders: Array) -> tuple[Array, Array]:
    """Return per row the largest mean shift in (scaled) standard errors, and its position."""
    n = orders.shape[1]
    margin = max(5, n // 20)
    before = np.arange(margin, n - margin + 1)
    sums = np.cumsum(orders, axis=1)
    total = sums[:, -1:]
    mean_before = sums[:, before - 1] / before
    mean_after = (total - sums[:, before - 1]) / (n - before)
    heights = np.abs(mean_before - mean_after) * np.sqrt(before * (n - before) / n)
    best = heights.argmax(axis=1)
    return heights.max(axis=1), before[best]


def measure_prefill_bias(judgements: Sequence[AnnotatorJudgement], *, seed: int) -> Measured:
    """Compute how much prefilled annotations change answers: agreement with them in both study arms.

    The result is the agreement of the prefilled arm minus that of the blind arm. The interval
    resamples scenes. Agreement is 1 for the same answer and 0 for another; for traces it is the
    fraction of the prefilled traces that the annotator marked too.
    """
    rows: list[tuple[float, float]] = []
    scenes = []
    for j in judgements:
        task, prefill = j.task, j.task.prefill
        if prefill is None or j.arm is PrefillStudyArm.PLAIN:
            continue
        has_no_trace = isinstance(prefill, TraceAnswer) and not prefill.traces
        if has_no_trace and isinstance(j.value, TraceAnswer):
            agreement = float(not j.value.traces)
        else:
            agreement = score_against_known_answer(replace(task, known=prefill), j.value)
        rows.append((agreement, float(j.arm is PrefillStudyArm.PREFILLED)))
        scenes.append(task.group or task.id)
    if len({arm for _, arm in rows}) < 2:  # noqa: PLR2004  two arms
        return Unmeasured("there were no prefilled annotations with a blind arm")
    follows, prefilled = np.array(rows).T
    sample = RowSample.of((follows, prefilled), scenes)
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)

    def compute_difference(weights: Array) -> Array:
        means: list[Array] = []
        for arm in (sample.columns[1], 1 - sample.columns[1]):
            n = weighted_sum(weights, arm)
            total = weighted_sum(weights, sample.columns[0] * arm)
            means.append(np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0))
        return means[0] - means[1]

    return bootstrap(compute_difference, sample, seed=seed, limits=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuality:
    """Quality metrics of one annotator: accuracy, agreement, speed and drift."""

    n_judged: int
    right: Measured
    """Accuracy on clips with known answers."""
    qualified: bool | None
    """Whether the accuracy reaches the passing threshold; `None` without clips with known answers."""
    same_answer: Measured
    pace: AnnotatorSpeed | None
    drift: tuple[AnswerDrift, ...]

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return the annotator's quality problems as short texts."""
        texts = [f"{drift.what} changed after {drift.since}" for drift in self.drift if drift.alarm]
        if self.pace and self.pace.unseen:
            texts.append(f"{len(self.pace.unseen)} faster than half of the clip")
        if self.pace and (self.pace.fast or self.pace.slow):
            texts.append(f"{len(self.pace.fast)} very fast, {len(self.pace.slow)} very slow")
        return tuple(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignQuality:
    """Quality metrics of all annotators of one campaign."""

    people: Mapping[str, PersonQuality]
    agreement: CampaignAgreement
    qualification: QualificationResult
    pull: Measured
    """Bias by prefilled annotations: change of the agreement with them."""


def measure_annotator_quality(
    judgements: Sequence[AnnotatorJudgement],
    *,
    interface: AnnotationInterface,
    passing: float = PASSING,
    seed: int,
) -> CampaignQuality:
    """Compute all quality metrics of each annotator and of all annotators together."""
    agreement = measure_annotator_agreement(judgements, interface=interface, seed=seed)
    qualification = qualify_annotators(judgements, interface=interface, passing=passing, seed=seed)
    drift = measure_answer_drift(judgements, seed=seed)
    speeds = measure_annotator_speeds(judgements)
    alone = Unmeasured("shares no task with another annotator")
    people = {}
    for who in sorted({j.annotator for j in judgements}):
        right = qualification.right.get(who, Unmeasured("judged no task with a known answer"))
        people[who] = PersonQuality(
            n_judged=sum(j.annotator == who for j in judgements),
            right=right,
            qualified=None if isinstance(right, Unmeasured) else who in qualification.qualified,
            same_answer=agreement.by_annotator[who].get(AgreementMetric.SAME_ANSWER, alone),
            pace=speeds.get(who),
            drift=drift[who],
        )
    pull = measure_prefill_bias(judgements, seed=seed)
    return CampaignQuality(
        people=people, agreement=agreement, qualification=qualification, pull=pull
    )
