"""Brushes of the drawn scenes: gradients, grain, soft light and shade, all from a seed.

Pictures are arrays of light, height x width x 3, where 1 is as bright as the screen.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from unreel.media.decode import Rgb

Light = NDArray[np.floating[Any]]
Points = Sequence[tuple[float, float]]
Hue = tuple[float, float, float]

_FINE: Final = 3
"""Edges are drawn this many times finer, then averaged."""


@lru_cache(maxsize=8)
def grid(width: int, height: int) -> tuple[Light, Light]:
    """Columns and rows of the pixels, in heights of the picture."""
    down, across = np.mgrid[0:height, 0:width].astype(np.float32)
    return (across + 0.5) / height, (down + 0.5) / height


def ramp(width: int, height: int, stops: Sequence[tuple[float, Hue]]) -> Light:
    """Colours from top to bottom: each stop is a height from 0 to 1 and its colour."""
    at = (np.arange(height, dtype=np.float32) + 0.5) / height
    places = [place for place, _ in stops]
    column = np.stack(
        [np.interp(at, places, [hue[channel] for _, hue in stops]) for channel in range(3)], axis=-1
    )
    return np.broadcast_to(column[:, None, :], (height, width, 3)).astype(np.float32)


def grain(width: int, height: int, *, seed: int, cells: int) -> Light:
    """Smooth noise from 0 to 1, about `cells` hills down the picture, with finer ones on them."""
    rng = np.random.default_rng(seed)
    total = np.zeros((height, width), np.float32)
    weight = 1.0
    for octave in range(3):
        rows = max(2, cells << octave)
        columns = max(2, rows * width // height)
        coarse = Image.fromarray(rng.random((rows, columns)).astype(np.float32))
        total += weight * np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
        weight /= 2
    low, high = float(total.min()), float(total.max())
    spread: Light = (total - low) / max(high - low, 1e-6)
    return spread


def shape(width: int, height: int, points: Points, *, blur: float = 0.0) -> Light:
    """Return the fraction of each pixel inside the polygon, 0 to 1; points are in heights of the picture."""
    return _inside(width, height, points, blur=blur, scale=height)


def _inside(width: int, height: int, points: Points, *, blur: float, scale: int) -> Light:
    mask = Image.new("L", (width * _FINE, height * _FINE))
    scaled = [(x * scale * _FINE, y * scale * _FINE) for x, y in points]
    ImageDraw.Draw(mask).polygon(scaled, fill=255)
    small = mask.resize((width, height), Image.Resampling.BOX)
    if blur:
        small = small.filter(ImageFilter.GaussianBlur(blur * scale))
    return np.asarray(small).astype(np.float32) / 255


def box(x0: float, y0: float, x1: float, y1: float) -> Points:
    """A rectangle as points."""
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def lay(picture: Light, mask: Light, colour: Light | Hue) -> None:
    """Paint `colour` over `picture` where `mask` is."""
    cover = mask[..., None]
    picture *= 1 - cover
    picture += cover * np.asarray(colour, np.float32)


def fill(
    picture: Light, points: Points, colour: Light | Hue, *, cover: float = 1.0, blur: float = 0.0
) -> None:
    """Draw a polygon over `picture`; only its bounding box is changed."""
    part, moved, size = _part(picture, points, blur)
    if size[0] and size[1]:
        painted = colour[part] if isinstance(colour, np.ndarray) else colour
        lay(picture[part], cover * _inside(*size, moved, blur=blur, scale=len(picture)), painted)


def dim(picture: Light, points: Points, strength: float, *, blur: float = 0.0) -> None:
    """Darken a polygon of `picture`."""
    fill(picture, points, (0.0, 0.0, 0.0), cover=strength, blur=blur)


def glow(picture: Light, x: float, y: float, *, radius: float, colour: Hue) -> None:
    """Add light that fades from a point."""
    part, _, _ = _part(
        picture, box(x - 3 * radius, y - 3 * radius, x + 3 * radius, y + 3 * radius), 0
    )
    height, width, _ = picture.shape
    across, down = grid(width, height)
    far = ((across[part] - x) ** 2 + (down[part] - y) ** 2) / radius**2
    picture[part] += np.exp(-far)[..., None] * np.asarray(colour, np.float32)


def _part(
    picture: Light, points: Points, blur: float
) -> tuple[tuple[slice, slice], Points, tuple[int, int]]:
    """The rows and columns around `points`, the points seen from their corner, and their size."""
    height, width, _ = picture.shape
    room = 3 * blur * height + 2
    xs, ys = ([point[axis] * height for point in points] for axis in (0, 1))
    left, right = (int(min(max(edge, 0), width)) for edge in (min(xs) - room, max(xs) + room))
    top, bottom = (int(min(max(edge, 0), height)) for edge in (min(ys) - room, max(ys) + room))
    moved = [(x - left / height, y - top / height) for x, y in points]
    return (slice(top, bottom), slice(left, right)), moved, (right - left, bottom - top)


def to_pixels(light: Light) -> Rgb:
    """The picture as a screen shows it, with highlights rolled off instead of cut."""
    soft = np.where(light > 0.8, 0.8 + 0.2 * np.tanh((light - 0.8) / 0.2), light)
    return np.clip(np.rint(255 * np.clip(soft, 0, 1) ** 0.4545), 0, 255).astype(np.uint8)


def from_colour(red: int, green: int, blue: int) -> Hue:
    """A screen colour as light."""
    r, g, b = ((value / 255) ** 2.2 for value in (red, green, blue))
    return r, g, b
