"""Reward of one clip: a value with its parts and its reward map, or a failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.span import MICROSECONDS
from unreel.core.verdict import Verdict

FORMULA = "reward@1"
PARTS = ("real_probability", "realism", "traced_volume", "agreement")
_STEPS_PER_S = 8
_MAX_STEPS = 80
_LONGEST_SIDE = 64


@dataclass(frozen=True, slots=True)
class RewardMapTrace:
    """Trace of one reviewer in a reward map: a box from an onset to the end of the clip."""

    box: Box
    start_us: int
    end_us: int | None = None
    """End of the trace; `None` for the end of the clip."""


@dataclass(frozen=True, kw_only=True)
class RewardMap:
    """Reward of each cell of a clip in time, height and width: 0 if all reviewers mark it, 1 if none.

    A cell that a box covers partly counts partly, so the mean of `array` is 1 minus the part
    `traced_volume`.
    """

    traces: tuple[RewardMapTrace | None, ...]
    """Trace of each reviewer; `None` for a reviewer that calls the clip real."""
    duration_us: int
    width: int
    height: int
    tubes: tuple[tuple[RewardMapTrace, ...], ...] = ()
    """Boxes over time of each reviewer that located segments; overlaps count once."""

    def __post_init__(self) -> None:
        if not (self.traces or self.tubes) or min(self.duration_us, self.width, self.height) <= 0:
            raise InvalidValueError(
                "a map needs a reviewer and a clip of some length and size. Check the clip's facts"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the numbers of time steps, rows and columns of the map."""
        n_steps = round(self.duration_us / MICROSECONDS * _STEPS_PER_S)
        scale = min(1.0, _LONGEST_SIDE / max(self.width, self.height))
        size = (max(1, round(side * scale)) for side in (self.height, self.width))
        return (min(_MAX_STEPS, max(1, n_steps)), *size)  # type: ignore[return-value]  # two sides

    @cached_property
    def array(self) -> NDArray[np.float32]:
        """Return the map as a float32 array of time x height x width, from 0 to 1, without NaN."""
        marked = np.zeros(self.shape)
        for trace in filter(None, self.traces):
            marked += self._cover(trace)
        for tube in self.tubes:
            marked += self._cover_tube(tube)
        return np.clip(1 - marked / (len(self.traces) + len(self.tubes)), 0, 1).astype(np.float32)

    def _cover_tube(self, tube: tuple[RewardMapTrace, ...]) -> NDArray[np.float64]:
        covered = np.zeros(self.shape)
        for trace in tube:
            np.maximum(covered, self._cover(trace), out=covered)
        return covered

    def _cover(self, trace: RewardMapTrace) -> NDArray[np.float64]:
        n_steps, n_rows, n_columns = self.shape
        end_us = self.duration_us if trace.end_us is None else trace.end_us
        onset, end = (min(1.0, at / self.duration_us) for at in (trace.start_us, end_us))
        return np.asarray(
            _compute_cell_coverage(n_steps, onset, end)[:, None, None]
            * _compute_cell_coverage(n_rows, trace.box.y0, trace.box.y1)[None, :, None]
            * _compute_cell_coverage(n_columns, trace.box.x0, trace.box.x1)[None, None, :]
        )

    @property
    def instants_s(self) -> NDArray[np.float64]:
        """Return the middle of each time step, in seconds after the start of the clip."""
        n_steps = self.shape[0]
        return (np.arange(n_steps) + 0.5) * self.duration_us / MICROSECONDS / n_steps


@dataclass(frozen=True, slots=True)
class ReviewerVerdict:
    """Verdict of one reviewer about a clip under one protocol, or the failure."""

    reviewer: str
    protocol: str
    outcome: Verdict | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """Reward of a clip, 0 to 1 (1 = looks real), or a failure; exactly one of the two."""

    value: float | None
    failure: Failure | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    """Measured parts, by their name in `PARTS`."""
    verdicts: tuple[ReviewerVerdict, ...] = ()
    calibrated: bool = False
    """Whether each probability in the value was calibrated."""
    formula: str = FORMULA
    map: RewardMap | None = None

    def __post_init__(self) -> None:
        if (self.value is None) != (self.failure is not None):
            raise InvalidValueError("a reward is a value or a failure. Give one of them")
        if self.value is not None and not 0 <= self.value <= 1:
            raise InvalidValueError(f"reward must be between 0 and 1, got {self.value}")

    def __str__(self) -> str:
        if self.value is None:
            return f"no reward: {self.failure}"
        parts = ", ".join(f"{name} {part:.3f}" for name, part in self.parts.items())
        state = "calibrated" if self.calibrated else "not calibrated"
        return f"{self.value:.3f} ({self.formula}, {state}; {parts})"


def _compute_cell_coverage(n_cells: int, low: float, high: float) -> NDArray[np.float64]:
    """Return for each of `n_cells` equal cells of [0, 1] the fraction between `low` and `high`."""
    first = np.arange(n_cells)
    covered = np.minimum(first + 1, high * n_cells) - np.maximum(first, low * n_cells)
    return np.asarray(np.clip(covered, 0, 1), np.float64)
