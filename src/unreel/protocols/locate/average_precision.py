"""Average precision of answered segments with its bootstrap interval.

Segments of each clip are matched before, so a resample of clips changes only the weights of
segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unreel.core.estimate import Measured
from unreel.protocols.metric_estimates import convert_to_percent
from unreel.stats.bootstrap import StatisticLimits, bootstrap
from unreel.stats.resampling import Statistic
from unreel.stats.row_sample import Array, BoolArray, Clusters, RowSample, find_run_starts


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

        Args:
            ranks: Rank of each answered segment, the best first; equal ranks enter the curve together.
            right: For each answered segment, whether it is right at each threshold.
            clusters: Cluster of each answered segment, then of each annotated one.
            n_marked: Number of annotated segments.
            loses_first: Whether the precision-recall curve lacks its first part.
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
