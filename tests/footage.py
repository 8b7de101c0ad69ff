"""Moving pictures of many kinds, for tests that need clips which do not look alike."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from PIL import Image, ImageDraw

from unreel.media.decode import Rgb
from unreel.media.encode import ClipWriter, VideoTrackSettings

_MARGIN = 24


def film(seed: int, *, n_frames: int = 16, width: int = 192, height: int = 128) -> list[Rgb]:
    """A soft, coloured backdrop that pans under a few drifting shapes; other seeds look different."""
    draw = np.random.default_rng(seed)
    dark, light = np.sort(draw.uniform(0, 255, (2, 3)), axis=0)
    coarse = draw.uniform(0, 1, (5, 7, 3)) * (light - dark) + dark
    size = (width + 2 * _MARGIN, height + 2 * _MARGIN)
    backdrop = Image.fromarray(coarse.astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)
    pan = draw.uniform(-1, 1, 2)
    shapes = [
        (draw.uniform(0, 1, 2), draw.uniform(-0.012, 0.012, 2), draw.uniform(0.05, 0.2), colour)
        for colour in draw.integers(0, 256, (4, 3))
    ]
    frames = []
    for index in range(n_frames):
        left, top = (_MARGIN + int(_MARGIN * np.sin(index * way / 12)) for way in pan)
        picture = backdrop.crop((left, top, left + width, top + height))
        pen = ImageDraw.Draw(picture)
        for (x, y), (dx, dy), size_part, colour in shapes:
            across, down = width * (x + index * dx), height * (y + index * dy)
            radius = size_part * height
            box = (across - radius, down - radius, across + radius, down + radius)
            pen.ellipse(box, fill=tuple(int(part) for part in colour))
        grain = draw.normal(0, 2, (height, width, 1))
        frames.append(np.clip(np.asarray(picture) + grain, 0, 255).astype(np.uint8))
    return frames


def write_clip(pictures: Iterable[Rgb], *, rate: int = 24, crf: int = 23) -> bytes:
    """The pictures as an mp4 file; odd sizes are cut by one line."""
    shown: Sequence[Rgb] = list(pictures)
    height, width, _ = shown[0].shape
    height, width = height - height % 2, width - width % 2
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=Fraction(rate),
        time_base=Fraction(1, rate),
        options={"crf": str(crf), "preset": "veryfast"},
    )
    with ClipWriter("mp4", track) as writer:
        for tick, picture in enumerate(shown):
            writer.add_picture(np.ascontiguousarray(picture[:height, :width]), tick=tick)
        return writer.finish()
