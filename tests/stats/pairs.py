"""Two reviewers' values about the same rows, compared as every figure is."""

import numpy.typing as npt

from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.jackknife_values import JackknifeGroups, jackknife_context
from unreel.stats.paired_differences import estimate_paired_difference
from unreel.stats.row_sample import Clusters


def mean_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    bounds: tuple[float, float] | None = None,
) -> Measured:
    """Mean of `first` less mean of `second`."""
    groups = JackknifeGroups()
    with jackknife_context(groups):
        ours, theirs = (
            bootstrap_mean(values, seed=0, clusters=clusters, bounds=bounds)
            for values in (first, second)
        )
    reach = {} if bounds is None else {"reach": bounds[1] - bounds[0]}
    gap = estimate_paired_difference(ours, theirs, groups=groups, **reach)
    return gap if isinstance(gap, Unmeasured) else gap.estimate
