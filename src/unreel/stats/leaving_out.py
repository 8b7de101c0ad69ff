"""Figures without parts of their clips: what every figure is asked for when two reviewers are compared.

Whoever scores inside `leaving_out` gets figures that also tell what they would be without each group of
clips. Formulas stay where they are: a figure is a function of weights, and a clip left out weighs 0.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Estimate

MOST_GROUPS: Final = 100
"""More groups would cost time and hardly narrow an interval."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Scenes, numbered as they are met and dealt in turn to `MOST_GROUPS` groups at most."""

    known: dict[str, int] = field(default_factory=dict)

    def number(self, scenes: Iterable[str]) -> npt.NDArray[np.int64]:
        """The number of each scene: the same in every set of rows that shares these groups."""
        known = self.known
        return np.array([known.setdefault(scene, len(known)) for scene in scenes], dtype=np.int64)

    @property
    def n(self) -> int:
        """How many groups hold something."""
        return min(len(self.known), MOST_GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(Estimate):
    """A value, and what it is without each group; it has no interval of its own."""

    without: tuple[float, ...]
    """By group, as many as there can be; NaN where nothing is left to calculate it from."""

    def scaled(self, factor: float) -> "LeftOut":
        """The same in another unit."""
        value = self.value * factor
        without = tuple(each * factor for each in self.without)
        return replace(self, value=value, low=value, high=value, without=without)


_GROUPS: Final[ContextVar[Groups | None]] = ContextVar("groups", default=None)


@contextmanager
def leaving_out(groups: Groups) -> Iterator[None]:
    """Inside, figures are `LeftOut`; every set of rows that is scored shares `groups`."""
    before = _GROUPS.set(groups)
    try:
        yield
    finally:
        _GROUPS.reset(before)


def asked_groups() -> Groups | None:
    """The groups that are to be left out; `None` where intervals are wanted, as nearly always."""
    return _GROUPS.get()
