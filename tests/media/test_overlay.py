"""What is drawn on pictures, and below them."""

import numpy as np
import pytest

from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.overlay import (
    NARROWEST,
    PALETTE,
    OverlayCommentary,
    OverlayPainter,
    OverlayPen,
    OverlayTrace,
    ReviewerOverlayLane,
    draw_box_outline,
)

SECOND = 1_000_000
WHERE = Box(0.25, 0.25, 0.75, 0.75)


def grey(width: int = 640, height: int = 360) -> np.ndarray:
    return np.full((height, width, 3), 128, np.uint8)


def has_colour(rgb: np.ndarray, colour: tuple[int, int, int]) -> bool:
    return bool((np.abs(rgb.astype(int) - colour).sum(axis=-1) < 30).any())


def fault(*, start_s: float = 0, ends: bool = True, box: Box = WHERE) -> OverlayTrace:
    start_us = round(start_s * SECOND)
    return OverlayTrace(
        span=TimeSpan(start_us, 4 * SECOND), track=(BoxAt(start_us, box),), ends=ends
    )


def commentary(*lanes: ReviewerOverlayLane, notes: tuple[str, ...] = ()) -> OverlayCommentary:
    return OverlayCommentary(lanes=lanes, duration_us=4 * SECOND, notes=notes)


@pytest.mark.parametrize("dashed", [False, True])
def test_a_box_is_drawn_around_its_place_and_covers_nothing_of_it(dashed) -> None:
    drawn = grey()
    draw_box_outline(drawn, WHERE, PALETTE[0], line=3, dashed=dashed)
    assert has_colour(drawn[90:270, 150:160], PALETTE[0])
    assert has_colour(drawn[90:270, 480:490], PALETTE[0])
    assert (drawn[92:268, 162:478] == 128).all()
    assert (drawn[:80] == 128).all()


def test_words_stand_below_the_picture_and_never_on_it() -> None:
    lanes = [
        ReviewerOverlayLane(text="somebody: generated. " + "a long reason " * 30, traces=())
    ] * 4
    annotator = OverlayPainter(commentary(*lanes, notes=("a warning",)), width=640, height=360)
    drawn = annotator.draw(grey(), SECOND)
    assert (drawn[:360] == 128).all()
    assert drawn.shape == (annotator.size[1], 640, 3)
    assert annotator.size[1] > 360


def test_a_box_shows_while_its_fault_lasts() -> None:
    annotator = OverlayPainter(
        commentary(ReviewerOverlayLane(text="x", colour=2, traces=(fault(start_s=2),))),
        width=640,
        height=360,
    )
    assert not has_colour(annotator.draw(grey(), 2 * SECOND - 1)[:360], PALETTE[2])
    assert has_colour(annotator.draw(grey(), 2 * SECOND)[:360], PALETTE[2])


def test_the_bar_tells_when_and_is_broken_where_no_end_was_named() -> None:
    def filled(*, ends: bool) -> np.ndarray:
        mark = fault(start_s=2, ends=ends, box=Box(0, 0, 0.01, 0.01))
        lane = ReviewerOverlayLane(text="x", colour=2, traces=(mark,))
        drawn = OverlayPainter(commentary(lane), width=640, height=360).draw(grey(), 0)[360:]
        rows = (np.abs(drawn.astype(int) - PALETTE[2]).sum(-1) < 30)[:, 60:]
        return rows[rows.sum(-1).argmax()]

    solid, broken = filled(ends=True), filled(ends=False)
    assert not solid[:250].any()
    assert solid[270:560].all()
    assert 0.3 < broken[270:560].mean() < 0.7


@pytest.mark.parametrize("size", [(64, 64), (161, 91), (1920, 1080), (90, 1600)])
def test_any_size_gives_an_even_one_that_words_fit_into(size) -> None:
    width, height = size
    annotator = OverlayPainter(
        commentary(
            ReviewerOverlayLane(text="word " * 50, traces=(fault(),)), notes=("a warning " * 9,)
        ),
        width=width,
        height=height,
    )
    drawn = annotator.draw(grey(width, height), 0)
    assert drawn.shape[0] % 2 == drawn.shape[1] % 2 == 0
    assert drawn.shape[1] >= max(width, NARROWEST)
    assert drawn.shape[0] > height


def test_words_are_broken_to_fit_and_strange_letters_are_told_as_such() -> None:
    pen = OverlayPen(640, 360)
    lines = pen.wrap("one two three " * 20 + "x" * 300, 200)
    assert "".join(lines).replace(" ", "").count("three") == 20
    assert all(pen.length(line) <= 200 for line in lines)
    assert pen.wrap("caf\u00e9 \u4f60\u597d", 400) == ["cafe ??"]
    assert pen.wrap("so \u2014 so", 400) == ["so - so"]
    assert pen.wrap("", 100) == []
