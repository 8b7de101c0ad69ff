"""One frame with a fault marked on it, for print and mail: whole, and cut out around the fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from unreel.core.box import Box
from unreel.media.decode import Rgb
from unreel.media.overlay import add_caption, draw_outline, paint

_AROUND: Final = 0.5
"""Margin on each side, as a fraction of the box's width and height."""
_LEAST_SIDE: Final = 64
_WANTED_SIDE: Final = 480
_MOST_TIMES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpot:
    """Position of a fault on one frame, and its drawing style."""

    box: Box
    colour: int = 0
    dashed: bool = False


def draw_whole(rgb: Rgb, spot: FaultSpot | None, sentences: Sequence[str]) -> Rgb:
    """Return the whole frame with the outline of `spot`, above a caption with `sentences`."""
    drawn = rgb.copy()
    if spot is not None:
        draw_outline(drawn, spot.box, paint(spot.colour), dashed=spot.dashed)
    return add_caption(drawn, sentences)


def draw_crop(rgb: Rgb, spot: FaultSpot, sentences: Sequence[str]) -> Rgb:
    """Return the region around the spot above `sentences`; small regions are enlarged."""
    height, width, _ = rgb.shape
    left, right = _compute_crop_range(spot.box.x0, spot.box.x1, width)
    top, bottom = _compute_crop_range(spot.box.y0, spot.box.y1, height)
    times = min(_MOST_TIMES, max(1, _WANTED_SIDE // max(right - left, bottom - top)))
    drawn = rgb[top:bottom, left:right].repeat(times, axis=0).repeat(times, axis=1)
    (x0, x1), (y0, y1) = (
        _convert_to_crop_fractions(spot.box.x0, spot.box.x1, side=width, shown=(left, right)),
        _convert_to_crop_fractions(spot.box.y0, spot.box.y1, side=height, shown=(top, bottom)),
    )
    draw_outline(drawn, Box(x0, y0, x1, y1), paint(spot.colour), dashed=spot.dashed)
    enlarged = "" if times == 1 else f", each pixel shown {times} x {times} times"
    told = f"Cut out of {width} x {height}: {left} to {right} across, {top} to {bottom} down{enlarged}."
    return add_caption(drawn, [*sentences, told])


def _compute_crop_range(low: float, high: float, side: int) -> tuple[int, int]:
    """Return the pixel range of one dimension: the box and its margin, inside the picture."""
    least = max(0.0, (_LEAST_SIDE / side - (high - low)) / 2)
    around = max(_AROUND * (high - low), least)
    return max(0, int((low - around) * side)), min(side, int((high + around) * side) + 1)


def _convert_to_crop_fractions(
    low: float, high: float, *, side: int, shown: tuple[int, int]
) -> tuple[float, float]:
    """Return the same range as fractions of the shown part."""
    first, end = shown
    parts = ((edge * side - first) / (end - first) for edge in (low, high))
    start, stop = (min(1.0, max(0.0, part)) for part in parts)
    return start, stop
