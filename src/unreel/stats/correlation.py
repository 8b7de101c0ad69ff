"""Correlation of scores with human scores, and consistency with pairs that humans ordered."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap, bootstrap_coefficient
from unreel.stats.resampling import Statistic
from unreel.stats.row_sample import (
    Array,
    Clusters,
    IntArray,
    RowSample,
    find_run_starts,
    require_float_columns,
    weighted_sum,
)


def count_ordered_pairs(human: npt.ArrayLike) -> int:
    """Count the pairs of clips with different human scores; `human` has a score per clip."""
    (column,) = require_float_columns(human)
    _, tied = np.unique(column, return_counts=True)
    return int(len(column) ** 2 - (tied**2).sum()) // 2


def pair_consistency(
    human: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute the fraction of the pairs with different human scores that `scores` order equally.

    A tie in `scores` counts as disagreement. The interval resamples clips, because the pairs of one
    clip are correlated; n counts rows.
    """
    x, y = require_float_columns(human, scores)
    if count_ordered_pairs(x) == 0:
        return Unmeasured("people order no pair of these clips")
    sample = RowSample.of((x, y), clusters)
    pairs = OrderedPairCounter.of(*sample.columns)

    def share(weights: Array) -> Array:
        counts = pairs.count(weights)
        return counts.same / counts.ordered

    return bootstrap(
        share, sample, seed=seed, level=level, limits=build_ordered_pair_limits(sample, x)
    )


def build_ordered_pair_limits(sample: RowSample, truth: Array) -> StatisticLimits:
    """Return the limits 0 and 1, with the number of ordered pairs that use no clip twice."""
    _, tied = np.unique(truth, return_counts=True)
    return StatisticLimits(0.0, 1.0, min(sample.n_free / 2, float(len(truth) - tied.max())))


@dataclass(frozen=True, slots=True, eq=False)
class OrderedPairCounts:
    """Counts of pairs that the truth orders, that the scores order equally, and that the scores tie."""

    ordered: Array
    """Number of pairs that the truth orders; NaN if there are none."""
    same: Array
    tied: Array


@dataclass(frozen=True, slots=True, eq=False)
class OrderedPairCounter:
    """Counter of ordered pairs for many weightings of the same rows, in n log n steps each."""

    rank: IntArray
    """Rank of each row's truth; rows are sorted by it."""
    digits: "tuple[_RankDigitPairs, ...]"

    @classmethod
    def of(cls, truth: Array, scores: Array) -> "OrderedPairCounter":
        """Prepare rows, sorted by `truth`, for counting pairs.

        Two rows with different truths differ first in exactly one binary digit of their truths' ranks. So
        each pair is counted once: at that digit, in the block of rows that share the digits above,
        between the block's lower and upper half.
        """
        distinct, rank = np.unique(truth, return_inverse=True)
        _, score = np.unique(scores, return_inverse=True)
        n_digits = (len(distinct) - 1).bit_length()
        return cls(rank, tuple(_RankDigitPairs.of(rank, score, digit) for digit in range(n_digits)))

    def count(self, weights: Array) -> OrderedPairCounts:
        """Count pairs for each line of `weights`, the number of times that each row occurs."""
        starts = np.flatnonzero(np.diff(self.rank, prepend=-1))
        by_truth = np.add.reduceat(weights, starts, axis=1)
        ordered = (weights.sum(axis=1) ** 2 - np.einsum("rt,rt->r", by_truth, by_truth)) / 2
        ordered[ordered == 0] = np.nan
        same, tied = np.zeros(len(weights)), np.zeros(len(weights))
        for digit in self.digits:
            digit.add(weights, same=same, tied=tied)
        return OrderedPairCounts(ordered, same, tied)


@dataclass(frozen=True, slots=True, eq=False)
class _RankDigitPairs:
    """Pairs of rows whose truth ranks differ first in one given binary digit."""

    lower: IntArray
    """Indices of the rows in the lower halves, sorted by block, then by score."""
    upper: IntArray
    """Indices of the rows in the upper halves, sorted by block, then by score."""
    block: IntArray
    """Number of lower rows before the block of each upper row."""
    less: IntArray
    """Number of lower rows in earlier blocks, or in the same block with a lower score, for each upper row."""
    not_more: IntArray
    """Number of lower rows in earlier blocks, or in the same block with no higher score, for each upper row."""

    @classmethod
    def of(cls, rank: IntArray, y_rank: IntArray, digit: int) -> "_RankDigitPairs":
        key = (rank >> (digit + 1)) * (y_rank.max() + 1)
        is_upper = (rank >> digit & 1).astype(np.bool_)
        order = np.argsort(key + y_rank, kind="stable")
        lower, upper = order[~is_upper[order]], order[is_upper[order]]
        below = (key + y_rank)[lower]
        ends = [key[upper], (key + y_rank)[upper], (key + y_rank)[upper] + 1]
        return cls(lower, upper, *(np.searchsorted(below, end) for end in ends))

    def add(self, weights: Array, *, same: Array, tied: Array) -> None:
        """Add this digit's pairs to `same` and `tied`."""
        upper = weights.take(self.upper, axis=1)
        before = np.zeros((len(weights), len(self.lower) + 1))
        np.cumsum(weights.take(self.lower, axis=1), axis=1, out=before[:, 1:])
        less = before.take(self.less, axis=1)
        same += np.einsum("ri,ri->r", upper, less - before.take(self.block, axis=1))
        if (self.not_more > self.less).any():
            tied += np.einsum("ri,ri->r", upper, before.take(self.not_more, axis=1) - less)


# A variance below this fraction of the mean square is rounding error.
_ROUNDING = 1e-12


def plcc(
    human: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute Pearson's linear correlation with an interval clustered by clip; n counts rows."""
    x, y = require_float_columns(human, scores)
    flat = _explain_constant_scores(x, y)
    if flat:
        return Unmeasured(flat)
    sample = RowSample.of((_standardise_column(x), _standardise_column(y)), clusters)
    return bootstrap_coefficient(_build_pearson_statistic(sample), sample, seed=seed, level=level)


def srocc(
    human: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute Spearman's correlation (ties: average rank) with an interval by clip; n counts rows."""
    x, y = require_float_columns(human, scores)
    flat = _explain_constant_scores(x, y)
    if flat:
        return Unmeasured(flat)
    sample = RowSample.of((x, y), clusters)
    return bootstrap_coefficient(_build_spearman_statistic(sample), sample, seed=seed, level=level)


def _explain_constant_scores(x: Array, y: Array) -> str:
    if len(x) == 0:
        return "no rows"
    for name, column in (("people's", x), ("given", y)):
        if column.min() == column.max():
            return f"all {name} scores are {column[0]:g}: a constant correlates with nothing"
    return ""


def _standardise_column(column: Array) -> Array:
    """Return the column centred and scaled, so that sums of products keep their precision."""
    # Dividing by the largest distance first avoids overflow and underflow of the squares.
    centred = column - column.mean()
    centred /= np.abs(centred).max()
    scaled: Array = centred / centred.std()
    return scaled


def _build_pearson_statistic(sample: RowSample) -> Statistic:
    x, y = sample.columns
    columns = (x, y, x * x, y * y, x * y)

    def correlate(weights: Array) -> Array:
        n = weights.sum(axis=1)
        sx, sy, sxx, syy, sxy = (weighted_sum(weights, column) for column in columns)
        vx, vy = sxx - sx * sx / n, syy - sy * sy / n
        vx[vx <= _ROUNDING * sxx] = np.nan
        vy[vy <= _ROUNDING * syy] = np.nan
        linear: Array = np.clip((sxy - sx * sy / n) / np.sqrt(vx * vy), -1, 1)
        return linear

    return correlate


def _build_spearman_statistic(sample: RowSample) -> Statistic:
    x, y = sample.columns
    by_y = np.argsort(y, kind="stable")
    to_x = np.argsort(by_y)
    x_runs, y_runs = find_run_starts(x), find_run_starts(y[by_y])

    def correlate(weights: Array) -> Array:
        rx = _compute_centred_ranks(weights, x_runs)
        ry = _compute_centred_ranks(weights.take(by_y, axis=1), y_runs).take(to_x, axis=1)
        weighted_x = weights * rx
        vx = np.einsum("ri,ri->r", weighted_x, rx)
        vy = np.einsum("ri,ri,ri->r", weights, ry, ry)
        vx[vx == 0] = np.nan
        vy[vy == 0] = np.nan
        covariance = np.einsum("ri,ri->r", weighted_x, ry)
        monotone: Array = np.clip(covariance / np.sqrt(vx) / np.sqrt(vy), -1, 1)
        return monotone

    return correlate


def _compute_centred_ranks(weights: Array, runs: npt.NDArray[np.bool_]) -> Array:
    """Return centred average ranks of sorted rows; `runs` marks the first row of equal values."""
    total = weights if runs.all() else np.add.reduceat(weights, np.flatnonzero(runs), axis=1)
    ranks = np.cumsum(total, axis=1)
    middle = ranks[:, -1:] / 2
    ranks -= total / 2
    ranks -= middle
    return ranks if runs.all() else ranks.take(np.cumsum(runs) - 1, axis=1)
