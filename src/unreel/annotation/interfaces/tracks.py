"""A box that moves: a screen's key frames and a trace's track, exact both ways.

A screen counts frames from 1. A box is seen from its first key frame on; it rests or moves evenly up
to the next one. A key frame that is switched off is the last on which the box is seen; where none is,
the box is seen to the clip's end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unreel.annotation.campaign import ClipCopy
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFrame:
    """Box that a person set on one frame."""

    frame: int
    """Counts from 1."""
    box: Box
    enabled: bool
    """Whether the box is seen on the frame after this one."""


def read_track(
    keys: Sequence[KeyFrame],
    copy: ClipCopy,
    *,
    categories: frozenset[Category] = frozenset(),
    explanation: str = "",
) -> tuple[Trace, ...]:
    """Return the traces of a box: one for each continuous range of frames that show the box."""
    return tuple(
        Trace(
            span=TimeSpan(copy.at_us(run[0].frame - 1), copy.at_us(_get_last_frame(run, copy))),
            track=tuple(BoxAt(copy.at_us(key.frame - 1), key.box) for key in run),
            categories=categories,
            explanation=explanation,
        )
        for run in _iter_visible_runs(keys)
    )


def write_track(trace: Trace, copy: ClipCopy) -> tuple[KeyFrame, ...]:
    """Return key frames that show a trace on every frame of its span and on no other.

    Raises:
        InvalidValueError: The trace has no box.
    """
    if not trace.track:
        msg = "a trace without a box cannot stand on a screen. Leave it out, or mark its place"
        raise InvalidValueError(msg)
    boxes: dict[int, Box] = {}
    for mark in trace.track:
        boxes.setdefault(copy.frame_at(mark.at_us) + 1, mark.box)
    first = copy.frame_at(trace.span.start_us) + 1
    last = max(copy.frame_at(trace.span.end_us - 1) + 1, *boxes)
    boxes.setdefault(first, trace.track[0].box)
    if last < copy.n_frames:
        boxes.setdefault(last, boxes[max(boxes)])
    return tuple(
        KeyFrame(frame=frame, box=boxes[frame], enabled=frame != last or last == copy.n_frames)
        for frame in sorted(boxes)
    )


def _iter_visible_runs(keys: Sequence[KeyFrame]) -> Iterator[list[KeyFrame]]:
    run: list[KeyFrame] = []
    for key in keys:
        run.append(key)
        if not key.enabled:
            yield run
            run = []
    if run:
        yield run


def _get_last_frame(run: Sequence[KeyFrame], copy: ClipCopy) -> int:
    """Return the number of the last frame of a range, counted from 1."""
    return copy.n_frames if run[-1].enabled else run[-1].frame
