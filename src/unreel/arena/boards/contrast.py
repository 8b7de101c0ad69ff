"""Paired differences between two conditions, from sums over scenes.

Pairing cancels the difficulty that both conditions share.
"""

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
    """A value with its confidence interval, and the p-value of its difference from 0."""

    value: Measured
    p: float | None = None


def sum_scenes(scene: IntArray, *columns: Array) -> Array:
    """Sum `columns` of equal length within each scene that has a row; return one row per scene."""
    _, place = np.unique(scene, return_inverse=True)
    sums = [np.bincount(place, weights=column) for column in columns]
    return np.stack(sums, axis=1) if len(scene) else np.zeros((0, len(columns)))


def jackknife_difference(
    figure: Figure, sums: Array, *, n: int, reach: float = math.inf
) -> JackknifeDifference:
    """Compute `figure` over all scenes, with a jackknife confidence interval over scenes.

    `n` is the number of rows. `reach` is the largest possible absolute value of the figure.
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
    """Compute a percentage with a jackknife confidence interval between 0 and 100.

    The method is that of `jackknife_difference`.
    """
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
    """Return the p-values with Holm's correction; `None` stays `None` and does not count."""
    counted = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(counted) for p in p_values]
