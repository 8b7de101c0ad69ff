"""Two reviewers on the same clips."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_mean, check_bounds
from unreel.stats.sample import Clusters, Ties


def paired_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Measured:
    """Mean of `first` less mean of `second` over the rows that both have; n counts clips in common.

    Row i of both is the same question; NaN says that this reviewer has no value there. `bounds` are
    the least and the most that one value, not one difference, can be.
    """
    ours = np.asarray(first, dtype=np.float64)
    theirs = np.asarray(second, dtype=np.float64)
    if ours.shape != theirs.shape or ours.ndim != 1:
        msg = f"reviewers must have the same rows, got {ours.shape} and {theirs.shape}. Align them"
        raise InvalidValueError(msg)
    ties = Ties.of(clusters, len(ours))
    both = ~(np.isnan(ours) | np.isnan(theirs))
    if not both.any():
        return Unmeasured("the reviewers have no clip in common")
    reach = None
    if bounds is not None:
        check_bounds(np.concatenate([ours[both], theirs[both]]), bounds)
        reach = (bounds[0] - bounds[1], bounds[1] - bounds[0])
    common = ties.only(both)
    gap = ours[both] - theirs[both]
    measured = bootstrap_mean(gap, seed=seed, clusters=common, bounds=reach, level=level)
    if isinstance(measured, Unmeasured):
        return measured
    return replace(measured, n=common.n_scenes)
