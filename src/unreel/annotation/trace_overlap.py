"""Overlap of two traces in space and time.

A trace sweeps a tube through the clip: a box on every frame of its span. Between two marked boxes the
corners move evenly; before the first and after the last they stand still.
"""

from dataclasses import dataclass

import numpy as np

from unreel.annotation.campaign import ClipCopy
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import Trace
from unreel.protocols.locate.overlap import Corners, compute_box_overlaps, corners_at


@dataclass(frozen=True, slots=True, eq=False)
class TraceTube:
    """Boxes of a trace on every frame of its span."""

    span: TimeSpan
    first: int
    """Number of its first frame."""
    end: int
    """Number of the frame after its last one."""
    corners: Corners | None
    """Of each of its frames; `None` where the trace does not say where it is."""


def sweep(trace: Trace, copy: ClipCopy) -> TraceTube:
    """Return the boxes of a trace on every frame of its span in `copy`."""
    first, end = copy.frame_at(trace.span.start_us), copy.frame_at(trace.span.end_us - 1) + 1
    if not trace.track:
        return TraceTube(trace.span, first, end, None)
    instants_us = np.rint(np.arange(first, end) * (MICROSECONDS / float(copy.rate)))
    return TraceTube(trace.span, first, end, corners_at(trace, instants_us.astype(np.int64)))


def temporal_iou(one: TimeSpan, other: TimeSpan) -> float:
    """Compute the IoU of two time spans: shared time divided by the time of their union."""
    return one.iou(other)


def shared_box_iou(one: TraceTube, other: TraceTube) -> float | None:
    """Compute the mean IoU of the boxes over the frames that both spans share.

    Return `None` if there is no shared frame, or if a trace has no boxes.
    """
    overlaps = _compute_frame_overlaps(one, other)
    return None if overlaps is None or not len(overlaps) else float(overlaps.mean())


def tube_iou(one: TraceTube, other: TraceTube) -> float | None:
    """Compute the mean IoU of the boxes over all frames of either span.

    A frame of only one trace counts as 0. Return `None` if a trace has no boxes.
    """
    overlaps = _compute_frame_overlaps(one, other)
    if overlaps is None:
        return None
    either = (one.end - one.first) + (other.end - other.first) - len(overlaps)
    return float(overlaps.sum()) / either


def measure_similarity(one: Trace, other: Trace, copy: ClipCopy) -> float:
    """Return the similarity of two traces, from 0 to 1."""
    return measure_overlap(sweep(one, copy), sweep(other, copy))


def measure_overlap(one: TraceTube, other: TraceTube) -> float:
    """Compute the tube IoU of two traces, or the temporal IoU if a trace has no boxes."""
    found = tube_iou(one, other)
    return temporal_iou(one.span, other.span) if found is None else found


def _compute_frame_overlaps(one: TraceTube, other: TraceTube) -> Corners | None:
    """Compute the IoU of the boxes on each shared frame; `None` if a trace has no boxes."""
    if one.corners is None or other.corners is None:
        return None
    first, end = max(one.first, other.first), min(one.end, other.end)
    if first >= end:
        return np.zeros(0)
    ours = one.corners[first - one.first : end - one.first]
    theirs = other.corners[first - other.first : end - other.first]
    return compute_box_overlaps(ours, theirs)
