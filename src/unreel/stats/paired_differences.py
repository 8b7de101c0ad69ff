"""Differences between two reviewers on the same clips: jackknife intervals, tests and Holm correction.

A metric is computed without each group of clips in turn. The spread of these values estimates its
variance over other clips (Kott 2001). Two reviewers without the same groups give a paired
difference: common difficulty cancels.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import ROUNDING
from unreel.stats.clusters import LabelNumbering
from unreel.stats.jackknife_values import JackknifeEstimate, JackknifeGroups, JackknifeValues
from unreel.stats.power import compute_detectable_difference
from unreel.stats.resampling import compute_shared_variance

FEWEST = 6
"""Minimum number of clips for an interval at a level of 0.95."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceTestResult:
    """Difference of a metric between two reviewers, with its interval, p-value and standard error."""

    estimate: Estimate
    p: float
    """Two-sided p-value, below 0.05 exactly if the 95 % interval excludes 0."""
    error: float
    """Standard error of the difference."""
    free: float
    """Degrees of freedom of the standard error."""
    reach: float
    """Maximum absolute difference."""

    def detectable(self, alpha: float) -> float:
        """Return the smallest true difference that a test at level `alpha` finds with 80 % power."""
        return compute_detectable_difference(
            self.error,
            free=self.free,
            n_clusters=self.estimate.n_clusters or 0,
            reach=self.reach,
            alpha=alpha,
        )


def compute_difference_interval(
    value: float,
    jackknife_values: JackknifeValues,
    *,
    n: int,
    few: int,
    reach: float = math.inf,
    level: float = 0.95,
) -> DifferenceTestResult | Unmeasured:
    """Compute the confidence interval of the difference `value` from its values without each group.

    The interval uses Student's t. Its degrees of freedom follow from the kurtosis of the groups
    (Satterthwaite): if few clips cause the whole difference, the degrees of freedom are few. If
    creators vary too, their variance is added as in every other interval: see
    `unreel.stats.resampling`.

    `n` counts the rows of the metric, `few` their scenes; `reach` is the maximum absolute
    difference.
    """
    bare = f"the bare value is {value:.4g}"
    if few < FEWEST:
        reason = f"an interval at level {level:g} needs {FEWEST} clips or scenes in common"
        return Unmeasured(f"{reason}, here are {few}; {bare}")
    if not np.isfinite(jackknife_values.scenes).all():
        reason = "the figure rests on so few clips that it has no value without some of them"
        return Unmeasured(f"{reason}; {bare}")
    variance, free = _estimate_total_variance(jackknife_values)
    error = math.sqrt(variance)
    if error <= ROUNDING * max(1.0, abs(value)):
        if math.isinf(reach):
            return Unmeasured(f"all clips are alike; the bare value is {value:.4g}")
        share = 1 - (1 - level) ** (1 / few)
        low, high = value - share * (value + reach), value + share * (reach - value)
        estimate = _build_clipped_estimate(
            value, (low, high), n=n, few=few, reach=reach, level=level
        )
        p = 1.0 if value == 0 else 2.0 ** (1 - few)
        return DifferenceTestResult(estimate=estimate, p=p, error=0.0, free=few - 1.0, reach=reach)
    from scipy.special import stdtr, stdtrit

    out = -float(stdtrit(free, (1 - level) / 2)) * error
    return DifferenceTestResult(
        estimate=_build_clipped_estimate(
            value, (value - out, value + out), n=n, few=few, reach=reach, level=level
        ),
        p=2 * float(stdtr(free, -abs(value) / error)),
        error=error,
        free=free,
        reach=reach,
    )


def _estimate_total_variance(jackknife_values: JackknifeValues) -> tuple[float, float]:
    """Return the variance over scenes and creators, and its degrees of freedom."""
    by_scene, free = _estimate_group_variance(jackknife_values.scenes)
    rest = (jackknife_values.creators, jackknife_values.cells)
    if any(part is None or not np.isfinite(part).all() for part in rest):
        return by_scene, free
    (by_creator, creator_free), (by_cell, _) = (
        _estimate_group_variance(np.asarray(part)) for part in rest
    )
    scenes, creators, cells = (np.array(each) for each in (by_scene, by_creator, by_cell))
    twice = float(compute_shared_variance(scenes, creators, cells, jackknife_values.crossing))
    variance = by_scene + by_creator - twice
    squares = by_scene**2 / free + by_creator**2 / creator_free
    return variance, variance**2 / squares if squares else free


def _estimate_group_variance(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    groups, away = len(values), values - values.mean()
    total = float((away**2).sum())
    variance, free = total * (groups - 1) / groups, groups - 1.0
    kurtosis = groups * float(((away**2 / total) ** 2).sum()) if total else 0.0
    if kurtosis > 1:
        free = min(free, 2 * groups / (kurtosis - 1))
    return variance, free


def _build_clipped_estimate(
    value: float, ends: tuple[float, float], *, n: int, few: int, reach: float, level: float
) -> Estimate:
    low, high = max(ends[0], -reach), min(ends[1], reach)
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), n=n, level=level, n_clusters=few
    )


def adjust_p_values_by_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted for multiple tests by Holm's method (1979), in the same order.

    If adjusted p-values of at most 0.05 count as different, at most 5 of 100 such families of tests
    contain a false difference, however the tests depend on each other.
    """
    n = len(p_values)
    adjusted = [1.0] * n
    so_far = 0.0
    for rank, index in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        so_far = max(so_far, min(1.0, (n - rank) * p_values[index]))
        adjusted[index] = so_far
    return tuple(adjusted)


def estimate_paired_difference(
    ours: Measured, theirs: Measured, *, groups: JackknifeGroups, reach: float = math.inf
) -> DifferenceTestResult | Unmeasured:
    """Return first minus second metric, on the same clips in `jackknife_context`, within `reach`."""
    for measured in (ours, theirs):
        if isinstance(measured, Unmeasured):
            return measured
    if not isinstance(ours, JackknifeEstimate) or not isinstance(theirs, JackknifeEstimate):
        return Unmeasured("this metric has no cluster information")
    without = ours.without.less(theirs.without, groups)
    n, few = min(ours.n, theirs.n), min(ours.n_clusters or 0, theirs.n_clusters or 0)
    return compute_difference_interval(
        ours.value - theirs.value, without, n=n, few=few, reach=reach
    )


Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedRowIndices:
    """Indices of the rows of two reviewers about the same clip, in the order of the first reviewer."""

    ours: Places
    theirs: Places
    shown: Places
    """Index of the clip, or the pair of clips, of each pair of rows."""
    n_unshared: int
    """Number of clips, or pairs of clips, with a row that has no counterpart."""

    @property
    def n_shown(self) -> int:
        """Count the distinct clips, or pairs of clips."""
        return len(np.unique(self.shown))

    def at(self, chosen: npt.NDArray[np.bool_]) -> "PairedRowIndices":
        """Return the row pairs that the mask `chosen` selects."""
        return replace(
            self, ours=self.ours[chosen], theirs=self.theirs[chosen], shown=self.shown[chosen]
        )


def pair_rows_by_clip(ours: Iterable[str], theirs: Iterable[str]) -> PairedRowIndices:
    """Pair the rows of two reviewers by clip; pair repeated rows of a clip by their order."""
    labels = LabelNumbering(max_labels=0)
    n_ours = 0
    for clip in ours:
        labels.add(clip)
        n_ours += 1
    for clip in theirs:
        labels.add(clip)
    number = labels.numbers().astype(np.int64)
    first, second = number[:n_ours], number[n_ours:]
    first_nth, second_nth = _count_earlier_occurrences(first), _count_earlier_occurrences(second)
    n = 1 + max(int(first_nth.max(initial=0)), int(second_nth.max(initial=0)))
    _, first_rows, second_rows = np.intersect1d(
        first * n + first_nth, second * n + second_nth, assume_unique=True, return_indices=True
    )
    order = np.argsort(first_rows)
    unshared = np.ones(len(number), np.bool_)
    unshared[first_rows] = unshared[n_ours + second_rows] = False
    return PairedRowIndices(
        ours=first_rows[order],
        theirs=second_rows[order],
        shown=first[first_rows[order]],
        n_unshared=len(np.unique(number[unshared])),
    )


def _count_earlier_occurrences(numbers: Places) -> Places:
    """Return for each number how many equal numbers come before it."""
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    nth = np.empty(len(numbers), np.int64)
    lengths = np.diff(starts, append=len(numbers))
    nth[order] = np.arange(len(numbers)) - np.repeat(starts, lengths)
    return nth
