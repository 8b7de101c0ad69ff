"""Cars of the drawn street: a body with glass and lamps, and wheels that turn."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from scenes.paint import Hue, Light, Points, box, grid, lay, shape, to_pixels

_FINE: Final = 2
_TALL: Final = 0.5
"""Height of a sprite in lengths of its car."""
# The outline in lengths of the car, heading right; 0 is the middle of the sprite.
_BODY: Final = (
    (-0.470, 0.135), (-0.485, 0.090), (-0.480, 0.030), (-0.455, 0.000), (-0.400, -0.018),
    (-0.330, -0.030), (-0.235, -0.112), (-0.190, -0.138), (-0.050, -0.148), (0.060, -0.140),
    (0.120, -0.118), (0.215, -0.040), (0.330, -0.026), (0.430, 0.002), (0.475, 0.040),
    (0.488, 0.090), (0.478, 0.135), (0.400, 0.145), (-0.400, 0.145),
)  # fmt: skip
_GLASS: Final = (
    (-0.285, -0.030), (-0.215, -0.100), (-0.180, -0.120), (-0.050, -0.128), (0.052, -0.121),
    (0.105, -0.104), (0.178, -0.036), (0.175, -0.030),
)  # fmt: skip
_WHEELS: Final = (-0.290, 0.300)
_WHEEL_DOWN: Final = 0.118
_WHEEL_RADIUS: Final = 0.078
_DARK: Final = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarSprite:
    """A car at one instant; lengths in heights of the picture."""

    x: float
    road: float
    """Where its wheels touch the ground."""
    length: float
    heading: int
    """1 to the right, -1 to the left."""
    paint: Hue

    @property
    def wheel_radius(self) -> float:
        """Of the tyre."""
        return _WHEEL_RADIUS * self.length

    @property
    def front_wheel(self) -> tuple[float, float]:
        """Its hub."""
        return self._hub(_WHEELS[1])

    @property
    def rear_wheel(self) -> tuple[float, float]:
        """Its hub."""
        return self._hub(_WHEELS[0])

    def _hub(self, along: float) -> tuple[float, float]:
        y = self.road - self.length * 0.16 + _WHEEL_DOWN * self.length
        return self.x + self.heading * along * self.length, y


@lru_cache(maxsize=8)
def car_sprite(height: int, length: float, heading: int, paint: Hue) -> Image.Image:
    """The body and its shadow for a picture of that height, without wheels."""
    scale = round(length * height * _FINE)
    wide, tall = round(scale * 1.16), round(scale * _TALL)
    body = _CarPanel(wide, tall, scale)
    shadow = body.ellipse(0.0, 0.198, 0.50, 0.022, blur=0.02)
    outline = body.polygon(_BODY)
    picture = np.zeros((tall, wide, 3), np.float32)
    _, down = grid(wide, tall)
    at = down * tall / scale - _TALL / 2
    lay(picture, outline, _paintwork(at, paint))
    _details(body, picture, outline)
    arches = np.maximum(*(body.ellipse(x, _WHEEL_DOWN, 0.094, 0.094) for x in _WHEELS))
    lay(picture, arches * outline, (0.008, 0.008, 0.010))
    below = body.polygon(box(-0.44, 0.125, 0.44, 0.152))
    lay(picture, below, (0.012, 0.012, 0.014))
    solid = np.maximum(outline, below)
    cover = np.maximum(solid, 0.8 * shadow)
    picture *= solid[..., None] / np.maximum(cover, 1e-3)[..., None]
    pixels = to_pixels(picture / np.where(solid > 0, np.maximum(solid, 1e-3), 1)[..., None])
    alpha = np.rint(255 * np.clip(cover, 0, 1)).astype(np.uint8)
    sprite = Image.fromarray(np.dstack([pixels, alpha]), "RGBA")
    if heading < 0:
        sprite = sprite.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return sprite.resize((max(2, wide // _FINE), max(2, tall // _FINE)), Image.Resampling.BOX)


def wheel_sprite(height: int, car: CarSprite, *, turn: float) -> Image.Image:
    """A wheel turned by an angle."""
    return _wheel(height, round(car.wheel_radius, 5), round(turn % (2 * math.pi / 5), 2))


@lru_cache(maxsize=256)
def _wheel(height: int, radius: float, turn: float) -> Image.Image:
    fine = 4
    size = max(8, round(radius * height * 2.3))
    side = size * fine
    reach = radius * height * fine
    sprite = Image.new("RGBA", (side, side))
    draw = ImageDraw.Draw(sprite)
    middle = side / 2

    def disc(part: float, colour: tuple[int, int, int, int]) -> None:
        r = reach * part
        draw.ellipse((middle - r, middle - r, middle + r, middle + r), fill=colour)

    disc(1.0, (20, 20, 23, 255))
    disc(0.93, (34, 34, 38, 255))
    disc(0.68, (18, 18, 21, 255))
    disc(0.64, (150, 152, 160, 255))
    disc(0.55, (46, 47, 54, 255))
    for spoke in range(5):
        angle = turn + spoke * 2 * math.pi / 5
        tip = (middle + reach * 0.60 * math.cos(angle), middle + reach * 0.60 * math.sin(angle))
        draw.line(
            (middle, middle, *tip), fill=(186, 188, 196, 255), width=max(2, round(reach * 0.15))
        )
    disc(0.17, (120, 122, 130, 255))
    disc(0.09, (60, 61, 68, 255))
    light = Image.linear_gradient("L").resize((side, side))
    bright = Image.merge("RGB", [light.point(lambda v: 255 - v // 2)] * 3)
    lit = Image.fromarray(
        (np.asarray(sprite.convert("RGB")).astype(np.uint16) * np.asarray(bright) // 255).astype(
            np.uint8
        )
    )
    lit.putalpha(sprite.getchannel("A"))
    return lit.resize((size, size), Image.Resampling.BOX)


@dataclass(frozen=True, slots=True)
class _CarPanel:
    """A sprite's pixels, addressed in lengths of the car from its middle."""

    wide: int
    tall: int
    scale: int

    def polygon(self, points: Points, *, blur: float = 0.0) -> Light:
        placed = [
            (
                (x * self.scale + self.wide / 2) / self.tall,
                (y * self.scale + self.tall / 2) / self.tall,
            )
            for x, y in points
        ]
        return shape(self.wide, self.tall, placed, blur=blur * self.scale / self.tall)

    def ellipse(self, x: float, y: float, rx: float, ry: float, *, blur: float = 0.0) -> Light:
        mask = Image.new("L", (self.wide * 2, self.tall * 2))
        corners = (
            ((x - rx) * self.scale + self.wide / 2) * 2,
            ((y - ry) * self.scale + self.tall / 2) * 2,
            ((x + rx) * self.scale + self.wide / 2) * 2,
            ((y + ry) * self.scale + self.tall / 2) * 2,
        )
        ImageDraw.Draw(mask).ellipse(corners, fill=255)
        small = mask.resize((self.wide, self.tall), Image.Resampling.BOX)
        if blur:
            small = small.filter(ImageFilter.GaussianBlur(blur * self.scale))
        return np.asarray(small).astype(np.float32) / 255


def _paintwork(at: Light, paint: Hue) -> Light:
    """Sky on the upper side, a bright shoulder, the road's dark below."""
    base = np.asarray(paint, np.float32)
    light = np.interp(
        at, [-0.15, -0.10, -0.03, 0.0, 0.03, 0.09, 0.15], [1.5, 1.1, 1.25, 1.55, 0.9, 0.5, 0.22]
    )
    sky = np.interp(at, [-0.15, -0.12, -0.03, -0.005, 0.02], [0.16, 0.05, 0.03, 0.13, 0.0])
    coat: Light = light[..., None] * base * 0.8 + sky[..., None] * np.asarray(
        (1.0, 0.78, 0.62), np.float32
    )
    return coat.astype(np.float32)


def _details(body: _CarPanel, picture: Light, outline: Light) -> None:
    glass = body.polygon(_GLASS)
    lay(picture, glass, (0.03, 0.04, 0.06))
    slant = body.polygon(((-0.20, -0.14), (-0.10, -0.14), (-0.20, -0.02), (-0.29, -0.02)))
    lay(picture, 0.5 * glass * slant, (0.45, 0.34, 0.32))
    slant = body.polygon(((0.075, -0.14), (0.115, -0.14), (0.15, -0.02), (0.06, -0.02)))
    lay(picture, 0.4 * glass * slant, (0.45, 0.34, 0.32))
    for x in (-0.085, 0.03):
        pillar = body.polygon(box(x - 0.008, -0.15, x + 0.008, -0.028))
        lay(picture, pillar * glass, (0.02, 0.02, 0.024))
    for x in (-0.20, -0.02, 0.165):
        lay(
            picture,
            0.65 * outline * body.polygon(box(x - 0.0022, -0.028, x + 0.0022, 0.125)),
            _DARK,
        )
    for x in (-0.13, 0.05):
        lay(picture, body.polygon(box(x, 0.004, x + 0.04, 0.012)), (0.30, 0.28, 0.28))
    lay(picture, 0.4 * outline * body.polygon(box(-0.46, 0.076, 0.46, 0.082)), _DARK)
    front = body.polygon(((0.405, 0.012), (0.462, 0.030), (0.470, 0.058), (0.415, 0.046)))
    lay(picture, front, (1.0, 0.93, 0.70))
    rear = body.polygon(((-0.476, 0.012), (-0.425, 0.012), (-0.438, 0.052), (-0.480, 0.052)))
    lay(picture, rear, (0.75, 0.03, 0.02))
    lay(picture, body.polygon(box(0.44, 0.088, 0.482, 0.112)), (0.03, 0.03, 0.035))
