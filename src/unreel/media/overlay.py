"""Draws on pictures and clips where and when something was found: boxes, captions, a bar of spans."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.encode import ClipWriter, VideoTrack

Colour = tuple[int, int, int]

PALETTE: Final[tuple[Colour, ...]] = (
    (255, 99, 72),
    (46, 196, 182),
    (255, 190, 11),
    (131, 98, 255),
    (80, 160, 255),
    (255, 110, 199),
)
"""Differ in brightness as well as in hue, and stand out from dark and from light pictures."""

_INK: Final[Colour] = (18, 20, 26)
_PAPER: Final[Colour] = (240, 242, 246)
_BAR: Final[Colour] = (27, 30, 38)
_GROOVE: Final[Colour] = (58, 63, 76)
_MUTED: Final[Colour] = (150, 157, 172)
_TICKS_PER_S: Final = 90_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxMark:
    """A box to draw. `colour` counts through the palette, round and round."""

    box: Box
    caption: str = ""
    colour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanMark:
    """A stretch of time to draw. `colour` counts through the palette, round and round."""

    span: TimeSpan
    caption: str = ""
    colour: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingMark:
    """A fault to follow through a clip. `colour` counts through the palette, round and round."""

    span: TimeSpan
    track: tuple[BoxAt, ...] = ()
    caption: str = ""
    colour: int = 0

    def box_at(self, at_us: int) -> Box | None:
        """Its box at an instant of its span: straight between marks, still before and after them."""
        if not self.track or not self.span.start_us <= at_us < self.span.end_us:
            return None
        place = bisect_right(self.track, at_us, key=lambda mark: mark.at_us)
        before, after = self.track[max(0, place - 1)], self.track[min(place, len(self.track) - 1)]
        if after.at_us <= before.at_us:
            return before.box
        share = (at_us - before.at_us) / (after.at_us - before.at_us)
        edges = zip(astuple(before.box), astuple(after.box), strict=True)
        return Box(*(min(1.0, first + share * (last - first)) for first, last in edges))


def draw_boxes(picture: Image.Image, marks: Sequence[BoxMark]) -> Image.Image:
    """A copy of `picture` with every mark's outline and caption."""
    drawn = picture.convert("RGB")
    pen = _Pen(drawn)
    for mark in marks:
        pen.outline(mark.box, _paint(mark.colour))
    for mark in marks:  # Captions last: no outline crosses a word.
        if mark.caption:
            pen.tag(mark.box, mark.caption, _paint(mark.colour))
    return drawn


def draw_timeline(
    picture: Image.Image,
    marks: Sequence[SpanMark],
    *,
    duration_us: int,
    at_us: int | None = None,
) -> Image.Image:
    """A copy of `picture` above a bar of the whole clip: a row for each mark, and `at_us`."""
    if duration_us <= 0:
        msg = f"a timeline needs a clip that lasts, got {duration_us} us. Give the clip's length"
        raise InvalidValueError(msg)
    size = _font_size(picture)
    row, pad = round(size * 1.9), size
    height = pad + max(1, len(marks)) * row + round(size * 2.2)
    drawn = Image.new("RGB", (picture.width, picture.height + height), _BAR)
    drawn.paste(picture.convert("RGB"))
    pen = _Pen(drawn, size=size)
    bar = _Bar(pad, picture.width - pad, duration_us)
    top = picture.height + pad
    if not marks:
        pen.groove(bar, top, row)
    for place, mark in enumerate(marks):
        pen.groove(bar, top + place * row, row)
        pen.span(bar, mark, top + place * row, row)
    pen.scale(bar, top + max(1, len(marks)) * row)
    if at_us is not None:
        pen.playhead(bar, at_us, picture.height, top + max(1, len(marks)) * row)
    return drawn


def annotate(
    pictures: Iterable[tuple[int, Image.Image]], marks: Sequence[MovingMark], *, duration_us: int
) -> bytes:
    """A mute mp4 of `pictures`, each shown from its instant on, with boxes and a moving timeline."""
    spans = [SpanMark(span=m.span, caption=m.caption, colour=m.colour) for m in marks]
    writer: ClipWriter | None = None
    before = -1
    with ExitStack() as opened:
        for at_us, picture in pictures:
            tick = at_us * _TICKS_PER_S // MICROSECONDS
            if tick <= before:
                continue  # No player shows it, and no encoder takes it.
            before = tick
            boxes = [
                BoxMark(box=box, caption=mark.caption, colour=mark.colour)
                for mark in marks
                if (box := mark.box_at(at_us)) is not None
            ]
            marked = draw_boxes(picture, boxes)
            drawn = draw_timeline(marked, spans, duration_us=duration_us, at_us=at_us)
            even = drawn.crop((0, 0, drawn.width // 2 * 2, drawn.height // 2 * 2))
            if writer is None:
                writer = opened.enter_context(ClipWriter("mp4", _video_track(even)))
            writer.add_picture(np.asarray(even).copy(), tick=tick)
        if writer is None:
            msg = "a clip without pictures cannot be annotated. Give it at least one"
            raise InvalidValueError(msg)
        return writer.finish()


def _video_track(picture: Image.Image) -> VideoTrack:
    return VideoTrack(
        codec="libx264",
        width=picture.width,
        height=picture.height,
        rate=Fraction(30),
        time_base=Fraction(1, _TICKS_PER_S),
        options={"crf": "21", "preset": "veryfast", "bf": "0", "g": "48"},
    )


@dataclass(frozen=True, slots=True)
class _Bar:
    """Maps instants to columns of pixels."""

    left: int
    right: int
    duration_us: int

    def column(self, at_us: int) -> int:
        part = min(1.0, max(0.0, at_us / self.duration_us))
        return round(self.left + part * (self.right - self.left))


class _Pen:
    """Draws in sizes that suit the picture."""

    def __init__(self, picture: Image.Image, *, size: int | None = None) -> None:
        self._size = size or _font_size(picture)
        self._font = ImageFont.load_default(self._size)
        self._draw = ImageDraw.Draw(picture, "RGBA")
        self._width, self._height = picture.size
        self._line = max(2, round(self._size / 6))

    def outline(self, box: Box, colour: Colour) -> None:
        left, top, right, bottom = self._corners(box)
        line = self._line
        radius = min(self._size // 3, (right - left) // 2, (bottom - top) // 2)
        halo = (left - 1, top - 1, right + 1, bottom + 1)
        self._draw.rounded_rectangle(halo, radius + 1, outline=(*_INK, 170), width=line + 2)
        self._draw.rounded_rectangle(
            (left, top, right, bottom), radius, fill=(*colour, 28), outline=colour, width=line
        )

    def tag(self, box: Box, caption: str, colour: Colour) -> None:
        left, top, _, bottom = self._corners(box)
        pad = self._size // 3
        text = self._shorten(caption, self._width - 2 * pad - 2)
        width, height = round(self._font.getlength(text)) + 2 * pad, round(self._size * 1.5)
        x = max(0, min(left, self._width - width))
        above, below = top - height - self._line, bottom + self._line
        y = above if above >= 0 else min(below, self._height - height)
        self._draw.rounded_rectangle((x, y, x + width, y + height), pad, fill=(*colour, 235))
        self._write((x + pad, y + height / 2), text, _INK, anchor="lm")

    def groove(self, bar: _Bar, top: int, row: int) -> None:
        deep = row - self._size // 2
        self._draw.rounded_rectangle(
            (bar.left, top, bar.right, top + deep), self._size // 3, fill=_GROOVE
        )

    def span(self, bar: _Bar, mark: SpanMark, top: int, row: int) -> None:
        left, right = bar.column(mark.span.start_us), bar.column(mark.span.end_us)
        right = max(right, left + self._line)
        deep = row - self._size // 2
        radius = min(self._size // 3, (right - left) // 2)
        colour = _paint(mark.colour)
        self._draw.rounded_rectangle((left, top, right, top + deep), radius, fill=colour)
        self._caption(bar, mark.caption, left=left, right=right, middle=top + deep / 2)

    def _caption(self, bar: _Bar, text: str, *, left: int, right: int, middle: float) -> None:
        """Inside the span where it fits, else on the roomier side of it."""
        pad = self._size // 2
        if self._font.getlength(text) <= right - left - 2 * pad:
            self._write((left + pad, middle), text, _INK, anchor="lm")
        elif bar.right - right >= left - bar.left:
            text = self._shorten(text, bar.right - right - 2 * pad)
            self._write((right + pad, middle), text, _PAPER, anchor="lm")
        else:
            text = self._shorten(text, left - bar.left - 2 * pad)
            self._write((left - pad, middle), text, _PAPER, anchor="rm")

    def scale(self, bar: _Bar, top: int) -> None:
        middle = top + self._size * 0.7
        self._write((bar.left, middle), _clock(0), _MUTED, anchor="lm")
        self._write((bar.right, middle), _clock(bar.duration_us), _MUTED, anchor="rm")

    def playhead(self, bar: _Bar, at_us: int, top: int, bottom: int) -> None:
        x, wing = bar.column(at_us), self._size // 2
        self._draw.line((x, top + wing, x, bottom), fill=_PAPER, width=max(2, self._line // 2))
        self._draw.polygon([(x - wing, top), (x + wing, top), (x, top + wing)], fill=_PAPER)
        text = _clock(at_us)
        half = self._font.getlength(text) / 2
        # Beside the two ends of the scale, never on them.
        ends = self._font.getlength(_clock(bar.duration_us)) + self._size
        low, high = bar.left + ends + half, bar.right - ends - half
        if low <= high:
            spot = (min(max(x, low), high), bottom + self._size * 0.7)
            self._write(spot, text, _PAPER, anchor="mm")

    def _corners(self, box: Box) -> tuple[int, int, int, int]:
        right, bottom = self._width - 1, self._height - 1
        left, top = round(box.x0 * right), round(box.y0 * bottom)
        return left, top, max(left + 1, round(box.x1 * right)), max(top + 1, round(box.y1 * bottom))

    def _shorten(self, text: str, room: float) -> str:
        if self._font.getlength(text) <= room:
            return text
        while text and self._font.getlength(text + "...") > room:
            text = text[:-1]
        return text.rstrip() + "..." if text else ""

    def _write(self, at: tuple[float, float], text: str, colour: Colour, *, anchor: str) -> None:
        self._draw.text(at, text, fill=colour, font=self._font, anchor=anchor)


def _font_size(picture: Image.Image) -> int:
    return max(11, min(30, round(min(picture.width, picture.height * 1.6) / 36)))


def _paint(colour: int) -> Colour:
    return PALETTE[colour % len(PALETTE)]


def _clock(at_us: int) -> str:
    minutes, rest_us = divmod(max(0, at_us), 60 * MICROSECONDS)
    return f"{minutes}:{rest_us // MICROSECONDS:02d}.{rest_us % MICROSECONDS // 10_000:02d}"
