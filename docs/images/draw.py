"""Draws the pictures of the documentation from synthesised scenes: `PYTHONPATH=tests python docs/images/draw.py`."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from scenes.ball import SampleScene
from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.overlay import (
    OverlayCommentary,
    OverlayPainter,
    OverlayTrace,
    ReviewerOverlayLane,
)

HERE = Path(__file__).parent
SIZE = (960, 540)
BALL = (642, 130, 792, 280)
TWIN = (212, 196)
BLUR = (96, 420, 330, 530)


def draw_trace() -> Image.Image:
    """A frame with two faults put in by hand, marked, above the clip's timeline."""
    frame = Image.fromarray(SampleScene(*SIZE, seed=3).draw(17))
    ball = frame.crop(BALL)
    disc = Image.radial_gradient("L").resize(ball.size).point(lambda far: 255 * (far < 170))
    twin = (*TWIN, TWIN[0] + ball.width, TWIN[1] + ball.height)
    frame.paste(ball, TWIN, disc)
    frame.paste(frame.crop(BLUR).filter(ImageFilter.GaussianBlur(7)), BLUR)
    lanes = (
        _lane(twin, TimeSpan(600_000, 1_250_000), "redundant object: a second ball, no shadow", 0),
        _lane(BLUR, TimeSpan(300_000, 1_700_000), "sudden blurring: tiles lose their edges", 1),
    )
    commentary = OverlayCommentary(lanes=lanes, duration_us=2_000_000)
    annotator = OverlayPainter(commentary, width=SIZE[0], height=SIZE[1])
    return Image.fromarray(annotator.draw(np.asarray(frame), 708_333))


def _lane(
    corners: tuple[int, int, int, int], span: TimeSpan, says: str, colour: int
) -> ReviewerOverlayLane:
    mark = OverlayTrace(span=span, track=(BoxAt(span.start_us, _box(corners)),))
    return ReviewerOverlayLane(says=says, colour=colour, marks=(mark,))


def _box(corners: tuple[int, int, int, int]) -> Box:
    width, height = SIZE
    x0, y0, x1, y1 = corners
    return Box(x0 / width, y0 / height, x1 / width, y1 / height)


if __name__ == "__main__":
    drawn = draw_trace()
    drawn.crop((0, 28, *drawn.size)).save(HERE / "trace.png", optimize=True)
