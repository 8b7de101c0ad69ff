"""Rendering of annotations: boxes on the picture, and verdicts in a panel below it.

No text covers the picture, and a box is drawn around its area, which stays visible.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from unicodedata import normalize

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from unreel.core.box import Box
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.decode import Rgb

Colour = tuple[int, int, int]

PALETTE: tuple[Colour, ...] = (
    (255, 99, 72),
    (46, 196, 182),
    (255, 190, 11),
    (131, 98, 255),
    (80, 160, 255),
    (255, 110, 199),
)
"""Colours that differ in brightness as well as in hue, and are visible on dark and on light pictures."""
NARROWEST = 480
"""Minimum width of a panel in pixels, so that its text is readable."""

_INK: Colour = (18, 20, 26)
_PAPER: Colour = (240, 242, 246)
_BAR: Colour = (27, 30, 38)
_GROOVE: Colour = (58, 63, 76)
_MUTED: Colour = (168, 175, 190)
_MAX_LINES = 3
_DASHED = "A dashed box or bar: no end was named, so it is drawn to the end of the clip."
_REPLACEMENT = "\ufffd"
_PLAINER = {"\u2013": "-", "\u2014": "-", "\u00d7": "x"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayTrace:
    """A trace to draw on a clip: time span, and boxes over time."""

    span: TimeSpan
    track: tuple[BoxAt, ...] = ()
    ends: bool = True
    """Whether an end was named; if not, the trace is drawn dashed."""

    def box_at(self, at_us: int) -> Box | None:
        """Return the box at the time `at_us`; `None` outside the span or without boxes.

        Positions between two boxes are interpolated linearly; before the first and after the last box
        the position is constant.
        """
        if not self.track or not self.span.start_us <= at_us < self.span.end_us:
            return None
        index = bisect_right(self.track, at_us, key=lambda mark: mark.at_us)
        before, after = self.track[max(0, index - 1)], self.track[min(index, len(self.track) - 1)]
        if after.at_us <= before.at_us:
            return before.box
        fraction = (at_us - before.at_us) / (after.at_us - before.at_us)
        edges = zip(astuple(before.box), astuple(after.box), strict=True)
        return Box(*(min(1.0, first + fraction * (last - first)) for first, last in edges))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerOverlayLane:
    """One reviewer's text and traces in the panel; `colour` is an index into the palette."""

    text: str
    """Name of the reviewer and its answer; also shown if it marks nothing or gave no answer."""
    colour: int = 0
    traces: tuple[OverlayTrace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayCommentary:
    """All annotations of one clip: boxes to draw on its picture, and text for the panel below."""

    lanes: tuple[ReviewerOverlayLane, ...]
    duration_us: int
    notes: tuple[str, ...] = ()


class OverlayPainter:
    """Painter of the annotations of one clip on its frames; `size` is the size of its output."""

    def __init__(self, commentary: OverlayCommentary, *, width: int, height: int) -> None:
        self._commentary = commentary
        self._pen = OverlayPen(width, height)
        self._wide = _round_up_to_even(max(width, NARROWEST))
        self._picture = ((self._wide - width) // 2, 0, width, height)
        self._panel = _draw_caption_panel(commentary, self._pen, width=self._wide)
        self.size = self._wide, _round_up_to_even(height + len(self._panel.rgb))
        self._output = np.empty((self.size[1], self._wide, 3), np.uint8)
        self._output[:] = _BAR

    def draw(self, rgb: Rgb, at_us: int) -> Rgb:
        """Return `rgb` with the boxes at that instant, above the panel; the next call overwrites the result."""
        left, top, width, height = self._picture
        picture = self._output[top : top + height, left : left + width]
        picture[:] = rgb
        for lane in self._commentary.lanes:
            for mark in lane.traces:
                box = mark.box_at(at_us)
                if box is not None:
                    draw_box_outline(
                        picture,
                        box,
                        get_palette_colour(lane.colour),
                        line=self._pen.line,
                        dashed=not mark.ends,
                    )
        below = self._output[height : height + len(self._panel.rgb)]
        below[:] = self._panel.rgb
        # The playhead, above and below the bars and not across the text between them.
        bar, pen, scale = self._panel.bar, self._pen, self._panel.scale
        column, half = bar.column(at_us), max(1, pen.line // 2)
        for start, end in self._panel.grooves:
            below[start - pen.line : end + pen.line, column - half : column + half] = _PAPER
        clock = pen.stamp(format_clock(at_us))
        rows, columns, _ = clock.shape
        # Between the labels at both ends of the scale, without overlap.
        ends = round(pen.length(format_clock(bar.duration_us))) + pen.size
        low, high = bar.left + ends, bar.right - ends - columns
        if low <= high:
            left = min(max(column - columns // 2, low), high)
            below[scale : scale + rows, left : left + columns] = clock
        return self._output


def draw_box_outline(
    rgb: Rgb, box: Box, colour: Colour, *, line: int | None = None, dashed: bool = False
) -> None:
    """Draw the outline of `box` on the picture `rgb` in place, around the area of the box."""
    height, width, _ = rgb.shape
    line = line or OverlayPen(width, height).line
    left, top = int(box.x0 * width) - line, int(box.y0 * height) - line
    right, bottom = -int(-box.x1 * width) + line, -int(-box.y1 * height) + line
    left, top, right, bottom = (
        max(1, left),
        max(1, top),
        min(width - 1, right),
        min(height - 1, bottom),
    )
    for shade, wider in ((_INK, 1), (colour, 0)):  # a dark edge, visible on light pictures
        for start, end in _iter_line_strokes(left, right, line=line, dashed=dashed):
            across = slice(max(0, start - wider), end + wider)
            rgb[max(0, top - wider) : top + line + wider, across] = shade
            rgb[max(0, bottom - line - wider) : bottom + wider, across] = shade
        for start, end in _iter_line_strokes(top, bottom, line=line, dashed=dashed):
            down = slice(max(0, start - wider), end + wider)
            rgb[down, max(0, left - wider) : left + line + wider] = shade
            rgb[down, max(0, right - line - wider) : right + wider] = shade


def _iter_line_strokes(
    start: int, end: int, *, line: int, dashed: bool
) -> Iterator[tuple[int, int]]:
    if not dashed:
        yield start, end
        return
    for position in range(start, end, 6 * line):
        yield position, min(position + 3 * line, end)


def add_caption_panel(rgb: Rgb, sentences: Sequence[str]) -> Rgb:
    """Return the picture `rgb` with a panel below it that shows `sentences`, each on a new line."""
    height, width, _ = rgb.shape
    pen = OverlayPen(width, height)
    wide = max(width, NARROWEST)
    lines = [line for text in sentences for line in pen.wrap(text, wide - 2 * pen.size)]
    panel = Image.new("RGB", (wide, pen.size + len(lines) * pen.row), _BAR)
    brush = ImageDraw.Draw(panel)
    for row, line in enumerate(lines):
        pen.write(brush, (pen.size, pen.size // 2 + row * pen.row), line, _PAPER)
    result = np.full((height + panel.height, wide, 3), _BAR, np.uint8)
    left = (wide - width) // 2
    result[:height, left : left + width] = rgb
    result[height:] = np.asarray(panel)
    return result


@dataclass(frozen=True, slots=True)
class _TimeAxis:
    left: int
    right: int
    duration_us: int

    def column(self, at_us: int) -> int:
        part = min(1.0, max(0.0, at_us / self.duration_us))
        return round(self.left + part * (self.right - self.left))


@dataclass(frozen=True, slots=True, eq=False)
class _CaptionPanel:
    rgb: Rgb
    bar: _TimeAxis
    grooves: tuple[tuple[int, int], ...]
    """First row of each lane's time bar, and the row after its last one."""
    scale: int
    """First row of the time labels below the bars."""


class OverlayPen:
    """Text renderer with font and line sizes for a picture of `width` x `height`."""

    def __init__(self, width: int, height: int) -> None:
        self.size = max(14, min(48, round(min(max(width, NARROWEST), height * 1.6) / 56)))
        self.row = round(self.size * 1.35)
        self.line = max(2, round(self.size / 5))
        self._font = ImageFont.load_default(self.size)
        self._lacks = self._mask(_REPLACEMENT)

    def length(self, text: str) -> float:
        """Return the width of `text` in pixels."""
        return self._font.getlength(text)

    def write(
        self, brush: ImageDraw.ImageDraw, at: tuple[float, float], text: str, colour: Colour
    ) -> None:
        """Draw `text` with its upper left corner at the position `at`."""
        brush.text(at, text, fill=colour, font=self._font)

    def stamp(self, text: str) -> Rgb:
        """Draw `text` as a picture of its own."""
        picture = Image.new("RGB", (round(self.length(text)) + 2, self.row), _BAR)
        self.write(ImageDraw.Draw(picture), (1, 0), text, _PAPER)
        return np.asarray(picture)

    def wrap(self, text: str, max_width: float) -> list[str]:
        """Split `text` into lines of at most `max_width` pixels; lacking characters become similar ASCII or `?`."""
        lines: list[str] = []
        line = ""
        for word in "".join(map(self._known, text)).split():
            longer = f"{line} {word}".strip()
            if line and self.length(longer) > max_width:
                lines.append(line)
                longer = word
            while self.length(longer) > max_width and len(longer) > 1:
                fits = next(
                    n
                    for n in range(len(longer), 0, -1)
                    if n == 1 or self.length(longer[:n]) <= max_width
                )
                lines.append(longer[:fits])
                longer = longer[fits:]
            line = longer
        return [*lines, line] if line else lines

    def _known(self, letter: str) -> str:
        if letter.isascii() or self._mask(letter) != self._lacks:
            return letter
        bare = _PLAINER.get(letter) or normalize("NFKD", letter)
        return "".join(part for part in bare if part.isascii()) or "?"

    def _mask(self, letter: str) -> bytes:
        return bytes(self._font.getmask(letter))


def _draw_caption_panel(
    commentary: OverlayCommentary, pen: OverlayPen, *, width: int
) -> _CaptionPanel:
    pad, groove = pen.size, max(6, pen.size // 2)
    captions = [pen.wrap(lane.text, width - 4 * pad) for lane in commentary.lanes]
    for lines in captions:
        if len(lines) > _MAX_LINES:
            lines[_MAX_LINES - 1 :] = [lines[_MAX_LINES - 1].rstrip(".,;") + " ..."]
    dashed = any(not mark.ends for lane in commentary.lanes for mark in lane.traces)
    notes = [*([_DASHED] if dashed else []), *commentary.notes]
    last = [line for note in notes for line in pen.wrap(note, width - 2 * pad)]
    gap = pen.size // 4
    lanes_high = sum(len(lines) * pen.row + groove + 3 * gap for lines in captions)
    scale = pad // 2 + lanes_high
    high = scale + round(pen.row * 1.4) + len(last) * pen.row + pad // 2
    panel = Image.new("RGB", (width, high), _BAR)
    brush = ImageDraw.Draw(panel)
    bar = _TimeAxis(pad, width - pad, commentary.duration_us)
    top = pad // 2
    grooves: list[tuple[int, int]] = []
    for lane, lines in zip(commentary.lanes, captions, strict=True):
        colour = get_palette_colour(lane.colour)
        brush.rectangle(
            (pad, top + 2, pad + pen.size, top + pen.size),
            fill=colour if lane.traces else None,
            outline=colour,
            width=2,
        )
        for line in lines:
            pen.write(brush, (3 * pad, top), line, _PAPER)
            top += pen.row
        top += gap
        _draw_lane_spans(brush, bar, lane, top=top, deep=groove)
        grooves.append((top, top + groove + 1))
        top += groove + 2 * gap
    end = format_clock(commentary.duration_us)
    pen.write(brush, (bar.left, scale), format_clock(0), _MUTED)
    pen.write(brush, (bar.right - pen.length(end), scale), end, _MUTED)
    for row, line in enumerate(last):
        pen.write(brush, (pad, scale + round(pen.row * 1.4) + row * pen.row), line, _MUTED)
    return _CaptionPanel(np.asarray(panel), bar, tuple(grooves), scale)


def _draw_lane_spans(
    brush: ImageDraw.ImageDraw, axis: _TimeAxis, lane: ReviewerOverlayLane, *, top: int, deep: int
) -> None:
    brush.rectangle((axis.left, top, axis.right, top + deep), fill=_GROOVE)
    for mark in lane.traces:
        left, right = axis.column(mark.span.start_us), axis.column(mark.span.end_us)
        right = max(right, left + 3)
        for start, end in _iter_line_strokes(
            left, right, line=max(2, deep // 2), dashed=not mark.ends
        ):
            brush.rectangle((start, top, end, top + deep), fill=get_palette_colour(lane.colour))


def _round_up_to_even(side: int) -> int:
    return side + side % 2


def get_palette_colour(colour: int) -> Colour:
    """Return the palette colour with the index `colour`, modulo the size of the palette."""
    return PALETTE[colour % len(PALETTE)]


def format_clock(at_us: int) -> str:
    """Format a time as minutes, seconds and hundredths of a second, such as `1:02.50`."""
    minutes, rest_us = divmod(max(0, at_us), 60 * MICROSECONDS)
    return f"{minutes}:{rest_us // MICROSECONDS:02d}.{rest_us % MICROSECONDS // 10_000:02d}"
