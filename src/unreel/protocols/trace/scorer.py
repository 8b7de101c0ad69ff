"""Scorecard of the protocol `trace`."""

from collections.abc import Iterator, Sequence

import numpy as np

from unreel.core.estimate import Coverage, Estimate, Measured, Metric, Scorecard, Unmeasured
from unreel.core.judgement import Label
from unreel.protocols.group_metrics import add_benchmark_part_metrics
from unreel.protocols.metric_estimates import (
    CALLS,
    WeightedMean,
    count_confusion_matrix,
    measure_label_f1,
    measure_mean_percent,
    measure_weighted_sum_percent,
)
from unreel.protocols.trace.metrics import FIGURES, INSTRUMENT
from unreel.protocols.trace.scorecard_columns import (
    ScoredUnitColumns,
    TraceRow,
    TraceScorecardData,
    build_trace_columns,
)
from unreel.stats.row_sample import Array, BoolArray, ClusterIds

_PLACED = ("explanation", "box-iou", "box-distance", "time-distance")
_OVERALL = ("accuracy", "explanation", "box-iou", "time-distance")


@add_benchmark_part_metrics(FIGURES)
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
    unscored = int(units.points["explanation"].unscored.sum())
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
    sides = units, units.at(units.generated), units.at(~units.generated)
    for name, part in zip(("accuracy", "fake-accuracy", "real-accuracy"), sides, strict=True):
        yield _build_trace_metric(name + suffix, "accuracy", part, means)
    coverage = Coverage(parsed=int((units.said != CALLS[None]).sum()), asked=len(units))
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
    applies = point.asked
    coverage = Coverage(parsed=int((point.read & applies).sum()), asked=int(applies.sum()))
    return Metric(name=name, value=_measure_metric(metric, units, means), coverage=coverage)


def _measure_metric(metric: str, units: ScoredUnitColumns, means: _MeanEstimateCache) -> Measured:
    point = units.points[metric]
    if not point.asked.any():
        return Unmeasured("no answered row asks for it")
    if point.lacks_judge:
        return Unmeasured("no judge has scored the explanations")
    scored = point.scored
    return means.percent(metric, point.values[scored], units.ties.only(scored))


def _measure_overall(name: str, units: ScoredUnitColumns, means: _MeanEstimateCache) -> Metric:
    complete = np.ones(len(units), np.bool_)
    for point in units.points.values():
        complete &= point.read | ~point.asked
    coverage = Coverage(parsed=int(complete.sum()), asked=len(units))
    for metric in _OVERALL:
        value = _measure_metric(metric, units, means)
        if not isinstance(value, Estimate):
            return Metric(name=name, value=Unmeasured(f"{metric}: {value.why}"), coverage=coverage)
    parts = [_build_overall_part(metric, units) for metric in _OVERALL]
    value = measure_weighted_sum_percent(parts, clips=units.ties, seed=means.seed)
    return Metric(name=name, value=value, coverage=coverage)


def _build_overall_part(metric: str, units: ScoredUnitColumns) -> WeightedMean:
    point = units.points[metric]
    gain = 1 - point.values if metric == "time-distance" else point.values
    return WeightedMean(metric, 1 / 4, np.where(point.scored, gain, 0.0), point.scored)


def _iter_answer_bias_metrics(
    data: TraceScorecardData, means: _MeanEstimateCache
) -> Iterator[Metric]:
    units, answered, whole_frame = data.units, data.answered, data.whole_frame
    n_read = int(answered.sum())
    said_real = units.said == CALLS[Label.REAL]
    hits: tuple[tuple[str, BoolArray, BoolArray], ...] = (
        ("answered-real", said_real, answered & (units.said != CALLS[None])),
        ("whole-frame-boxes", whole_frame == 1, answered & (whole_frame >= 0)),
    )
    for name, hit, counted in hits:
        value = means.percent(name, hit[counted].astype(np.float64), units.ties.only(counted))
        yield Metric(
            name=name, value=value, coverage=Coverage(parsed=int(counted.sum()), asked=n_read)
        )
