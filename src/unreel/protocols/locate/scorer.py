"""Scorecard of the protocol `locate`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unreel.core.estimate import Coverage, Measured, Metric, RowCluster, Scorecard, Unmeasured
from unreel.core.judgement import Label
from unreel.protocols.group_metrics import add_benchmark_part_metrics
from unreel.protocols.locate.metrics import (
    ACTIVITYNET,
    AVDEEPFAKE1M,
    INSTRUMENT,
    METRICS,
    RECALLS,
    THRESHOLDS,
    SegmentMatchingConvention,
)
from unreel.protocols.locate.segment_comparison import (
    AllSegmentComparisons,
    ClipSegmentComparison,
    LocateRow,
    compare_all_clip_segments,
    compute_recall_activitynet,
    compute_recall_avdeepfake1m,
    count_ranked_segments_activitynet,
    match_segments_activitynet,
    match_segments_avdeepfake1m,
)
from unreel.protocols.metric_estimates import (
    LabelPredictions,
    convert_to_percent,
    count_confusion_matrix,
    measure_mean_percent,
)
from unreel.stats.bootstrap import StatisticLimits, bootstrap, bootstrap_mean
from unreel.stats.jackknife_values import get_jackknife_groups
from unreel.stats.proportion import estimate_event_rate
from unreel.stats.resampling import Statistic
from unreel.stats.row_sample import (
    Array,
    BoolArray,
    ClusterIds,
    Clusters,
    RowSample,
    find_run_starts,
    weighted_sum,
)


@dataclass(frozen=True, slots=True, eq=False)
class AveragePrecisionSample:
    """Answered and annotated segments of all clips, prepared for the bootstrap of average precision."""

    sample: RowSample
    loses_first: bool
    """Whether the curve lacks its part before the first segment, as in avdeepfake1m."""

    @classmethod
    def of(
        cls,
        ranks: Array,
        right: BoolArray,
        clusters: Clusters,
        *,
        n_marked: int,
        loses_first: bool = False,
    ) -> "AveragePrecisionSample":
        """Build the sample from the answered segments and `n_marked` annotated segments.

        Equal `ranks` enter the curve together. `right` has a column for each threshold. `clusters`
        are those of the answered segments, then those of the annotated ones.
        """
        is_marked = np.repeat([False, True], [len(ranks), n_marked])
        keys = np.concatenate([ranks, np.zeros(n_marked)])
        flags = np.concatenate([right, np.zeros((n_marked, right.shape[1]), np.bool_)])
        return cls(RowSample.of((is_marked, keys, *flags.T), clusters), loses_first)

    def measure(self, thresholds: Sequence[int], *, seed: int) -> Measured:
        """Return the average precision, averaged over the thresholds with these indices, in percent."""
        limits = StatisticLimits(0.0, 1.0, self.sample.n_clusters)
        statistic = self.build_statistic(thresholds)
        return convert_to_percent(bootstrap(statistic, self.sample, seed=seed, limits=limits))

    def build_statistic(self, thresholds: Sequence[int]) -> Statistic:
        """Return a function from segment weights to average precision (0 to 1), mean over these thresholds."""
        parts = [self._build_part(index) for index in thresholds]

        def mean(weights: Array) -> Array:
            total: Array = np.mean([part(weights) for part in parts], axis=0)
            return total

        return mean

    def _build_part(self, threshold: int) -> Statistic:
        is_marked, keys, *flags = self.sample.columns
        n_answered = int((is_marked == 0).sum())
        ends = np.flatnonzero(np.append(find_run_starts(keys)[1:n_answered], True))
        right = flags[threshold][:n_answered]

        def compute(weights: Array) -> Array:
            n_marked = weights[:, n_answered:].sum(axis=1)
            n_marked = np.where(n_marked == 0, np.nan, n_marked)
            if not n_answered:
                return 0 * n_marked
            answered = weights[:, :n_answered]
            hits = np.cumsum(answered * right, axis=1)[:, ends]
            total = np.cumsum(answered, axis=1)[:, ends]
            precision = hits / np.maximum(total, 1)
            envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
            area: Array = (np.diff(hits, axis=1, prepend=0) * envelope).sum(axis=1)
            if self.loses_first:
                area = area - right[(answered > 0).argmax(axis=1)] * (total[:, -1] > 0)
            return area / n_marked

        return compute


_HOUR_US = 3_600_000_000
_NOTHING_MARKED = Unmeasured("no answered clip has a marked segment")
Clips = Sequence[ClipSegmentComparison]


@add_benchmark_part_metrics(METRICS)
def compute_locate_scorecard(rows: Sequence[LocateRow], *, seed: int) -> Scorecard:
    """Compute all metrics of `locate`; docs/locate.md defines each.

    - A row counts if its question was answered. An unreadable answer has no segments: it misses
      every marked one. It is no false alarm, and its clean clip does not count as an hour.
    - Average precision needs a confidence for every segment; the other metrics do not.
    - For every confidence interval, clips of one scene are resampled together.
    """
    compared = compare_all_clip_segments(rows)
    clips = compared.clips
    coverage = Coverage(parsed=sum(clip.is_readable for clip in clips), asked=len(clips))
    metrics = (
        *_iter_label_metrics(compared, coverage, seed=seed),
        *_iter_convention_metrics(compared, ACTIVITYNET, coverage, seed=seed),
        *_iter_convention_metrics(compared, AVDEEPFAKE1M, coverage, seed=seed),
        *_iter_segment_metrics(compared, coverage, seed=seed),
        _measure_onset_error(compared.located, seed=seed),
        _measure_false_alarms(compared.clean, seed=seed),
    )
    labels = [clip.truth.label for clip in clips]
    predictions = LabelPredictions.of(
        _list_clip_clusters(clips), labels, list(map(_get_predicted_label, clips))
    )
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=compared.n_questions,
        n_answered=len(clips),
        metrics=metrics,
        failures=compared.failures,
        unparsed=compared.unparsed,
        confusion=count_confusion_matrix(predictions),
    )


def _list_clip_clusters(clips: Clips) -> list[RowCluster]:
    return [clip.cluster for clip in clips]


def _get_predicted_label(clip: ClipSegmentComparison) -> Label | None:
    if not clip.is_readable:
        return None
    return Label.GENERATED if clip.answered else Label.REAL


def _iter_label_metrics(
    compared: AllSegmentComparisons, coverage: Coverage, *, seed: int
) -> Iterator[Metric]:
    for name, clips in (("fake-accuracy", compared.located), ("real-accuracy", compared.clean)):
        right = [_get_predicted_label(clip) is clip.truth.label for clip in clips]
        value = measure_mean_percent(
            np.array(right, np.bool_), clips=_list_clip_clusters(clips), seed=seed
        )
        yield Metric(name=name, value=value, coverage=coverage)
    readable = [clip for clip in compared.clips if clip.is_readable]
    empty = np.array([not clip.answered for clip in readable], np.bool_)
    value = measure_mean_percent(empty, clips=_list_clip_clusters(readable), seed=seed)
    yield Metric(name="answered-real", value=value, coverage=coverage)
    counts = [
        (len(list(clip.pairs())), len(clip.answered), len(clip.truth.traces))
        for clip in compared.clips
    ]
    yield Metric(
        name="segment-f1",
        value=_measure_f1_percent(counts, compared.clips, seed=seed),
        coverage=coverage,
    )
    # Matching categories of paired segments, answered ones, annotated ones.
    categories = [
        (
            sum(len(answer.categories & truth.categories) for answer, truth in clip.pairs()),
            sum(len(segment.trace.categories) for segment in clip.answered),
            sum(len(trace.categories) for trace in clip.truth.traces),
        )
        for clip in compared.clips
    ]
    value = _measure_f1_percent(categories, compared.clips, seed=seed)
    if not any(marked for _, _, marked in categories):
        value = Unmeasured("no marked segment has a category")
    yield Metric(name="category-f1", value=value, coverage=coverage)


def _measure_f1_percent(
    counts: Sequence[tuple[int, int, int]], clips: Clips, *, seed: int
) -> Measured:
    """Return F1 in percent, 2 * hits / (answered + annotated), from these three counts of each clip."""
    column = np.array(counts, np.float64).reshape(-1, 3)
    if not column[:, 1:].sum():
        return Unmeasured("no segment is answered or marked")
    is_counted = column[:, 1:].sum(axis=1) > 0
    ties = ClusterIds.of(_list_clip_clusters(clips), len(clips)).only(is_counted)
    sample = RowSample.of(tuple(column[is_counted].T), ties)
    hits, answered, marked = sample.columns

    def harmonic(weights: Array) -> Array:
        total = weighted_sum(weights, answered) + weighted_sum(weights, marked)
        return 2 * weighted_sum(weights, hits) / np.where(total == 0, np.nan, total)

    limits = StatisticLimits(0.0, 1.0, sample.n_free)
    return convert_to_percent(bootstrap(harmonic, sample, seed=seed, limits=limits))


def _iter_convention_metrics(
    compared: AllSegmentComparisons,
    convention: SegmentMatchingConvention,
    coverage: Coverage,
    *,
    seed: int,
) -> Iterator[Metric]:
    problem = _explain_unmeasured_convention(compared, convention)
    ranked: Measured | AveragePrecisionSample = (
        problem
        or _explain_missing_confidence(compared)
        or (build_average_precision_sample(compared, convention))
    )
    for name, thresholds in convention.precisions.items():
        value: Measured
        if isinstance(ranked, AveragePrecisionSample):
            indexes = [THRESHOLDS.index(threshold) for threshold in thresholds]
            value = ranked.measure(indexes, seed=seed)
        else:
            value = ranked
        yield Metric(name=name, value=value, coverage=coverage)
    for name, n in convention.recalls.items():
        value = problem or measure_mean_over_segments(
            compute_average_recalls(compared.located, convention, n), compared.located, seed=seed
        )
        yield Metric(name=name, value=value, coverage=coverage)


def _explain_unmeasured_convention(
    compared: AllSegmentComparisons, convention: SegmentMatchingConvention
) -> Unmeasured | None:
    if not compared.located:
        return _NOTHING_MARKED
    empty = sum(not clip.answered for clip in compared.clips)
    if convention is AVDEEPFAKE1M and empty:
        return Unmeasured(
            f"{empty} of {len(compared.clips)} answers hold no segment, which the evaluator of "
            "avdeepfake1m cannot read"
        )
    return None


def _explain_missing_confidence(compared: AllSegmentComparisons) -> Unmeasured | None:
    clips = compared.clips
    bare = sum(s.confidence is None for clip in clips for s in clip.answered)
    total = sum(len(clip.answered) for clip in clips)
    if not bare:
        return None
    return Unmeasured(
        f"{bare} of {total} segments have no confidence, and average precision ranks by it"
    )


def build_average_precision_sample(
    compared: AllSegmentComparisons, convention: SegmentMatchingConvention
) -> AveragePrecisionSample:
    """Match the answered segments of all clips by the rules of `convention`, and rank them."""
    in_file_order = convention is AVDEEPFAKE1M
    match = match_segments_avdeepfake1m if in_file_order else match_segments_activitynet
    overlaps = [clip.overlaps if in_file_order else clip.ranked for clip in compared.clips]
    confidences = np.concatenate([clip.confidences for clip in overlaps])
    ranks = -confidences
    if in_file_order:  # equal confidences are ranked in the order of the file
        ranks = np.argsort(np.argsort(ranks, kind="stable")).astype(np.float64)
    clusters = [clip.cluster for clip in compared.clips for _ in clip.answered]
    marked = [clip.cluster for clip in compared.clips for _ in clip.truth.traces]
    return AveragePrecisionSample.of(
        ranks,
        np.concatenate(
            [
                np.stack([match(clip.tious, threshold) for threshold in THRESHOLDS], axis=1)
                for clip in overlaps
            ]
        ),
        [*clusters, *marked],
        n_marked=len(marked),
        loses_first=in_file_order,
    )


def compute_average_recalls(
    located: Clips, convention: SegmentMatchingConvention, n: int
) -> list[Array]:
    """Compute recalls over tIoU thresholds, an array per clip, with `n` answered segments counted."""
    if convention is AVDEEPFAKE1M:
        return [compute_recall_avdeepfake1m(clip.overlaps.tious, n) for clip in located]
    counts = count_ranked_segments_activitynet([len(clip.answered) for clip in located], n).tolist()
    return [
        compute_recall_activitynet(clip.ranked.tious, count)
        for clip, count in zip(located, counts, strict=True)
    ]


def measure_mean_over_segments(values: Sequence[Array], clips: Clips, *, seed: int) -> Measured:
    """Return the mean of a metric over annotated segments in percent, from the values of each clip."""
    clusters = [
        clip.cluster for clip, column in zip(clips, values, strict=True) for _ in range(len(column))
    ]
    if not clusters:
        return Unmeasured("no marked segment asks for it")
    return measure_mean_percent(np.concatenate(values), clips=clusters, seed=seed)


def _iter_segment_metrics(
    compared: AllSegmentComparisons, coverage: Coverage, *, seed: int
) -> Iterator[Metric]:
    located = compared.located
    best = [clip.overlaps.tious.max(axis=0, initial=0.0) for clip in located]
    values = {f"recall-{t:g}": [(tious >= t).astype(np.float64) for tious in best] for t in RECALLS}
    values["mean-tiou"] = best
    values["tube-viou"] = [clip.best_vious() for clip in located]
    values["pointing-hit"] = [clip.pointing_hits() for clip in located]
    for name, column in values.items():
        value = measure_mean_over_segments(column, located, seed=seed)
        yield Metric(name=name, value=value, coverage=coverage)


def _measure_onset_error(located: Clips, *, seed: int) -> Metric:
    errors = [clip.onset_errors_s() for clip in located]
    n_met = sum(map(len, errors))
    coverage = Coverage(parsed=n_met, asked=sum(len(clip.truth.traces) for clip in located))
    value: Measured = Unmeasured("no answered segment overlaps a marked one")
    if n_met:
        pairs = zip(located, errors, strict=True)
        clusters = [clip.cluster for clip, clip_errors in pairs for _ in range(len(clip_errors))]
        value = bootstrap_mean(np.concatenate(errors), seed=seed, clusters=clusters)
    return Metric(name="onset-error", value=value, coverage=coverage)


def _measure_false_alarms(clean: Clips, *, seed: int) -> Metric:
    """Measure segments per hour of clean clips, with a Poisson interval by scene."""
    timed = [clip for clip in clean if clip.is_readable and clip.truth.duration_us]
    coverage = Coverage(parsed=len(timed), asked=len(clean))
    hours = np.array([(clip.truth.duration_us or 0) / _HOUR_US for clip in timed])
    alarms = np.array([len(clip.answered) for clip in timed], np.float64)
    value: Measured = Unmeasured("no readable answer is about a clean clip of known length")
    if timed and get_jackknife_groups() is not None and alarms.any():  # for a paired difference
        sample = RowSample.of(
            (alarms, hours), ClusterIds.of(_list_clip_clusters(timed), len(timed))
        )
        counts, lengths = sample.columns
        value = bootstrap(
            lambda weights: weighted_sum(weights, counts) / weighted_sum(weights, lengths),
            sample,
            seed=seed,
        )
    elif timed:
        _, scene = np.unique([clip.cluster.scene for clip in timed], return_inverse=True)
        value = estimate_event_rate(
            np.bincount(scene, alarms), np.bincount(scene, hours), n=len(timed)
        )
    return Metric(name="false-alarms", value=value, coverage=coverage)
