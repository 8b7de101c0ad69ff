"""Draws the pictures of the documentation from synthesised scenes: `python docs/images/draw.py`."""

from pathlib import Path

from PIL import Image, ImageFilter

from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.media.overlay import BoxMark, SpanMark, draw_boxes, draw_timeline
from unreel.media.scenes.scene import Scene

HERE = Path(__file__).parent
SIZE = (960, 540)
BALL = (642, 130, 792, 280)
TWIN = (212, 196)
BLUR = (96, 420, 330, 530)


def draw_trace() -> Image.Image:
    """A frame with two faults put in by hand, marked, above the clip's timeline."""
    frame = Image.fromarray(Scene(*SIZE, seed=3).draw(17))
    ball = frame.crop(BALL)
    disc = Image.radial_gradient("L").resize(ball.size).point(lambda far: 255 * (far < 170))
    twin = (*TWIN, TWIN[0] + ball.width, TWIN[1] + ball.height)
    frame.paste(ball, TWIN, disc)
    frame.paste(frame.crop(BLUR).filter(ImageFilter.GaussianBlur(7)), BLUR)
    boxes = [
        BoxMark(box=_box(twin), caption="redundant object", colour=0),
        BoxMark(box=_box(BLUR), caption="sudden blurring", colour=1),
    ]
    spans = [
        SpanMark(span=TimeSpan(600_000, 1_250_000), caption="a second ball, no shadow", colour=0),
        SpanMark(span=TimeSpan(300_000, 1_700_000), caption="the tiles lose their edges", colour=1),
    ]
    marked = draw_boxes(frame, boxes)
    return draw_timeline(marked, spans, duration_us=2_000_000, at_us=708_333)


def _box(corners: tuple[int, int, int, int]) -> Box:
    width, height = SIZE
    x0, y0, x1, y1 = corners
    return Box(x0 / width, y0 / height, x1 / width, y1 / height)


if __name__ == "__main__":
    draw_trace().crop((0, 28, SIZE[0], 709)).save(HERE / "trace.png", optimize=True)
