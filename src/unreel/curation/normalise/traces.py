"""Traces follow the cut and the picture: where and when they are once a piece is a file of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.media.normalise import NormalForm
from unreel.media.render import PixelCrop

FRAME: Final = Box(0, 0, 1, 1)
"""All of a frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMapping:
    """Visible window of the old frame, and its window in the new one, both as fractions."""

    window: Box = FRAME
    shown_in: Box = FRAME

    def map(self, box: Box) -> Box | None:
        """`box` of the old frame in the new one; None where nothing of it is shown."""
        x0, x1 = (_across(x, self.window.x0, self.window.x1) for x in (box.x0, box.x1))
        y0, y1 = (_across(y, self.window.y0, self.window.y1) for y in (box.y0, box.y1))
        if x0 >= x1 or y0 >= y1:
            return None
        into = self.shown_in
        width, height = into.x1 - into.x0, into.y1 - into.y0
        return Box(
            into.x0 + x0 * width,
            into.y0 + y0 * height,
            min(1.0, into.x0 + x1 * width),
            min(1.0, into.y0 + y1 * height),
        )


def carry_traces(
    traces: Sequence[Trace], *, span: TimeSpan, view: FrameMapping
) -> tuple[Trace, ...]:
    """`traces` as they are in the piece that shows `view` during `span`; others are let go."""
    return tuple(
        carried for trace in traces if (carried := _carried(trace, span, view)) is not None
    )


def _carried(trace: Trace, span: TimeSpan, view: FrameMapping) -> Trace | None:
    shared_us = trace.span.overlap_us(span)
    if not shared_us:
        return None
    start_us = max(trace.span.start_us, span.start_us) - span.start_us
    marks = [
        BoxAt(mark.at_us - span.start_us, box)
        for mark in trace.track
        if span.start_us <= mark.at_us < span.end_us and (box := view.map(mark.box)) is not None
    ]
    if trace.track and not marks:
        return None
    return replace(trace, span=TimeSpan(start_us, start_us + shared_us), track=tuple(marks))


def _across(place: float, first: float, last: float) -> float:
    return min(1.0, max(0.0, (place - first) / (last - first)))


def fitted(width: int, height: int, form: NormalForm) -> PixelCrop:
    """Return the window where `fit_inside` puts a picture of `width` x `height`."""
    scale = min(Fraction(form.width, width), Fraction(form.height, height))
    wide, high = (max(1, round(side * scale)) for side in (width, height))
    return PixelCrop(
        left=(form.width - wide) // 2, top=(form.height - high) // 2, width=wide, height=high
    )
