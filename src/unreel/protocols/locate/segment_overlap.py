"""Overlap of segments in time, and of tubes (boxes over time) in space and time.

Corners are interpolated linearly between two annotated boxes; before the first box and after the
last box they are constant.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unreel.core.trace import Trace
from unreel.stats.row_sample import Array

Corners = npt.NDArray[np.float64]
"""Box corners x0, y0, x1, y1 at each of several instants."""
INSTANTS = 100
"""Number of equally spaced instants of the shared time at which the boxes of two tubes are compared."""


def interpolate_trace_boxes(trace: Trace, instants_us: npt.ArrayLike) -> Corners:
    """Interpolate the boxes of a trace at each of `instants_us`, also outside of its time span."""
    at = np.array([mark.at_us for mark in trace.track], dtype=np.float64)
    boxes = [mark.box for mark in trace.track]
    corners = np.array([(box.x0, box.y0, box.x1, box.y1) for box in boxes])
    instants = np.asarray(instants_us, dtype=np.float64)
    return np.stack([np.interp(instants, at, corners[:, edge]) for edge in range(4)], axis=1)


def compute_box_ious(a: Corners, b: Corners) -> Array:
    """Compute the IoU of two moving boxes at each instant."""
    sides = np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2])
    shared = np.clip(sides, 0, None).prod(axis=1)
    areas = (a[:, 2:] - a[:, :2]).prod(axis=1) + (b[:, 2:] - b[:, :2]).prod(axis=1)
    overlaps: Array = np.minimum(1.0, shared / (areas - shared))
    return overlaps


def compute_temporal_ious(answered_trace: Sequence[Trace], marked_trace: Sequence[Trace]) -> Array:
    """Compute the temporal IoU of each answered segment (rows) with each annotated segment (columns)."""
    starts, ends = _get_start_and_end_times(answered_trace)
    true_starts, true_ends = _get_start_and_end_times(marked_trace)
    shared = np.minimum.outer(ends, true_ends) - np.maximum.outer(starts, true_starts)
    shared = np.clip(shared, 0, None)
    union = np.add.outer(ends - starts, true_ends - true_starts) - shared
    tious: Array = shared / union
    return tious


def _get_start_and_end_times(
    traces: Sequence[Trace],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    ends = np.array([(t.span.start_us, t.span.end_us) for t in traces], np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def compute_tube_iou(answered_trace: Trace, marked_trace: Trace) -> float:
    """Compute mean box IoU over the shared time, times temporal IoU; 0 if a trace has no boxes."""
    start, shared = _get_shared_time(answered_trace, marked_trace)
    if not shared or not answered_trace.track or not marked_trace.track:
        return 0.0
    instants = start + (np.arange(INSTANTS) + 0.5) * (shared / INSTANTS)
    overlaps = compute_box_ious(
        interpolate_trace_boxes(answered_trace, instants),
        interpolate_trace_boxes(marked_trace, instants),
    )
    return float(overlaps.mean()) * answered_trace.span.iou(marked_trace.span)


def is_pointing_hit(answered_trace: Trace, marked_trace: Trace) -> bool:
    """Return whether the centre of the answered box is inside the marked box, in the middle of the shared time."""
    start, shared = _get_shared_time(answered_trace, marked_trace)
    if not shared or not answered_trace.track or not marked_trace.track:
        return False
    middle = [start + shared / 2]
    (box,), (marked_box,) = (
        interpolate_trace_boxes(answered_trace, middle),
        interpolate_trace_boxes(marked_trace, middle),
    )
    centre = (box[:2] + box[2:]) / 2
    return bool((marked_box[:2] <= centre).all() and (centre <= marked_box[2:]).all())


def _get_shared_time(first: Trace, second: Trace) -> tuple[int, int]:
    """Return the start and the length of the time that two traces share, in microseconds."""
    return max(first.span.start_us, second.span.start_us), first.span.overlap_us(second.span)
