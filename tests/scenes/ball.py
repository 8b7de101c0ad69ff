"""Draws a small lit room with a bouncing ball: the picture of every synthetic clip.

A strip of black and white blocks along the top edge carries the frame's index, so that a test can
read which frame it got after any coding that keeps the picture recognisable.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.errors import InvalidValueError
from unreel.media.decode import Rgb

Floats = NDArray[np.float64]

INDEX_BITS: Final = 14
_CELLS: Final = INDEX_BITS + 2
"""A white and a black block come first: they tell bright from dark in the reader's picture."""
_SMALLEST: Final = 64
_HORIZON: Final = 0.58
_PERIOD: Final = 48
"""Frames that the ball takes to cross the room and come back."""


@dataclass(frozen=True, slots=True)
class SampleScene:
    """A room whose colours follow from `seed`."""

    width: int
    height: int
    seed: int

    def __post_init__(self) -> None:
        if min(self.width, self.height) < _SMALLEST:
            msg = f"a scene needs at least {_SMALLEST} pixels each way. Make it larger"
            raise InvalidValueError(msg)

    def draw(self, index: int) -> Rgb:
        """Frame `index`, with its index in the strip."""
        across, down = _grid(self.width, self.height)
        picture, ball = _empty_room(self)
        x, y, radius = _ball_place(index, self.width / self.height)
        picture = _shadow(picture, across, down, x=x, radius=radius, lift=_FLOOR_Y - y - radius)
        picture = _ball(picture, across - x, down - y, radius=radius, colour=ball)
        pixels = np.clip(np.rint(255 * picture**0.4545), 0, 255).astype(np.uint8)
        _write_index(pixels, index)
        return pixels


def read_index(rgb: Rgb) -> int:
    """The index in the strip of a frame, in whatever size it now has."""
    height, width, _ = rgb.shape
    row = rgb[: _strip_height(height) * 2 // 3 or 1].mean(axis=(0, 2))
    borders = [round(i * width / _CELLS) for i in range(_CELLS + 1)]
    inner = [row[a + (b - a) // 4 : b - (b - a) // 4].mean() for a, b in pairwise(borders)]
    middle = (inner[0] + inner[1]) / 2
    return sum(1 << i for i, value in enumerate(inner[2:]) if value > middle)


_FLOOR_Y: Final = 0.86
_LIGHT: Final = np.array([-0.45, -0.75, 0.5]) / np.linalg.norm([-0.45, -0.75, 0.5])


@lru_cache(maxsize=4)
def _grid(width: int, height: int) -> tuple[Floats, Floats]:
    """Columns and rows of the pixels in heights of the picture."""
    down, across = np.mgrid[0:height, 0:width]
    return (across + 0.5) / height, (down + 0.5) / height


@lru_cache(maxsize=4)
def _empty_room(scene: SampleScene) -> tuple[Floats, Floats]:
    """The room without its ball, and the ball's colour."""
    wall, floor, ball = _colours(scene.seed)
    return _n_bytes_left(*_grid(scene.width, scene.height), wall=wall, floor=floor), ball


def _colours(seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    hue = rng.uniform(0, 1)
    turns = (hue, hue + 0.08, hue + 0.5)
    strength = ((0.25, 0.55), (0.35, 0.4), (0.85, 0.75))
    wall, floor, ball = (
        _from_hue(turn, saturation=s, value=v) for turn, (s, v) in zip(turns, strength, strict=True)
    )
    return wall, floor, ball


def _from_hue(turn: float, *, saturation: float, value: float) -> Floats:
    shifted = np.abs((turn * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1
    colour: Floats = value * (1 - saturation + saturation * np.clip(shifted, 0, 1))
    return colour


def _n_bytes_left(across: Floats, down: Floats, *, wall: Floats, floor: Floats) -> Floats:
    middle = across.max() / 2
    glow = np.exp(-((across - middle * 0.55) ** 2 + (down - 0.1) ** 2) / 0.35)
    wall_light = 0.35 + 0.75 * glow
    depth = np.maximum(down - _HORIZON, 1e-3)
    tiles = np.floor((across - middle) / depth * 0.8 + 0.5) + np.floor(0.55 / depth)
    # Far tiles are smaller than a pixel: they fade into their mean instead of flickering.
    contrast = 0.3 * np.clip((depth - 0.02) / 0.1, 0, 1)
    floor_light = (0.7 + contrast * (tiles % 2 - 0.5)) * (0.6 + 0.8 * np.minimum(depth / 0.42, 1))
    floor_light *= 0.75 + 0.4 * np.exp(-((across - middle * 0.7) ** 2) / 0.5)
    skirting = np.abs(down - _HORIZON) < 0.008
    picture: Floats = np.where(
        (down < _HORIZON)[..., None], wall_light[..., None] * wall, floor_light[..., None] * floor
    )
    return np.where(skirting[..., None], picture * 0.45, picture)


def _ball_place(index: int, aspect: float) -> tuple[float, float, float]:
    radius = 0.13
    swing = (1 - np.cos(2 * np.pi * index / _PERIOD)) / 2
    x = radius * 1.3 + swing * (aspect - 2.6 * radius)
    bounce = abs(np.sin(np.pi * index / (_PERIOD / 4)))
    return float(x), float(_FLOOR_Y - radius - 0.36 * bounce), radius


def _shadow(
    picture: Floats, across: Floats, down: Floats, *, x: float, radius: float, lift: float
) -> Floats:
    softness = radius * (0.9 + 1.8 * lift)
    away = ((across - x - 0.5 * lift) / softness) ** 2 + (
        (down - _FLOOR_Y) / (softness * 0.28)
    ) ** 2
    dark = np.where(down > _HORIZON, 0.75 * np.exp(-away) / (1 + 2.5 * lift), 0.0)
    shaded: Floats = picture * (1 - dark[..., None])
    return shaded


def _ball(picture: Floats, dx: Floats, dy: Floats, *, radius: float, colour: Floats) -> Floats:
    rows, columns = (np.flatnonzero(np.abs(away) < radius) for away in (dy[:, 0], dx[0]))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    nx, ny = dx[box] / radius, dy[box] / radius
    inside = nx**2 + ny**2
    nz = np.sqrt(np.clip(1 - inside, 0, 1))
    normal = np.stack([nx, ny, nz], axis=-1)
    facing = np.clip(normal @ _LIGHT, 0, 1)
    half = _LIGHT + np.array([0.0, 0.0, 1.0])
    shine = np.clip(normal @ (half / np.linalg.norm(half)), 0, 1) ** 40
    bounce = 0.12 * np.clip(ny, 0, 1)
    stripe = 1 - 0.35 * (np.abs(ny * 0.8 + nx * 0.35) < 0.16)
    lit = (0.10 + 0.95 * facing + bounce)[..., None] * colour * stripe[..., None]
    lit = lit + 0.9 * shine[..., None]
    edge = np.clip((1 - np.sqrt(inside)) * radius * picture.shape[0], 0, 1)[..., None]
    picture[box] = picture[box] * (1 - edge) + lit * edge
    return picture


def _strip_height(height: int) -> int:
    return max(6, height // 20)


def _write_index(pixels: Rgb, index: int) -> None:
    if not 0 <= index < 1 << INDEX_BITS:
        msg = f"a scene has frames 0 to {(1 << INDEX_BITS) - 1}, got {index}. Ask for fewer frames"
        raise InvalidValueError(msg)
    height, width, _ = pixels.shape
    cells = [True, False, *(bool(index >> i & 1) for i in range(INDEX_BITS))]
    for place, bright in enumerate(cells):
        left, right = round(place * width / _CELLS), round((place + 1) * width / _CELLS)
        pixels[: _strip_height(height), left:right] = 235 if bright else 16
