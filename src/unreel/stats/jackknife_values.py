"""Values of a metric with each group of clips left out, for the comparison of two reviewers.

Metrics that are computed inside `jackknife_context` also give their values without each group
of clips. The formulas do not change: a metric is a function of weights, and an omitted clip has
weight 0.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Estimate
from unreel.stats.label_digests import LabelDigestList

MAX_GROUPS = 100
"""Maximum number of groups; more would cost time and hardly narrow an interval."""


@dataclass(frozen=True, slots=True)
class JackknifeGroups:
    """Numbers of scenes and creators, which assign them in turn to at most `MAX_GROUPS` groups."""

    scenes: LabelDigestList = field(default_factory=LabelDigestList)
    creators: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JackknifeValues:
    """Values of a metric with each group left out, by group; NaN if too little remains to compute it."""

    scenes: npt.NDArray[np.float64]
    creators: npt.NDArray[np.float64] | None = None
    """Values without each group of creators; `None` if creators are too few to generalise."""
    cells: npt.NDArray[np.float64] | None = None
    """Values without each group of cells, one scene by one creator."""
    crossing: tuple[float, float, float] = (0.0, 1.0, 1.0)
    """Degree to which creators and scenes cross, and the number of each: see `RowSample.crossing`."""

    def less(self, other_values: "JackknifeValues", groups: JackknifeGroups) -> "JackknifeValues":
        """Return these values minus `other_values`, for the groups that contain a scene or a creator."""
        n_scenes, n_creators = len(groups.scenes), len(groups.creators)
        scenes = (self.scenes - other_values.scenes)[:n_scenes]
        if self.creators is None or other_values.creators is None:
            return JackknifeValues(scenes)
        creators = (self.creators - other_values.creators)[:n_creators]
        cells = (
            None
            if self.cells is None or other_values.cells is None
            else self.cells - other_values.cells
        )
        return JackknifeValues(scenes, creators, cells, self.crossing)

    def scaled(self, factor: float) -> "JackknifeValues":
        """Return the values multiplied by `factor`."""
        return replace(
            self,
            scenes=self.scenes * factor,
            creators=None if self.creators is None else self.creators * factor,
            cells=None if self.cells is None else self.cells * factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JackknifeEstimate(Estimate):
    """Value of a metric, and its values without each group; it has no confidence interval."""

    leave_out: Callable[[], JackknifeValues]
    """Function that computes the values on demand, because few metrics of a scorecard are compared."""
    unit: float = 1.0
    """Factor by which the values are multiplied."""

    @property
    def without(self) -> JackknifeValues:
        """Return the values of the metric with each group left out."""
        return self.leave_out().scaled(self.unit)

    def scaled(self, factor: float) -> "JackknifeEstimate":
        """Return the estimate multiplied by `factor`."""
        value = self.value * factor
        return replace(self, value=value, low=value, high=value, unit=self.unit * factor)


_GROUPS: ContextVar[JackknifeGroups | None] = ContextVar("groups", default=None)


@contextmanager
def jackknife_context(groups: JackknifeGroups) -> Iterator[None]:
    """Make metrics in the block return `JackknifeEstimate`; compared sets of rows share `groups`."""
    before = _GROUPS.set(groups)
    try:
        yield
    finally:
        _GROUPS.reset(before)


def get_jackknife_groups() -> JackknifeGroups | None:
    """Return the groups to leave out; `None` outside `jackknife_context`, where intervals are used."""
    return _GROUPS.get()
