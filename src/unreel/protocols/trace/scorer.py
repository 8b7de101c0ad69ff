"""Scorecard of the protocol `trace`."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Coverage, Estimate, Measured, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import TraceVerdict, Unparsed
from unreel.protocols.group_metrics import add_benchmark_part_metrics
from unreel.protocols.metric_estimates import (
    CALLS,
    AnswerCodes,
    LabelPredictions,
    WeightedMean,
    count_confusion_matrix,
    measure_label_f1,
    measure_mean_percent,
    measure_weighted_sum_percent,
)
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.protocols.trace.metrics import INSTRUMENT, METRICS, WHOLE_FRAME
from unreel.stats.clusters import ClusterIdBuilder, LabelNumbering
from unreel.stats.row_sample import Array, BoolArray, ClusterIds, IntArray

TraceRow = ScoredQuestion[TraceTruth, TraceVerdict]
UNIT_METRICS = ("accuracy", "explanation", "box-iou", "box-distance", "time-distance")
_ABSENT, _UNSCORED = -2.0, -1.0
"""Values for units to which the metric does not apply, and for units that no judge has scored."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricValueColumn:
    """Values of one metric, one for each scored unit (an annotation row or a clip)."""

    values: Array
    """Values from 0 to 1, or one of the two negative numbers that mean no value."""
    read: BoolArray

    @property
    def applies(self) -> BoolArray:
        """Return a mask of the units to which the metric applies."""
        applies: BoolArray = self.values != _ABSENT
        return applies

    @property
    def scored(self) -> BoolArray:
        """Return a mask of the units for which the metric has a value."""
        scored: BoolArray = self.values >= 0
        return scored

    def at(self, units: npt.NDArray[Any]) -> "MetricValueColumn":
        """Return the metric's values for the units with these indices, or in this mask."""
        return MetricValueColumn(self.values[units], self.read[units])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredUnitColumns:
    """Columns of scored units (annotation rows or clips): clusters, labels and metric values."""

    clip: IntArray
    ties: ClusterIds
    generated: BoolArray
    answer_codes: AnswerCodes
    points: Mapping[str, MetricValueColumn]

    def __len__(self) -> int:
        return len(self.clip)

    def at(self, units: npt.NDArray[Any]) -> "ScoredUnitColumns":
        """Return the columns of the units with these indices, or in this mask."""
        return replace(
            self,
            clip=self.clip[units],
            ties=self.ties.only(units),
            generated=self.generated[units],
            answer_codes=self.answer_codes[units],
            points={name: point.at(units) for name, point in self.points.items()},
        )

    @property
    def calls(self) -> LabelPredictions:
        """Return the true label and the answered label of each unit."""
        return LabelPredictions(self.ties, self.generated, self.answer_codes)

    def by_clip(self) -> "ScoredUnitColumns":
        """Return columns with one unit per clip: the means of its units, in the order of first occurrence."""
        first, number = _index_clips_in_order(self.clip)
        points = {
            name: _compute_clip_means(point, number, len(first))
            for name, point in self.points.items()
        }
        return replace(self.at(first), points=points)

    def best(self) -> "ScoredUnitColumns":
        """Return one unit per clip: the annotation row of highest box IoU, then smallest time distance."""
        first, number = _index_clips_in_order(self.clip)
        iou, late = (self.points[name] for name in ("box-iou", "time-distance"))
        overlap = np.where(iou.scored, iou.values, -1.0)
        early = np.where(late.scored, -late.values, -1.0)
        order = np.lexsort((np.arange(len(self)), -early, -overlap, number))
        starts = np.searchsorted(number[order], np.arange(len(first)))
        return self.at(order[starts])


def _index_clips_in_order(clip: IntArray) -> tuple[IntArray, IntArray]:
    """Return each clip's first unit and each unit's clip number, in order of first units."""
    _, first, number = np.unique(clip, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[number]


def _compute_clip_means(column: MetricValueColumn, number: IntArray, n: int) -> MetricValueColumn:
    applies, scored = column.applies, column.scored
    counts = np.bincount(number[scored], minlength=n)
    sums = np.bincount(number[scored], weights=column.values[scored], minlength=n)
    values = np.full(n, _ABSENT)
    values[number[applies]] = _UNSCORED
    values[counts > 0] = sums[counts > 0] / counts[counts > 0]
    read = np.zeros(n, np.bool_)
    units = np.flatnonzero(applies)[::-1]
    read[number[units]] = column.read[units]  # the first unit of a clip is decisive
    return MetricValueColumn(values, read)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TraceScorecardData:
    """Data of a `trace` scorecard: answered rows as columns, and counts of failures."""

    units: ScoredUnitColumns
    n_questions: int
    failures: Counter[str]
    """Number of clips without an answer, by reason."""
    unparsed: Counter[str]
    """Number of unreadable parts of answers, by `part: reason`."""
    answered: BoolArray
    """Mask of the units that are the first of their clip."""
    whole_frame: npt.NDArray[np.int8]
    """Whether each unit's answered box is the whole frame (1 or 0); -1 without a box."""


def build_trace_columns(rows: Sequence[TraceRow]) -> TraceScorecardData:
    """Build the columns of a `trace` scorecard from `rows` in one pass, and count failures.

    Parts of answers that could not be read are counted too. Raise `InvalidValueError` if rows of
    one clip have different answers or labels.
    """
    clips, tying = LabelNumbering(), ClusterIdBuilder()
    hashes, kinds = array("q"), array("i")
    known: dict[str | tuple[str, ...], int] = {}
    columns = _ScoredUnitColumnsBuilder()
    for row in rows:
        outcome, truth = row.outcome, row.truth
        clips.add(str(row.subject))
        hashes.append(hash((outcome, truth.label)))
        if isinstance(outcome, Failure):
            kinds.append(known.setdefault(outcome.reason.value, len(known)))
            continue
        kinds.append(known.setdefault(tuple(_iter_unparsed_parts(outcome)), len(known)))
        tying.add(*row.cluster)
        columns.add(row, outcome)
    clip = clips.numbers().astype(np.int64)
    first, number = _index_clips_in_order(clip) if len(clip) else (clip, clip)
    clip_hash = np.frombuffer(hashes, np.int64)
    if (differs := np.flatnonzero(clip_hash != clip_hash[first][number])).size:
        raise InvalidValueError(
            f"clip {rows[int(differs[0])].subject} has rows with different answers or labels. "
            "Score one answer per clip, and join its annotation rows to it"
        )
    kind = np.frombuffer(kinds, np.int32)
    counts = np.bincount(kind[first], minlength=len(known)).tolist()
    failures, unparsed = Counter[str](), Counter[str]()
    for name, n in zip(known, counts, strict=True):
        if isinstance(name, str):
            failures[name] += n
        else:
            unparsed.update(dict.fromkeys(name, n))
    failed = np.array([isinstance(name, str) for name in known], np.bool_)
    is_first = np.zeros(len(clip), np.bool_)
    is_first[first] = True
    answered = ~failed[kind] if len(kind) else np.zeros(0, np.bool_)
    return TraceScorecardData(
        units=columns.units(clip[answered], tying.ties()),
        n_questions=len(first),
        failures=+failures,
        unparsed=+unparsed,
        answered=is_first[answered],
        whole_frame=np.frombuffer(columns.whole_frame, np.int8),
    )


def _iter_unparsed_parts(verdict: TraceVerdict) -> Iterator[str]:
    """Yield `part: reason` for each unreadable part of a verdict; an answer REAL needs only a label."""
    parts: list[tuple[str, object]] = [("label", verdict.label)]
    if verdict.label is not Label.REAL:
        parts += [("box", verdict.box), ("start", verdict.start_us)]
        parts += [("explanation", verdict.explanation)]
    for name, part in parts:
        if isinstance(part, Unparsed):
            yield f"{name}: {part.reason.value}"


class _ScoredUnitColumnsBuilder:
    def __init__(self) -> None:
        self.whole_frame = array("b")
        self._generated, self._answer_codes = bytearray(), array("b")
        self._values = {name: array("d") for name in UNIT_METRICS}
        self._read = {name: bytearray() for name in UNIT_METRICS}

    def add(self, row: TraceRow, verdict: TraceVerdict) -> None:
        """Append the values of all metrics for an answered row."""
        truth = row.truth
        label = None if isinstance(verdict.label, Unparsed) else verdict.label
        box = None if isinstance(verdict.box, Unparsed) else verdict.box
        start_us = None if isinstance(verdict.start_us, Unparsed) else verdict.start_us
        explained = isinstance(verdict.explanation, str)
        self.whole_frame.append(-1 if box is None else box.area >= WHOLE_FRAME)
        self._generated.append(truth.label is Label.GENERATED)
        self._answer_codes.append(CALLS[label])
        self._point("accuracy", float(label is truth.label), read=label is not None)
        if label is Label.REAL:  # REAL discards the other parts; an unreadable label does not
            box, start_us, explained = None, None, False
        true_box, true_us = truth.box, truth.start_us
        iou = distance = late = _ABSENT
        if true_box is not None:
            iou = 0.0 if box is None else true_box.iou(box)
            distance = 1.0 if box is None else true_box.centre_distance(box)
        if true_us is not None:
            late = 1.0 if start_us is None else abs(start_us - true_us) / truth.duration_us
            late = min(1.0, late)
        self._point("box-iou", iou, read=box is not None and true_box is not None)
        self._point("box-distance", distance, read=box is not None and true_box is not None)
        self._point("time-distance", late, read=start_us is not None and true_us is not None)
        score = _ABSENT
        if truth.explanation:
            score = 0.0
            if explained:
                score = _UNSCORED if row.text_score is None else row.text_score
                if row.text_score is not None and not 0 <= score <= 1:
                    raise InvalidValueError(f"a judge's score must be 0 to 1, not {score}")
        self._point("explanation", score, read=explained and score != _ABSENT)

    def _point(self, metric: str, value: float, *, read: bool) -> None:
        self._values[metric].append(value)
        self._read[metric].append(read)

    def units(self, clip: IntArray, cluster_ids: ClusterIds) -> ScoredUnitColumns:
        """Return the columns of all added rows."""
        return ScoredUnitColumns(
            clip=clip,
            ties=cluster_ids,
            generated=np.frombuffer(self._generated, np.bool_),
            answer_codes=np.frombuffer(self._answer_codes, np.int8),
            points={
                name: MetricValueColumn(
                    np.frombuffer(self._values[name], np.float64),
                    np.frombuffer(self._read[name], np.bool_),
                )
                for name in UNIT_METRICS
            },
        )


_PLACED = ("explanation", "box-iou", "box-distance", "time-distance")
_OVERALL = ("accuracy", "explanation", "box-iou", "time-distance")


@add_benchmark_part_metrics(METRICS)
def compute_trace_scorecard(rows: Sequence[TraceRow], *, seed: int) -> Scorecard:
    """Compute all metrics of `trace`, in percent: per annotation row, per video, and per best trace.

    - A row counts if its question was answered. A failure is counted only in `failures`.
    - An unreadable label is wrong; for `f1` it does not count as an answer of `generated`. Real
      rows have only labels. `confusion` counts clips.
    - For a generated row, the box, the time and the explanation come from the answer, unless the
      answer is REAL. A missing or unreadable part has IoU 0, distance 100 or explanation 0.
      Distances are capped at 100. Each part is scored only for rows whose truth contains that part.
    - An explanation that no judge scored is excluded, and counted per row as
      `explanation: unscored`. If no explanation was scored, explanation and overall are unmeasured.
    - Metrics without a suffix weight all annotation rows equally. `-per-video` first takes the mean
      over the rows of a clip. `-best-of` compares an answer with the trace of its clip that matches
      best: by IoU, then by time.
    - `answered-real` and `whole-frame-boxes` count clips, among readable labels and readable boxes.

    The rows of one clip share one answer. For every confidence interval, rows of one clip and clips
    of one source are resampled together.
    """
    count = build_trace_columns(rows)
    units = count.units
    videos, best = units.by_clip(), units.best()
    explanation = units.points["explanation"]
    unscored = int(((explanation.values == _UNSCORED) & explanation.read).sum())
    means = _MeanEstimateCache(seed)
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=count.n_questions,
        n_answered=int(count.answered.sum()),
        metrics=(
            *_iter_label_metrics(units, "", means),
            *_iter_trace_metrics(units, "", means),
            *_iter_label_metrics(videos, "-per-video", means),
            *_iter_trace_metrics(videos, "-per-video", means),
            *_iter_trace_metrics(best, "-best-of", means),
            *_iter_answer_bias_metrics(count, means),
        ),
        failures=dict(sorted(count.failures.items())),
        unparsed={
            **dict(sorted(count.unparsed.items())),
            **({"explanation: unscored": unscored} if unscored else {}),
        },
        confusion=count_confusion_matrix(videos.calls),
    )


class _MeanEstimateCache:
    """Cache of mean estimates with their intervals, so that equal values are resampled only once."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: dict[str, list[tuple[Array, ClusterIds, Measured]]] = {}

    def percent(self, metric: str, values: Array, cluster_ids: ClusterIds) -> Measured:
        """Return the mean of `values` in percent with its confidence interval, from the cache if known."""
        known = self._known.setdefault(metric, [])
        for before, tied, estimate in known:
            same = (
                (before, values),
                (tied.scene, cluster_ids.scene),
                (tied.creator, cluster_ids.creator),
            )
            if all(np.array_equal(*arrays) for arrays in same):
                return estimate
        measured = measure_mean_percent(values, clips=cluster_ids, seed=self.seed)
        known.append((values, cluster_ids, measured))
        return measured


def _iter_label_metrics(
    units: ScoredUnitColumns, suffix: str, means: _MeanEstimateCache
) -> Iterator[Metric]:
    parts = units, units.at(units.generated), units.at(~units.generated)
    for name, part in zip(("accuracy", "fake-accuracy", "real-accuracy"), parts, strict=True):
        yield _build_trace_metric(name + suffix, "accuracy", part, means)
    coverage = Coverage(parsed=int((units.answer_codes != CALLS[None]).sum()), asked=len(units))
    value = measure_label_f1(units.calls, seed=means.seed)
    yield Metric(name="f1" + suffix, value=value, coverage=coverage)


def _iter_trace_metrics(
    units: ScoredUnitColumns, suffix: str, means: _MeanEstimateCache
) -> Iterator[Metric]:
    for metric in _PLACED:
        yield _build_trace_metric(metric + suffix, metric, units, means)
    yield _measure_overall("overall" + suffix, units, means)


def _build_trace_metric(
    name: str, metric: str, units: ScoredUnitColumns, means: _MeanEstimateCache
) -> Metric:
    point = units.points[metric]
    applies = point.applies
    coverage = Coverage(parsed=int((point.read & applies).sum()), asked=int(applies.sum()))
    return Metric(name=name, value=_measure_metric(metric, units, means), coverage=coverage)


def _measure_metric(metric: str, units: ScoredUnitColumns, means: _MeanEstimateCache) -> Measured:
    point = units.points[metric]
    if not point.applies.any():
        return Unmeasured("no answered row asks for it")
    read = point.applies & point.read
    if read.any() and not (read & point.scored).any():
        return Unmeasured("no judge has scored the explanations")
    scored = point.scored
    return means.percent(metric, point.values[scored], units.ties.only(scored))


def _measure_overall(name: str, units: ScoredUnitColumns, means: _MeanEstimateCache) -> Metric:
    complete = np.ones(len(units), np.bool_)
    for point in units.points.values():
        complete &= point.read | ~point.applies
    coverage = Coverage(parsed=int(complete.sum()), asked=len(units))
    for metric in _OVERALL:
        value = _measure_metric(metric, units, means)
        if not isinstance(value, Estimate):
            return Metric(name=name, value=Unmeasured(f"{metric}: {value.why}"), coverage=coverage)
    parts = []
    for metric in _OVERALL:
        point = units.points[metric]
        gain = 1 - point.values if metric == "time-distance" else point.values
        values = np.where(point.scored, gain, 0.0)
        parts.append(WeightedMean(metric, 1 / 4, values, point.scored))
    value = measure_weighted_sum_percent(parts, clips=units.ties, seed=means.seed)
    return Metric(name=name, value=value, coverage=coverage)


def _iter_answer_bias_metrics(
    data: TraceScorecardData, means: _MeanEstimateCache
) -> Iterator[Metric]:
    units, answered, whole_frame = data.units, data.answered, data.whole_frame
    n_read = int(answered.sum())
    is_real_answer = units.answer_codes == CALLS[Label.REAL]
    hits: tuple[tuple[str, BoolArray, BoolArray], ...] = (
        ("answered-real", is_real_answer, answered & (units.answer_codes != CALLS[None])),
        ("whole-frame-boxes", whole_frame == 1, answered & (whole_frame >= 0)),
    )
    for name, hit, counted in hits:
        value = means.percent(name, hit[counted].astype(np.float64), units.ties.only(counted))
        yield Metric(
            name=name, value=value, coverage=Coverage(parsed=int(counted.sum()), asked=n_read)
        )
