"""Differences between two ways of playing, from sums over scenes: what both find hard cancels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.protocols.formulas import PERCENT
from unreel.stats.jackknife import DifferenceInterval, compute_difference_interval
from unreel.stats.jackknife_values import MOST_GROUPS, JackknifeValues
from unreel.stats.paired_tests import holm
from unreel.stats.proportion import estimate_proportion
from unreel.stats.sample import Array, IntArray

Figure = Callable[[Array], Array]
"""Function from sums, one set per row, to values; NaN if undefined."""
_EVEN: Final = PERCENT / 2
CLEAR_BELOW: Final = 0.05
"""What stays below it after correction is called a difference."""


@dataclass(frozen=True, slots=True)
class JackknifeDifference:
    """A value with its interval, and how often chance alone would bring one as far from 0."""

    value: Measured
    p: float | None = None


def sum_scenes(scene: IntArray, *columns: Array) -> Array:
    """The sums of equally long `columns` over each scene that has a row: a line a scene."""
    _, place = np.unique(scene, return_inverse=True)
    sums = [np.bincount(place, weights=column) for column in columns]
    return np.stack(sums, axis=1) if len(scene) else np.zeros((0, len(columns)))


def jackknife_difference(
    figure: Figure, sums: Array, *, n: int, reach: float = math.inf
) -> JackknifeDifference:
    """`figure` of all scenes together, with the interval that leaving out scenes gives it.

    `n` counts rows; `reach` is the most that the figure can be, either way.
    """
    if not n:
        return JackknifeDifference(Unmeasured("nothing was answered on both sides"))
    total = sums.sum(axis=0, keepdims=True)
    groups = np.arange(len(sums)) % MOST_GROUPS
    left = np.zeros((min(len(sums), MOST_GROUPS), sums.shape[1]))
    np.add.at(left, groups, sums)
    with np.errstate(divide="ignore", invalid="ignore"):  # where nothing is left
        value = float(figure(total)[0])
        without = figure(total - left)
    if not math.isfinite(value):
        return JackknifeDifference(Unmeasured("needs answers about real and about generated clips"))
    found = compute_difference_interval(
        value, JackknifeValues(without), n=n, few=len(sums), reach=reach
    )
    return (
        JackknifeDifference(found.estimate, found.p)
        if isinstance(found, DifferenceInterval)
        else JackknifeDifference(found)
    )


def jackknife_proportion(figure: Figure, sums: Array, *, n: int) -> Measured:
    """The same for a share in percent, whose interval stays between 0 and 100."""
    found = jackknife_difference(lambda each: figure(each) - _EVEN, sums, n=n, reach=_EVEN).value
    if isinstance(found, Unmeasured):
        return found
    value, low, high = (end + _EVEN for end in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high)


def estimate_percentage(count: int, n: int) -> Measured:
    """Return the fraction of `n` independent answers, in percent."""
    found = estimate_proportion(count, n)
    return found.scaled(PERCENT) if isinstance(found, Estimate) else found


def apply_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p-value as it counts among all that are there (Holm)."""
    counted = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(counted) for p in p_values]
