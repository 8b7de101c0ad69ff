"""Two reviewers on the same clips."""

import math
from collections.abc import Sequence

from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.jackknife import DifferenceInterval, compute_difference_interval
from unreel.stats.jackknife_values import JackknifeEstimate, JackknifeGroups


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted for multiple tests by Holm's method (1979), in the same order.

    If adjusted p-values of at most 0.05 count as different, at most 5 of 100 such families of tests
    contain a false difference, however the tests depend on each other.
    """
    n = len(p_values)
    counted = [1.0] * n
    so_far = 0.0
    for rank, place in enumerate(sorted(range(n), key=lambda i: p_values[i])):
        so_far = max(so_far, min(1.0, (n - rank) * p_values[place]))
        counted[place] = so_far
    return tuple(counted)


def paired_difference(
    ours: Measured, theirs: Measured, *, groups: JackknifeGroups, reach: float = math.inf
) -> DifferenceInterval | Unmeasured:
    """Return the first metric minus the second, both computed inside `leaving_out(groups)`.

    Both must be figures of the same clips. `reach` is the most that they can differ by.
    """
    for found in (ours, theirs):
        if isinstance(found, Unmeasured):
            return found
    if not isinstance(ours, JackknifeEstimate) or not isinstance(theirs, JackknifeEstimate):
        return Unmeasured("this metric has no cluster information")
    without = ours.without.less(theirs.without, groups)
    n, few = min(ours.n, theirs.n), min(ours.n_clusters or 0, theirs.n_clusters or 0)
    return compute_difference_interval(
        ours.value - theirs.value, without, n=n, few=few, reach=reach
    )
