"""What is drawn on pictures."""

import numpy as np
import pytest
from PIL import Image

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan
from unreel.media.overlay import PALETTE, BoxMark, SpanMark, draw_boxes, draw_timeline

GREY = Image.new("RGB", (640, 360), (128, 128, 128))
SECOND = 1_000_000


def has_colour(
    picture: Image.Image, colour: tuple[int, int, int], area: tuple[int, int, int, int]
) -> bool:
    part = np.asarray(picture.crop(area)).astype(int)
    return bool((np.abs(part - colour).sum(axis=-1) < 30).any())


def test_a_box_is_outlined_where_it_is_and_the_rest_is_untouched() -> None:
    drawn = draw_boxes(GREY, [BoxMark(box=Box(0.25, 0.25, 0.75, 0.75))])
    assert has_colour(drawn, PALETTE[0], (155, 180, 166, 190))
    assert has_colour(drawn, PALETTE[0], (474, 180, 485, 190))
    outside = np.asarray(drawn.crop((0, 0, 640, 80)))
    assert (outside == 128).all()


def test_the_picture_that_was_given_is_not_changed() -> None:
    before = GREY.tobytes()
    draw_boxes(GREY, [BoxMark(box=Box(0, 0, 1, 1), caption="whole")])
    draw_timeline(GREY, [], duration_us=SECOND)
    assert GREY.tobytes() == before


@pytest.mark.parametrize(
    "box",
    [Box(0, 0, 0.2, 0.2), Box(0.9, 0.9, 1, 1), Box(0, 0, 1, 1), Box(0.5, 0.5, 0.5001, 0.5001)],
    ids=["corner", "far corner", "whole", "speck"],
)
def test_a_caption_stays_inside_the_picture(box) -> None:
    caption = "a caption that is far too long for any picture of this width " * 3
    drawn = draw_boxes(GREY, [BoxMark(box=box, caption=caption, colour=1)])
    assert drawn.size == GREY.size
    ink = (np.asarray(drawn).astype(int) - (18, 20, 26)).__abs__().sum(axis=-1) < 40
    assert ink.any()


def test_captions_lie_above_outlines() -> None:
    marks = [
        BoxMark(box=Box(0.1, 0.5, 0.5, 0.9), caption="first", colour=0),
        BoxMark(box=Box(0.1, 0.44, 0.6, 0.95), colour=1),
    ]
    alone = draw_boxes(GREY, marks[:1]).crop((66, 158, 110, 176))
    both = draw_boxes(GREY, marks).crop((66, 158, 110, 176))
    dark = [(np.asarray(part).sum(axis=-1) < 120).sum() for part in (alone, both)]
    assert dark[0] > 0
    assert abs(int(dark[0]) - int(dark[1])) <= dark[0] * 0.2


def test_a_span_is_drawn_at_its_place_on_the_bar() -> None:
    mark = SpanMark(span=TimeSpan(2 * SECOND, 3 * SECOND), caption="late", colour=2)
    drawn = draw_timeline(GREY, [mark], duration_us=4 * SECOND)
    assert drawn.height > GREY.height
    assert (np.asarray(drawn)[:360] == 128).all()
    assert has_colour(drawn, PALETTE[2], (330, 361, 400, drawn.height))
    assert not has_colour(drawn, PALETTE[2], (0, 361, 300, drawn.height))
    assert not has_colour(drawn, PALETTE[2], (500, 361, 640, drawn.height))


def test_the_playhead_stands_at_its_instant() -> None:
    white = (240, 242, 246)
    drawn = draw_timeline(GREY, [], duration_us=4 * SECOND, at_us=3 * SECOND)
    assert has_colour(drawn, white, (470, 361, 478, 366))
    assert not has_colour(drawn, white, (100, 361, 400, 366))


def test_spans_beyond_the_end_and_tiny_pictures_are_drawn_all_the_same() -> None:
    mark = SpanMark(span=TimeSpan(0, 9 * SECOND), caption="longer than the clip")
    tiny = Image.new("RGB", (64, 64))
    assert draw_timeline(tiny, [mark] * 3, duration_us=SECOND, at_us=5 * SECOND).width == 64


def test_a_clip_without_length_has_no_bar() -> None:
    with pytest.raises(InvalidValueError, match="length"):
        draw_timeline(GREY, [], duration_us=0)
