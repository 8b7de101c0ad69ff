"""Overlap of segments in time, and of their tubes in space and time.

Between two marked boxes the corners move evenly; before the first and after the last they stand still.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.core.trace import Trace
from unreel.stats.sample import Array

Corners = npt.NDArray[np.float64]
"""x0, y0, x1, y1 at each of several instants."""
INSTANTS: Final = 100
"""Equally spaced instants of the shared time at which the boxes of two tubes are compared."""


def corners_at(trace: Trace, instants_us: npt.ArrayLike) -> Corners:
    """Return the boxes of a tracked trace at `instants_us`, inside its span or not."""
    at = np.array([mark.at_us for mark in trace.track], dtype=np.float64)
    boxes = [mark.box for mark in trace.track]
    corners = np.array([(box.x0, box.y0, box.x1, box.y1) for box in boxes])
    asked = np.asarray(instants_us, dtype=np.float64)
    return np.stack([np.interp(asked, at, corners[:, side]) for side in range(4)], axis=1)


def compute_box_overlaps(ours: Corners, theirs: Corners) -> Array:
    """Compute the IoU of two boxes at each instant."""
    sides = np.minimum(ours[:, 2:], theirs[:, 2:]) - np.maximum(ours[:, :2], theirs[:, :2])
    shared = np.clip(sides, 0, None).prod(axis=1)
    areas = (ours[:, 2:] - ours[:, :2]).prod(axis=1) + (theirs[:, 2:] - theirs[:, :2]).prod(axis=1)
    overlaps: Array = np.minimum(1.0, shared / (areas - shared))
    return overlaps


def compute_tious(answered: Sequence[Trace], marked: Sequence[Trace]) -> Array:
    """Compute the temporal IoU of each answered segment (lines) with each marked segment (columns)."""
    starts, ends = _get_ends(answered)
    true_starts, true_ends = _get_ends(marked)
    shared = np.minimum.outer(ends, true_ends) - np.maximum.outer(starts, true_starts)
    shared = np.clip(shared, 0, None)
    union = np.add.outer(ends - starts, true_ends - true_starts) - shared
    tious: Array = shared / union
    return tious


def _get_ends(traces: Sequence[Trace]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = np.array([(t.span.start_us, t.span.end_us) for t in traces], np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def compute_viou(answered: Trace, marked: Trace) -> float:
    """Compute the IoU of two tubes: the box IoU over the shared time, divided by the time of the union.

    It is 0 if a trace has no boxes.
    """
    start, shared = _get_shared_time(answered, marked)
    if not shared or not answered.track or not marked.track:
        return 0.0
    instants = start + (np.arange(INSTANTS) + 0.5) * (shared / INSTANTS)
    overlaps = compute_box_overlaps(corners_at(answered, instants), corners_at(marked, instants))
    return float(overlaps.mean()) * answered.span.iou(marked.span)


def is_pointing_hit(answered: Trace, marked: Trace) -> bool:
    """Return whether the centre of the answered box is inside the marked box, in the middle of the shared time."""
    start, shared = _get_shared_time(answered, marked)
    if not shared or not answered.track or not marked.track:
        return False
    middle = [start + shared / 2]
    (ours,), (theirs,) = corners_at(answered, middle), corners_at(marked, middle)
    centre = (ours[:2] + ours[2:]) / 2
    return bool((theirs[:2] <= centre).all() and (centre <= theirs[2:]).all())


def _get_shared_time(one: Trace, other: Trace) -> tuple[int, int]:
    """Return the start and the length of the shared time, in microseconds."""
    return max(one.span.start_us, other.span.start_us), one.span.overlap_us(other.span)
