"""Ranks of entrants and their certainty: every pair is compared on the same resamples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from unreel.stats.paired_tests import holm
from unreel.stats.sample import Array, BoolArray

SURE: Final = 0.05
"""Family-wise error rate of the claims."""
_ALIKE_PLACES: Final = 9
"""Means that agree so far differ by rounding alone: they share a place."""


def rank_means(values: Sequence[float], *, better: Literal["high", "low"]) -> list[int]:
    """Rank unrounded means from 1; equal means share the better rank."""
    sign = -1 if better == "high" else 1
    keys = [round(sign * value, _ALIKE_PLACES) for value in values]
    return [1 + sum(other < key for other in keys) for key in keys]


@dataclass(frozen=True, slots=True, eq=False)
class EntrantComparisons:
    """Every two of some entrants."""

    above: Array
    """Fraction of resamples in which the row is above the column; a tie counts one half."""
    sure: BoolArray
    """Whether the row is above the column after correction for all pairs (Holm)."""

    def share(self, one: int, other: int) -> float:
        """Return the fraction of resamples in which `one` is above `other`."""
        return float(self.above[one, other])


def compare(values: Array, *, better: Literal["high", "low"], n_scenes: int) -> EntrantComparisons:
    """Compare the columns of `values`: the first line as they are, then a line for each resample."""
    observed, drawn = values[0], values[1:]
    size = values.shape[1]
    above = np.full((size, size), 0.5)
    sign = 1.0 if better == "high" else -1.0
    for place in range(size):
        gap = sign * (drawn[:, [place]] - drawn)
        known = np.isfinite(gap)
        won = np.where(known, (gap > 0) + 0.5 * (gap == 0), 0.0).sum(axis=0)
        above[place] = np.where(known.any(axis=0), won / np.maximum(known.sum(axis=0), 1), 0.5)
    return EntrantComparisons(
        above, _select_significant_wins(sign * observed, sign * drawn, n_scenes=n_scenes)
    )


def find_leading(
    values: Array, *, better: Literal["high", "low"], n_scenes: int, best: int | None = None
) -> BoolArray:
    """Return which columns of `values` the best one does not surely beat; none if there is only one column.

    The differences between the best and each other column are tested on the same resamples and corrected by Holm.

    Args:
        values: the observed values, then a line for each resample.
        better: which values are good.
        n_scenes: number of scenes that were resampled.
        best: the column that is first, if another figure decides that.
    """
    size = values.shape[1]
    if size <= 1:
        return np.zeros(size, dtype=np.bool_)
    sign = 1.0 if better == "high" else -1.0
    best = int(np.argmax(sign * values[0])) if best is None else best
    gap = sign * (values[0, best] - values[0])
    chance = _compute_p_values(sign * values[0], sign * values[1:], n_scenes=n_scenes)[best]
    others = np.delete(np.arange(size), best)
    leading = np.ones(size, dtype=np.bool_)
    beaten = np.array(holm(chance[others].tolist())) <= SURE
    leading[others] = ~(beaten & (gap[others] > 0))
    return leading


def _select_significant_wins(observed: Array, drawn: Array, *, n_scenes: int) -> BoolArray:
    """Return which rows are significantly above which columns, corrected for all pairs (Holm)."""
    size = len(observed)
    sure = np.zeros((size, size), dtype=np.bool_)
    if size <= 1:
        return sure
    chance = _compute_p_values(observed, drawn, n_scenes=n_scenes)
    first, second = np.triu_indices(size, 1)
    counted = np.array(holm(chance[first, second].tolist()))
    for i, j in zip(first[counted <= SURE], second[counted <= SURE], strict=True):
        winner, loser = (i, j) if observed[i] > observed[j] else (j, i)
        sure[winner, loser] = True
    return sure


def _compute_p_values(observed: Array, drawn: Array, *, n_scenes: int) -> Array:
    """Return the p-value of every difference, from its spread over the resamples and Student's t."""
    from scipy.special import stdtr

    if n_scenes <= 1 or not len(drawn):
        return np.ones((len(observed), len(observed)))
    off = np.where(np.isfinite(drawn), drawn - observed, 0.0)
    off = off - off.mean(axis=0)
    together = off.T @ off / len(off) * n_scenes / (n_scenes - 1)
    own = np.diagonal(together)
    spread = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2 * together, 0.0))
    gap = observed[:, None] - observed[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(gap == 0, 0.0, np.abs(gap) / spread)
    chance = 2 * stdtr(n_scenes - 1, -np.nan_to_num(reach, posinf=np.inf))
    # Nothing is surer than that all scenes point one way.
    raised: Array = np.maximum(chance, 2.0 ** (1 - n_scenes))
    return raised
