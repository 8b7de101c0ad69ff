"""Scenes that move, and marks laid over them at known places."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from unreel.core.box import Box
from unreel.media.decode import Rgb

WORDS = ("Kling AI", "Veo", "PIKA LABS", "runway", "Sora 2", "made by AI", "VIDU", "Hailuo")
CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))


def moving_scene(
    seed: int, *, n_frames: int = 12, width: int = 480, height: int = 270, pace: float = 1.0
) -> list[Rgb]:
    """A camera that pans over a painted ground with things that cross it; `pace` 0 is a tripod."""
    rng = np.random.default_rng(seed)
    ground = _ground(rng, width * 2, height * 2)
    turn = rng.uniform(0, 2 * np.pi)
    things = [_Thing(rng, width, height) for _ in range(3)] if pace else []
    noise = rng.normal(0, 2, (height, width, 3))
    frames = []
    for index in range(n_frames):
        along = pace * (index / (n_frames - 1) - 0.5)
        left = int(width / 2 + along * 0.8 * width * np.cos(turn))
        top = int(height / 2 + along * 0.8 * height * np.sin(turn))
        frame = ground[top : top + height, left : left + width].copy()
        for thing in things:
            thing.paint(frame, index)
        noisy = frame + np.roll(noise, 17 * index, axis=1)
        frames.append(np.clip(noisy, 0, 255).astype(np.uint8))
    return frames


class _Thing:
    """A disc that crosses the picture."""

    def __init__(self, rng: np.random.Generator, width: int, height: int) -> None:
        self._start = rng.uniform(0, 1, 2) * (width, height)
        self._step = rng.uniform(-0.08, 0.08, 2) * (width, height)
        self._radius = rng.uniform(0.06, 0.14) * height
        self._colour = rng.uniform(0, 255, 3)

    def paint(self, frame: NDArray[np.float64], index: int) -> None:
        height, width, _ = frame.shape
        x, y = (self._start + index * self._step) % (width, height)
        down, across = np.ogrid[:height, :width]
        frame[(across - x) ** 2 + (down - y) ** 2 < self._radius**2] = self._colour


def _ground(rng: np.random.Generator, width: int, height: int) -> NDArray[np.float64]:
    ground = np.zeros((height, width, 3))
    for size, weight in ((40, 60.0), (10, 35.0), (3, 20.0)):
        rough = rng.normal(128, 32, (height // size + 2, width // size + 2, 3))
        coarse = Image.fromarray(np.clip(rough, 0, 255).astype(np.uint8))
        smooth = coarse.resize((width, height), Image.Resampling.BILINEAR)
        ground += weight * (np.asarray(smooth) / 32.0 - 4)
    return np.clip(ground + rng.uniform(90, 150, 3), 0, 255)


def plant(frames: Sequence[Rgb], seed: int, *, kind: str, alpha: float) -> tuple[list[Rgb], Box]:
    """`frames` with one mark in a corner, and the box of what was drawn."""
    rng = np.random.default_rng([seed, 7])
    height, width, _ = frames[0].shape
    ink = text_ink(rng, width, height) if kind == "text" else logo_ink(rng, width, height)
    down, across = np.nonzero(ink > 64)
    box = Box(
        across.min() / width,
        down.min() / height,
        (across.max() + 1) / width,
        (down.max() + 1) / height,
    )
    cover = alpha * ink[..., None] / 255.0
    colour = 245 if rng.random() < 0.8 else 15
    return [(frame * (1 - cover) + colour * cover).astype(np.uint8) for frame in frames], box


def text_ink(rng: np.random.Generator, width: int, height: int) -> NDArray[np.uint8]:
    font = ImageFont.load_default(int(height * rng.uniform(0.06, 0.09)))
    words = WORDS[rng.integers(len(WORDS))]
    canvas = Image.new("L", (width, height))
    pen = ImageDraw.Draw(canvas)
    left, top, right, bottom = pen.textbbox((0, 0), words, font=font)
    x, y = _corner(rng, width, height, right - left, bottom - top)
    pen.text((x - left, y - top), words, fill=255, font=font)
    return np.asarray(canvas)


def logo_ink(rng: np.random.Generator, width: int, height: int) -> NDArray[np.uint8]:
    side = int(height * rng.uniform(0.09, 0.14))
    canvas = Image.new("L", (width, height))
    pen = ImageDraw.Draw(canvas)
    x, y = _corner(rng, width, height, side, side)
    line = max(2, side // 8)
    pen.ellipse((x, y, x + side, y + side), outline=255, width=line)
    pen.polygon(
        [
            (x + side * 0.35, y + side * 0.25),
            (x + side * 0.35, y + side * 0.75),
            (x + side * 0.8, y + side * 0.5),
        ],
        fill=255,
    )
    return np.asarray(canvas)


def _corner(
    rng: np.random.Generator, width: int, height: int, mark_width: float, mark_height: float
) -> tuple[int, int]:
    right, bottom = CORNERS[rng.integers(len(CORNERS))]
    margin = height * rng.uniform(0.03, 0.06)
    x = margin + right * (width - mark_width - 2 * margin)
    y = margin + bottom * (height - mark_height - 2 * margin)
    return int(x), int(y)
