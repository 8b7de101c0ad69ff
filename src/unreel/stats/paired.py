"""Two reviewers on the same clips."""

import math

from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.jackknife import DifferenceInterval, enclose_difference
from unreel.stats.leaving_out import JackknifeEstimate, JackknifeGroups


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
    return enclose_difference(ours.value - theirs.value, without, n=n, few=few, reach=reach)
