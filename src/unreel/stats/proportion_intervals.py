"""Confidence intervals of many proportions at once, by the method of `stats.bootstrap`."""

import numpy as np

from unreel.stats.bootstrap import ROUNDING
from unreel.stats.proportion import central_normal_quantile
from unreel.stats.resampling import MAX_UNDEFINED, compute_min_clusters
from unreel.stats.row_sample import Array

_STEPS = 14
"""Number of steps of false position: the bounds are exact to ten digits."""


def compute_proportion_intervals(
    values: Array, replicates: Array, *, n_clusters: Array, n_free: Array, level: float = 0.95
) -> tuple[Array, Array]:
    """Compute the lower and upper bounds of the intervals of `values`, shares from 0 to 1, from their resamples.

    `replicates` has one line per resample and one column per value. `n_clusters` is the number of
    scenes of each value. `n_free` is the equivalent number of independent trials; it is used if all
    resamples agree or the scenes are too few to resample.
    """
    known = np.isfinite(replicates)
    enough = known.sum(axis=0) >= (1 - MAX_UNDEFINED) * len(replicates)
    off = np.where(known, replicates - values, 0.0)
    count = np.maximum(known.sum(axis=0), 1)
    variance = (off**2).sum(axis=0) / count - (off.sum(axis=0) / count) ** 2
    few = n_clusters < compute_min_clusters(level)
    still = np.abs(off).max(axis=0, initial=0.0) <= ROUNDING
    trials = np.where(
        few,
        n_free,
        _compute_effective_trials(
            values, variance, n_clusters=np.maximum(n_clusters, 2), level=level
        ),
    )
    flat = ~few & still
    low, high = mid_p_intervals(values, np.where(flat, 1.0, trials), level=level)
    # Upper bound of the mid-P interval of a count of 0.
    unseen = 1 - (1 - level) ** (1 / np.maximum(n_free, 1.0))
    low = np.where(flat, values - unseen * values, low)
    high = np.where(flat, values + unseen * (1 - values), high)
    missing = ~np.isfinite(values) | (~few & ~enough)
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def _compute_effective_trials(
    values: Array, variance: Array, *, n_clusters: Array, level: float
) -> Array:
    """Return the number of independent trials that would be as uncertain as the resamples."""
    from scipy.special import stdtrit

    wider = n_clusters / (n_clusters - 1)
    few = central_normal_quantile(level) / -stdtrit(n_clusters - 1, (1 - level) / 2)
    inside = np.maximum(values * (1 - values), ROUNDING)
    worth: Array = inside / np.maximum(variance * wider, 1e-300) * few**2
    return worth


def mid_p_intervals(proportions: Array, n: Array, *, level: float) -> tuple[Array, Array]:
    """Compute `stats.proportion.mid_p_interval` for arrays of shares."""
    tail = (1 - level) / 2
    clipped = np.clip(np.nan_to_num(proportions), 0.0, 1.0)
    low = np.zeros_like(clipped)
    inside = clipped > ROUNDING
    low[inside] = 1 - _compute_upper_bound(1 - clipped[inside], n[inside], tail)
    high = np.ones_like(clipped)
    inside = clipped < 1 - ROUNDING
    high[inside] = _compute_upper_bound(clipped[inside], n[inside], tail)
    return np.minimum(low, clipped), np.maximum(high, clipped)


def _compute_upper_bound(share: Array, n: Array, tail: float) -> Array:
    """Return the probability at which `share` of `n` or fewer has probability `tail`; `share` is below 1.

    The bound is between those of an interval with the complete probability of the observed count,
    and with none of it; it is found by false position, which halves a side that does not move
    (Illinois).
    """
    from scipy.special import betainc, betaincinv

    count, unseen = share * n, (1 - share) * n
    none = count <= 0
    at = np.where(none, 1.0, count)

    def short(p: Array) -> Array:
        """Return the mid-P probability of a larger count at `p` minus its target; negative if too small."""
        fewer = np.where(none, 1.0, betainc(at, unseen + 1, p))
        return np.asarray((fewer + betainc(count + 1, unseen, p)) / 2 - (1 - tail))

    low: Array = np.where(none, 0.0, betaincinv(at, unseen + 1, 1 - tail)).astype(np.float64)
    high: Array = np.asarray(betaincinv(count + 1, unseen, 1 - tail), dtype=np.float64)
    below, above = short(low), short(high)
    middle, was_left = high, np.zeros(share.shape, dtype=np.bool_)
    for _ in range(_STEPS):
        width = np.where(above > below, above - below, 1.0)
        middle = np.clip(high - above * (high - low) / width, low, high)
        value = short(middle)
        left = value < 0
        scale = np.where(left == was_left, 0.5, 1.0)
        above = np.where(left, above * scale, value)
        below = np.where(left, value, below * scale)
        was_left = left
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return middle
