"""How far two traces cover the same place at the same time.

A trace sweeps a tube through the clip: a box on every frame of its span. Between two marked boxes the
corners move evenly; before the first and after the last they stand still.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unreel.annotate.campaign import Copy
from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import Trace

Corners = npt.NDArray[np.float64]
"""x0, y0, x1, y1 at each of several instants."""


def corners_at(trace: Trace, instants_us: Sequence[int] | npt.NDArray[np.int64]) -> Corners:
    """Where a trace with a track is at `instants_us`, within its span or not."""
    at = np.array([mark.at_us for mark in trace.track], dtype=np.float64)
    marks = np.array([_corners(mark.box) for mark in trace.track])
    asked = np.asarray(instants_us, dtype=np.float64)
    return np.stack([np.interp(asked, at, marks[:, side]) for side in range(4)], axis=1)


def temporal_iou(one: TimeSpan, other: TimeSpan) -> float:
    """Time that both spans share, over the time that either takes."""
    shared = one.overlap_us(other)
    return shared / (one.length_us + other.length_us - shared)


def shared_box_iou(one: Trace, other: Trace, copy: Copy) -> float | None:
    """Mean over the frames of both spans of the boxes' IoU; `None` without such a frame or a track."""
    if not (one.track and other.track):
        return None
    shared = _frames(copy, one.span) & _frames(copy, other.span)
    if not shared:
        return None
    return float(_ious(one, other, _instants(copy, shared)).mean())


def tube_iou(one: Trace, other: Trace, copy: Copy) -> float | None:
    """Mean over the frames of either span of the boxes' IoU, 0 where only one trace is; `None` without a track."""
    if not (one.track and other.track):
        return None
    ours, theirs = _frames(copy, one.span), _frames(copy, other.span)
    shared = ours & theirs
    if not shared:
        return 0.0
    return float(_ious(one, other, _instants(copy, shared)).sum()) / len(ours | theirs)


def likeness(one: Trace, other: Trace, copy: Copy) -> float:
    """Tube IoU, or temporal IoU where one of them does not say where it is."""
    tube = tube_iou(one, other, copy)
    return temporal_iou(one.span, other.span) if tube is None else tube


def _corners(box: Box) -> tuple[float, float, float, float]:
    return box.x0, box.y0, box.x1, box.y1


def _frames(copy: Copy, span: TimeSpan) -> set[int]:
    """Frames on the screen during the span; one that only just touches it at its end is none."""
    first, last = copy.frame_at(span.start_us), copy.frame_at(span.end_us - 1)
    return set(range(first, last + 1))


def _instants(copy: Copy, frames: set[int]) -> npt.NDArray[np.int64]:
    return np.array([copy.at_us(frame) for frame in sorted(frames)], dtype=np.int64)


def _ious(one: Trace, other: Trace, instants_us: npt.NDArray[np.int64]) -> Corners:
    ours, theirs = corners_at(one, instants_us), corners_at(other, instants_us)
    sides = np.minimum(ours[:, 2:], theirs[:, 2:]) - np.maximum(ours[:, :2], theirs[:, :2])
    shared = np.clip(sides, 0, None).prod(axis=1)
    areas = (ours[:, 2:] - ours[:, :2]).prod(axis=1) + (theirs[:, 2:] - theirs[:, :2]).prod(axis=1)
    overlaps: Corners = np.minimum(1.0, shared / (areas - shared))
    return overlaps
