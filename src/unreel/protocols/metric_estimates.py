"""Estimates of metrics for scorecards: percentages with intervals, F1, confusion matrix and AUC."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Coverage, Estimate, Measured, Metric, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import Unparsed
from unreel.protocols.metric_definitions import FALSE_ALARMS
from unreel.protocols.paper_formulas import PERCENT
from unreel.protocols.protocol import ScoredQuestion
from unreel.stats.bootstrap import StatisticLimits, bootstrap, bootstrap_mean
from unreel.stats.clusters import NOBODY
from unreel.stats.detection_metrics import auc, f1, tpr_at_fpr
from unreel.stats.proportion import (
    WeightedProportion,
    estimate_proportion,
    sum_weighted_proportions,
)
from unreel.stats.resampling import Statistic, are_rows_independent
from unreel.stats.row_sample import (
    Array,
    BoolArray,
    ClusterIds,
    Clusters,
    DistinctRowIndices,
    RowSample,
    weighted_sum,
)

AnyArray = npt.NDArray[Any]
_BOUNDS = (0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedMean:
    """One term of a metric that sums weighted means: `factor` times a mean of values from 0 to 1."""

    name: str
    """Description of the mean's rows, for the reason why a metric is unmeasured."""
    factor: float
    values: Array
    """Values of the rows; undefined for rows that are not in `held`."""
    held: BoolArray
    """Mask of the rows that are part of this mean."""
    creator: str = ""
    """Creator of this term, if the metric is a mean over creators; a resample without the creator's clips
    omits the term."""

    @classmethod
    def of(
        cls, name: str, factor: float, values: Sequence[float | None], creator: str = ""
    ) -> "WeightedMean":
        """Build a term of a metric from one value per row; its mean ignores rows with `None`."""
        column = np.array(values, dtype=np.float64)
        present = ~np.isnan(column)
        return cls(name, factor, np.where(present, column, 0.0), present, creator)

    @property
    def is_empty(self) -> bool:
        """Return whether no row is part of this mean."""
        return not self.held.any()

    def at(self, chosen: BoolArray) -> "WeightedMean":
        """Return the same term of a metric, restricted to the rows of the mask `chosen`."""
        return replace(self, values=self.values[chosen], held=self.held[chosen])


def convert_to_percent(measured: Measured) -> Measured:
    """Convert a measured fraction and its interval, or the bare value in the reason, to percent."""
    if isinstance(measured, Estimate):
        return measured.scaled(PERCENT)
    why = re.sub(
        r"(?<=bare value is )\S+$", lambda m: f"{PERCENT * float(m[0]):.4g} %", measured.why
    )
    return Unmeasured(why)


def measure_mean_percent(
    values: Sequence[float] | Array | BoolArray, *, clips: Clusters, seed: int
) -> Measured:
    """Compute the mean of `values` (0 to 1) in percent, with a confidence interval.

    Values of one clip or cluster are resampled together (bootstrap). If all values are 0 or 1 and the
    clips are independent, the interval is the mid-P interval of a proportion.
    """
    column = np.asarray(values, dtype=np.float64)
    if not len(column):
        return Unmeasured("no rows")
    ties = ClusterIds.of(clips, len(column))
    if _are_all_binary(column) and are_rows_independent(ties, len(column)):
        return convert_to_percent(estimate_proportion(int(column.sum()), len(column)))
    return convert_to_percent(bootstrap_mean(column, seed=seed, clusters=ties, bounds=_BOUNDS))


def measure_weighted_sum_percent(
    means: Sequence[WeightedMean], *, clips: Clusters, seed: int
) -> Measured:
    """Compute the sum of several weighted means in percent, with a confidence interval.

    `clips` has the cluster of each row. If all values are 0 or 1 over independent clips, the
    interval is that of a weighted sum of proportions. Otherwise clips are resampled for all terms
    together, so that terms may share clips.
    """
    if not means:
        return Unmeasured("there is nothing to compare")
    for part in means:
        if part.is_empty:
            return Unmeasured(f"no valid answer for {part.name}")
    ties = ClusterIds.of(clips, len(means[0].values))
    # The creators of clips in no part do not affect these means.
    used = reduce(np.logical_or, (part.held for part in means))
    if not used.all():
        means, ties = [part.at(used) for part in means], ties.only(used)
    if len(means) == 1 and means[0].factor == 1:
        return measure_mean_percent(means[0].values, clips=ties, seed=seed)
    if _are_independent_proportions(means, ties):
        return convert_to_percent(sum_weighted_proportions(_group_into_strata(means)))
    present = {ties.names[number] for number in np.unique(ties.creator) if number != NOBODY}
    creators = sorted({part.creator for part in means} & present)
    # Values and mask of each term, then creator masks.
    columns = [
        column for part in means for column in (np.where(part.held, part.values, 0.0), part.held)
    ]
    columns += [ties.creator == ties.names.index(name) for name in creators]
    sample = RowSample.of(columns, ties)
    limits = StatisticLimits(
        sum(min(0.0, part.factor) for part in means),
        sum(max(0.0, part.factor) for part in means),
        min(ties.only(part.held).n_scenes for part in means),
    )
    statistic = _build_sum_statistic(sample, means, creators)
    return convert_to_percent(bootstrap(statistic, sample, seed=seed, limits=limits))


def _are_all_binary(values: Array) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _are_independent_proportions(means: Sequence[WeightedMean], cluster_ids: ClusterIds) -> bool:
    """Return whether each row is an independent clip with one value, 0 or 1, in all its terms."""
    if not are_rows_independent(cluster_ids, len(cluster_ids.scene)):
        return False
    right = np.zeros(len(cluster_ids.scene), np.bool_)
    wrong = right.copy()
    for part in means:
        if not _are_all_binary(part.values[part.held]):
            return False
        right |= part.held & (part.values == 1)
        wrong |= part.held & (part.values == 0)
    return not (right & wrong).any()


def _group_into_strata(means: Sequence[WeightedMean]) -> list[WeightedProportion]:
    """Return a weighted proportion per set of terms that contain a row; they sum to the sum of terms."""
    sizes = [int(part.held.sum()) for part in means]
    codes = DistinctRowIndices.of(part.held for part in means)
    right = np.zeros(len(codes.code), np.bool_)
    for part in means:
        right |= part.held & (part.values == 1)
    rights = np.bincount(codes.code, weights=right)
    members = np.stack(codes.distinct, axis=1)
    return [
        WeightedProportion(
            weight=int(n)
            * sum(means[i].factor / sizes[i] for i in np.flatnonzero(members[kind]).tolist()),
            successes=int(rights[kind]),
            n=int(n),
        )
        for kind, n in ((kind, codes.counts[kind]) for kind in np.argsort(codes.first))
    ]


def _build_sum_statistic(
    sample: RowSample, parts: Sequence[WeightedMean], creators: Sequence[str]
) -> Statistic:
    """Return a function from resampling weights to the sum of the weighted means `parts`.

    If a creator in `creators` has no row in a resample, the weight of its terms goes to the terms
    of the other creators.
    """
    columns = iter(sample.columns)
    # `parts` is not captured below, so that the values of its rows can be freed.
    means = [(part.factor, part.creator, next(columns), next(columns)) for part in parts]
    masks = dict(zip(creators, columns, strict=True))

    def total(weights: Array) -> Array:
        has_rows = {name: weighted_sum(weights, column) > 0 for name, column in masks.items()}
        n_creators = np.sum(list(has_rows.values()), axis=0, dtype=np.float64)
        n_creators = np.where(n_creators == 0, math.nan, n_creators)
        result = weights[:, 0] * 0
        for factor, creator, values, present in means:
            n = weighted_sum(weights, present)
            n[n == 0] = math.nan
            mean = factor * weighted_sum(weights, values) / n
            if creator in has_rows:
                mean = np.where(has_rows[creator], mean * len(has_rows), 0) / n_creators
            result += mean
        return result

    return total


def count_failure_reasons(rows: Iterable[ScoredQuestion[Any, Any]]) -> Mapping[str, int]:
    """Count the failed questions by failure reason."""
    outcomes = (row.outcome for row in rows)
    counts = Counter(o.reason.value for o in outcomes if isinstance(o, Failure))
    return dict(sorted(counts.items()))


def count_unparsed_parts(parts: Iterable[tuple[str, object]]) -> Mapping[str, int]:
    """Count the parts of answers that could not be parsed, by `part: reason`."""
    counts = Counter(
        f"{name}: {part.reason.value}" for name, part in parts if isinstance(part, Unparsed)
    )
    return dict(sorted(counts.items()))


AnswerCodes = npt.NDArray[np.int8]
CALLS: Mapping[Label | None, int] = {None: -1, Label.REAL: 0, Label.GENERATED: 1}
"""Codes of answered labels; `None` is an unreadable answer."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelPredictions:
    """True labels of clips, and the labels that a reviewer answered."""

    clips: Clusters
    generated: BoolArray
    answer_codes: AnswerCodes

    @classmethod
    def of(
        cls, clips: Clusters, true_labels: Sequence[Label], answered: Sequence[Label | None]
    ) -> "LabelPredictions":
        """Build the columns from the true label and the answered label of each clip."""
        generated = np.array([label is Label.GENERATED for label in true_labels], np.bool_)
        return cls(clips, generated, np.array([CALLS[answer] for answer in answered], np.int8))


def measure_label_f1(predictions: LabelPredictions, *, seed: int) -> Measured:
    """Return F1 in percent for `generated`; generated clips without a readable answer count as missed."""
    if not len(predictions.answer_codes):
        return Unmeasured("no rows")
    called = predictions.answer_codes == CALLS[Label.GENERATED]
    return convert_to_percent(
        f1(predictions.generated, called, seed=seed, clusters=predictions.clips)
    )


def count_confusion_matrix(predictions: LabelPredictions) -> Mapping[str, int]:
    """Count clips by true and answered label, such as `generated called real` or `real unread`."""
    labels = [Label.GENERATED, Label.REAL]
    counts = {f"{label} called {called}": 0 for label in labels for called in labels}
    counted = {}
    for label in labels:
        for called, number in CALLS.items():
            of_label = predictions.generated == (label is Label.GENERATED)
            n = int(np.count_nonzero(of_label & (predictions.answer_codes == number)))
            if n:
                counted[f"{label} called {called}" if called else f"{label} unread"] = n
    return counts | dict(sorted(counted.items()))


def iter_detection_metrics(
    clips: Clusters,
    generated: BoolArray,
    scores: Array,
    *,
    coverage: Coverage,
    why_none: str,
    seed: int,
) -> Iterator[Metric]:
    """Yield AUC, and TPR in percent at two false positive rates; `why_none` explains absent scores.

    A higher score means more likely generated.
    """
    value: Measured = Unmeasured(why_none)
    if len(scores):
        value = auc(generated, scores, seed=seed, clusters=clips)
    yield Metric(name="auc", value=value, coverage=coverage)
    for name, rate in FALSE_ALARMS.items():
        if len(scores):
            rates = tpr_at_fpr(generated, scores, fpr=rate, seed=seed, clusters=clips)
            value = convert_to_percent(rates)
        yield Metric(name=name, value=value, coverage=coverage)
