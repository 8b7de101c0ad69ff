"""Intervals of many shares at once, by the rule of `stats.bootstrap`: a leaderboard holds thousands."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.stats.bootstrap import ROUNDING
from unreel.stats.proportion import normal_quantile
from unreel.stats.resampling import MOST_UNDEFINED, fewest_clusters
from unreel.stats.sample import Array

_STEPS: Final = 60
"""Halvings: the ends are exact to the last digits of a float."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Both ends of each interval; NaN where there is none."""

    low: Array
    high: Array


def enclose_shares(
    values: Array,
    replicates: Array,
    *,
    n_clusters: Array,
    n_free: Array,
    level: float = 0.95,
) -> Ends:
    """Intervals of `values`, shares of 0 to 1, from their resamples: a line each, a column for each value.

    `n_clusters` scenes carry a value; `n_free` says how many independent trials they are worth, which
    serves where all resamples agree or scenes are too few to be drawn again.
    """
    known = np.isfinite(replicates)
    enough = known.sum(axis=0) >= (1 - MOST_UNDEFINED) * len(replicates)
    off = np.where(known, replicates - values, 0.0)
    count = np.maximum(known.sum(axis=0), 1)
    variance = (off**2).sum(axis=0) / count - (off.sum(axis=0) / count) ** 2
    few = n_clusters < fewest_clusters(level)
    still = np.abs(off).max(axis=0, initial=0.0) <= ROUNDING
    trials = np.where(
        few, n_free, _worth(values, variance, n_clusters=np.maximum(n_clusters, 2), level=level)
    )
    low, high = mid_p_intervals(values, np.where(still, 1.0, trials), level=level)
    flat = ~few & still
    _, unseen = mid_p_intervals(np.zeros_like(values), np.maximum(n_free, 1e-9), level=level)
    low = np.where(flat, values - unseen * values, low)
    high = np.where(flat, values + unseen * (1 - values), high)
    missing = ~np.isfinite(values) | (~few & ~enough)
    return Ends(np.where(missing, np.nan, low), np.where(missing, np.nan, high))


def _worth(values: Array, variance: Array, *, n_clusters: Array, level: float) -> Array:
    """Independent trials that would be as sure as the resamples are."""
    from scipy.special import stdtrit

    wider = n_clusters / (n_clusters - 1)
    few = normal_quantile(level) / -stdtrit(n_clusters - 1, (1 - level) / 2)
    inside = np.maximum(values * (1 - values), ROUNDING)
    worth: Array = inside / np.maximum(variance * wider, 1e-300) * few**2
    return worth


def mid_p_intervals(shares: Array, n: Array, *, level: float) -> tuple[Array, Array]:
    """`stats.proportion.mid_p_interval` for columns of shares."""
    tail = (1 - level) / 2
    share = np.clip(np.nan_to_num(shares), 0.0, 1.0)
    low = np.where(share > 0, _crossing(share, n, tail, np.zeros_like(share), share), 0.0)
    high = np.where(share < 1, _crossing(share, n, 1 - tail, share, np.ones_like(share)), 1.0)
    return np.minimum(low, share), np.maximum(high, share)


def _crossing(share: Array, n: Array, chance: float, low: Array, high: Array) -> Array:
    from scipy.special import betainc

    seen, unseen = share * n, (1 - share) * n
    none, every = seen <= 0, unseen <= 0
    tiny = 1e-300
    for _ in range(_STEPS):
        middle = (low + high) / 2
        at_least = np.where(none, 1.0, betainc(np.maximum(seen, tiny), unseen + 1, middle))
        more = np.where(every, 0.0, betainc(seen + 1, np.maximum(unseen, tiny), middle))
        above = (at_least + more) / 2 > chance
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    crossing: Array = (low + high) / 2
    return crossing
