"""A street at dusk: houses with lit windows, trees, a lamp, and two cars that drive past.

In the flawed form a wheel leaves the near car at `FLAW_S` and floats up beside it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from PIL import Image

from scenes.car import CarSprite, car_sprite, wheel_sprite
from scenes.paint import (
    Hue,
    Light,
    Points,
    box,
    dim,
    fill,
    from_colour,
    glow,
    grain,
    grid,
    lay,
    ramp,
    shape,
    to_pixels,
)
from unreel.core.box import Box
from unreel.media.decode import Rgb

FLAW_S: Final = 2.0

_KERB: Final = 0.735
_ROAD: Final = 0.755
_LAMP_X: Final = 1.32
_NEAR_ROAD: Final = 0.925
_FAR_ROAD: Final = 0.815
_SHOP: Final = 0.165
_LIT: Final = 0.42
"""Share of the windows behind which somebody is at home."""
_AWNINGS: Final = ((150, 42, 40), (38, 88, 78), (44, 66, 118), (150, 108, 40))
_WHEEL_RISE: Final = 0.085
"""Heights of the picture that the lost wheel rises in a second."""


@dataclass(frozen=True, slots=True)
class StreetScene:
    """The scene in one size; its houses follow from `seed`."""

    width: int
    height: int
    seed: int
    flawed: bool = False

    def draw(self, at_s: float) -> Rgb:
        """The picture at an instant."""
        frame = Image.fromarray(_backdrop(self.width, self.height, self.seed))
        far, near = self._cars(at_s)
        self._drive(frame, far, at_s)
        self._drive(frame, near, at_s)
        if self.flawed and at_s >= FLAW_S:
            x, y = self._lost_wheel(at_s)
            self._paste(frame, wheel_sprite(self.height, near, turn=2.2 * at_s), x, y)
        lamp = _lamp_post(self.width, self.height)
        frame.paste(lamp, (0, 0), lamp)
        return np.asarray(frame)

    def flaw_box(self, at_s: float) -> Box:
        """Return the box around the lost wheel and its original position."""
        _, near = self._cars(at_s)
        x, y = self._lost_wheel(at_s)
        hub_x, hub_y = near.front_wheel
        reach = near.wheel_radius * 1.15
        left, right = min(x, hub_x) - reach, max(x, hub_x) + reach
        top, bottom = min(y, hub_y) - reach, max(y, hub_y) + reach
        aspect = self.width / self.height
        return Box(
            max(0.0, left / aspect), max(0.0, top), min(1.0, right / aspect), min(1.0, bottom)
        )

    def _lost_wheel(self, at_s: float) -> tuple[float, float]:
        _, near = self._cars(at_s)
        hub_x, hub_y = near.front_wheel
        since_s = max(0.0, at_s - FLAW_S)
        drift = 0.035 * math.sin(1.7 * since_s)
        return hub_x + 0.05 * since_s + drift, hub_y - _WHEEL_RISE * since_s

    def _cars(self, at_s: float) -> tuple[CarSprite, CarSprite]:
        aspect = self.width / self.height
        far = CarSprite(
            x=aspect * 1.08 - 0.36 * at_s,
            road=_FAR_ROAD,
            length=0.36,
            heading=-1,
            paint=from_colour(226, 214, 186),
        )
        near = CarSprite(
            x=-0.06 + 0.27 * at_s,
            road=_NEAR_ROAD,
            length=0.56,
            heading=1,
            paint=from_colour(196, 38, 34),
        )
        return far, near

    def _drive(self, frame: Image.Image, car: CarSprite, at_s: float) -> None:
        gone = self.flawed and at_s >= FLAW_S and car.heading == 1
        turn = car.heading * car.x / car.wheel_radius
        sprite = car_sprite(self.height, car.length, car.heading, car.paint)
        self._paste(frame, sprite, car.x, car.road - car.length * 0.16)
        for place, (x, y) in enumerate((car.rear_wheel, car.front_wheel)):
            if not (gone and place == 1):
                self._paste(frame, wheel_sprite(self.height, car, turn=turn), x, y)

    def _paste(self, frame: Image.Image, sprite: Image.Image, x: float, y: float) -> None:
        """`sprite` with its middle at a point, to a fraction of a pixel."""
        left, top = x * self.height - sprite.width / 2, y * self.height - sprite.height / 2
        whole_x, whole_y = math.floor(left), math.floor(top)
        moved = sprite.transform(
            sprite.size,
            Image.Transform.AFFINE,
            (1, 0, whole_x - left, 0, 1, whole_y - top),
            Image.Resampling.BILINEAR,
        )
        frame.paste(moved, (whole_x, whole_y), moved)


@lru_cache(maxsize=4)
def _backdrop(width: int, height: int, seed: int) -> Rgb:
    """Draw the still background."""
    picture = _sky(width, height, seed)
    _skyline(picture, seed)
    _houses(picture, seed)
    _ground(picture, seed)
    for number, x in enumerate((0.17, 0.93)):
        _tree(picture, x, seed=seed + number)
    glow(picture, _LAMP_X - 0.055, 0.31, radius=0.30, colour=(0.16, 0.10, 0.04))
    glow(picture, _LAMP_X - 0.055, 0.80, radius=0.22, colour=(0.10, 0.06, 0.02))
    return to_pixels(picture)


def _sky(width: int, height: int, seed: int) -> Light:
    stops = [
        (0.0, from_colour(47, 66, 118)),
        (0.22, from_colour(104, 108, 160)),
        (0.40, from_colour(226, 150, 128)),
        (0.54, from_colour(252, 202, 138)),
    ]
    picture = ramp(width, height, stops).copy()
    _, down = grid(width, height)
    hills = Image.fromarray(grain(width, height, seed=seed + 31, cells=9))
    drawn_out = np.asarray(hills.resize((4 * width, height), Image.Resampling.BICUBIC))
    clouds = np.clip((drawn_out[:, :width] - 0.5) * 2.4, 0, 1)
    lay(picture, 0.6 * clouds * np.clip((0.5 - down) / 0.35, 0, 1), from_colour(255, 190, 160))
    glow(picture, _sun(picture), 0.56, radius=0.34, colour=(0.50, 0.24, 0.05))
    return picture


def _sun(picture: Light) -> float:
    height, width, _ = picture.shape
    return 0.5 * float(width) / float(height)


def _skyline(picture: Light, seed: int) -> None:
    height, width, _ = picture.shape
    rng = np.random.default_rng(seed + 7)
    for far, tint in ((0.46, (168, 130, 146)), (0.52, (122, 100, 128)), (0.63, (70, 64, 88))):
        x = -0.05
        while x < width / height:
            wide, top = float(rng.uniform(0.05, 0.13)), far - float(rng.uniform(0.0, 0.12))
            fill(picture, box(x, top, x + wide, _KERB), from_colour(*tint))
            x += wide


def _houses(picture: Light, seed: int) -> None:
    height, width, _ = picture.shape
    rng = np.random.default_rng(seed)
    fronts = ((166, 92, 74), (205, 178, 142), (118, 132, 142), (186, 138, 96), (148, 108, 116))
    x, number = -0.04, 0
    while x < width / height:
        wide, top = float(rng.uniform(0.30, 0.42)), float(rng.uniform(0.15, 0.29))
        if x < _sun(picture) - 0.1 < x + wide:
            x += 0.24  # a gap lets the evening through
        front = from_colour(*fronts[(number + seed) % len(fronts)])
        _house(picture, box(x, top, x + wide, _KERB), front=front, seed=seed * 100 + number)
        x += wide
        number += 1


def _house(picture: Light, wall: Points, *, front: Hue, seed: int) -> None:
    (x, top), (end, _) = wall[0], wall[1]
    height, width, _ = picture.shape
    across, down = grid(width, height)
    # Lit by the low sun, darker towards the ground.
    towards = np.exp(-np.abs(across - _sun(picture)) / 0.8)
    light = (0.16 + 0.36 * towards) * (1.1 - 0.55 * np.clip((down - top) / 0.6, 0, 1))
    stone = 0.84 + 0.3 * grain(width, height, seed=seed, cells=60)
    fill(picture, wall, (light * stone)[..., None] * np.asarray(front, np.float32))
    fill(picture, box(x - 0.008, top - 0.018, end + 0.008, top), (0.09, 0.07, 0.075))
    dim(picture, box(x, top, end, top + 0.02), 0.5, blur=0.008)
    dim(picture, box(end - 0.006, top, end, _KERB), 0.55)
    rng = np.random.default_rng(seed)
    columns = max(2, round((end - x) / 0.115))
    step = (end - x) / columns
    for row in range(int((_KERB - _SHOP - top - 0.145) / 0.13) + 1):
        for column in range(columns):
            lit = bool(rng.random() < _LIT)
            _window(
                picture,
                x + (column + 0.28) * step,
                top + 0.05 + row * 0.13,
                wide=0.44 * step,
                lit=lit,
            )
    _shop(picture, x + 0.03, end - 0.035, seed=seed)


def _window(picture: Light, x: float, y: float, *, wide: float, lit: bool) -> None:
    end, bottom = x + wide, y + 0.082
    fill(picture, box(x - 0.006, y - 0.006, end + 0.006, bottom + 0.01), (0.20, 0.17, 0.15))
    fill(picture, box(x, y, end, bottom), (0.95, 0.60, 0.22) if lit else (0.055, 0.075, 0.12))
    if lit:
        fill(picture, box(x, y, end, y + 0.033), (1.0, 0.80, 0.45), cover=0.6, blur=0.006)
        glow(picture, (x + end) / 2, y + 0.041, radius=0.06, colour=(0.10, 0.05, 0.012))
    else:
        slant = ((x + wide * 0.5, y), (end, y), (x + wide * 0.5, bottom), (x, bottom))
        fill(picture, slant, (0.42, 0.30, 0.28), cover=0.3)
    for bar in (
        box(x + wide * 0.47, y, x + wide * 0.53, bottom),
        box(x, y + 0.037, end, y + 0.041),
    ):
        fill(picture, bar, (0.16, 0.13, 0.11))


def _shop(picture: Light, x: float, end: float, *, seed: int) -> None:
    height, width, _ = picture.shape
    across, down = grid(width, height)
    top = _KERB - _SHOP
    rng = np.random.default_rng(seed + 1)
    deep = np.clip((down - top) / _SHOP, 0, 1)
    wares = 0.55 + 0.6 * grain(width, height, seed=seed + 9, cells=16)
    inside = np.asarray((0.78, 0.50, 0.22), np.float32) * (wares * (1.05 - 0.7 * deep))[..., None]
    fill(picture, box(x, top + 0.03, end, _KERB - 0.012), inside)
    fill(picture, box(x, _KERB - 0.03, end, _KERB - 0.008), (0.07, 0.055, 0.05))
    for part in np.linspace(x, end, 5):
        fill(
            picture,
            box(float(part) - 0.004, top, float(part) + 0.004, _KERB - 0.01),
            (0.08, 0.065, 0.06),
        )
    cloth = from_colour(*_AWNINGS[int(rng.integers(len(_AWNINGS)))])
    stripes = np.where(np.sin(across * 190) > 0, 1.0, 0.5).astype(np.float32)
    fold = (1.15 - 8 * np.clip(down - top, 0, 0.05)).astype(np.float32)
    slope = (
        (x - 0.004, top),
        (end + 0.004, top),
        (end + 0.018, top + 0.045),
        (x - 0.018, top + 0.045),
    )
    fill(picture, slope, np.asarray(cloth, np.float32) * (stripes * fold)[..., None])
    dim(picture, box(x - 0.01, top + 0.045, end + 0.01, top + 0.06), 0.5, blur=0.006)
    glow(picture, (x + end) / 2, _KERB, radius=0.11, colour=(0.11, 0.06, 0.018))


def _ground(picture: Light, seed: int) -> None:
    height, width, _ = picture.shape
    across, down = grid(width, height)
    end = width / height + 0.1
    slabs = 0.8 + 0.5 * grain(width, height, seed=seed + 3, cells=80)
    stone = np.asarray((0.15, 0.125, 0.12), np.float32) * slabs[..., None]
    fill(picture, box(-0.1, _KERB - 0.01, end, _ROAD), stone)
    fill(picture, box(-0.1, _ROAD - 0.006, end, _ROAD + 0.004), (0.26, 0.22, 0.20))
    deep = np.clip((down - _ROAD) / (1 - _ROAD), 0, 1)
    rough = (0.75 + 0.55 * grain(width, height, seed=seed + 5, cells=110)) * (0.75 + 0.6 * deep)
    sheen = 0.16 * np.exp(-(((across - _sun(picture)) / 0.5) ** 2)) * (1 - deep)
    asphalt = np.asarray((0.062, 0.058, 0.068), np.float32) * rough[..., None]
    warm = np.asarray((1.0, 0.62, 0.34), np.float32) * sheen[..., None]
    fill(picture, box(-0.1, _ROAD + 0.004, end, 1.1), asphalt + warm)
    for left in np.arange(-0.1, end, 0.26):
        x = float(left)
        dash = ((x, 0.866), (x + 0.12, 0.866), (x + 0.113, 0.878), (x - 0.007, 0.878))
        fill(picture, dash, (0.42, 0.39, 0.34), cover=0.75)


def _tree(picture: Light, x: float, *, seed: int) -> None:
    rng = np.random.default_rng(seed)
    trunk = ((x - 0.012, _KERB), (x + 0.012, _KERB), (x + 0.007, 0.42), (x - 0.007, 0.42))
    fill(picture, trunk, (0.045, 0.03, 0.022))
    dim(picture, box(x - 0.09, _KERB - 0.008, x + 0.09, _KERB + 0.008), 0.55, blur=0.014)
    sun = 1.0 if x < _sun(picture) else -1.0
    for depth in np.linspace(0, 1, 170):
        far, turn = math.sqrt(rng.random()), float(rng.uniform(0, 2 * math.pi))
        across, down = far * math.cos(turn), far * math.sin(turn)
        radius = float(rng.uniform(0.010, 0.020))
        lit = 0.35 + 0.5 * depth + 0.4 * max(-0.8, sun * across - 0.7 * down)
        hue = np.asarray((0.085, 0.11, 0.028)) * lit + np.asarray((0.12, 0.05, 0.0)) * max(
            0, lit - 0.7
        )
        leaf = _disc(x + 0.112 * across, 0.375 + 0.125 * down, radius)
        fill(picture, leaf, (float(hue[0]), float(hue[1]), float(hue[2])), cover=0.9)


def _disc(x: float, y: float, radius: float) -> Points:
    turns = [2 * math.pi * part / 12 for part in range(12)]
    return [(x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]


@lru_cache(maxsize=4)
def _lamp_post(width: int, height: int) -> Image.Image:
    """In front of the cars, so that they pass behind it."""
    canvas = np.zeros((height, width, 3), np.float32)
    post = (
        (_LAMP_X - 0.006, 0.985),
        (_LAMP_X + 0.006, 0.985),
        (_LAMP_X + 0.004, 0.27),
        (_LAMP_X - 0.004, 0.27),
    )
    arm = box(_LAMP_X - 0.07, 0.268, _LAMP_X + 0.004, 0.276)
    foot = box(_LAMP_X - 0.016, 0.955, _LAMP_X + 0.016, 0.99)
    head = (
        (_LAMP_X - 0.085, 0.292),
        (_LAMP_X - 0.03, 0.292),
        (_LAMP_X - 0.045, 0.272),
        (_LAMP_X - 0.07, 0.272),
    )
    bulb = box(_LAMP_X - 0.082, 0.292, _LAMP_X - 0.033, 0.300)
    cover = np.zeros((height, width), np.float32)
    iron: Hue = (0.022, 0.022, 0.028)
    for points, colour in (
        (post, iron),
        (arm, iron),
        (foot, iron),
        (head, iron),
        (bulb, (1.0, 0.9, 0.62)),
    ):
        mask = shape(width, height, points)
        lay(canvas, mask, colour)
        cover = np.maximum(cover, mask)
    across, _ = grid(width, height)
    canvas += (0.10 * cover * np.exp(-(((across - _LAMP_X + 0.003) / 0.0025) ** 2)))[..., None]
    # Unblend, so that edges keep their colour.
    pixels = to_pixels(canvas / np.maximum(cover, 1e-3)[..., None])
    alpha = np.rint(255 * cover).astype(np.uint8)
    return Image.fromarray(np.dstack([pixels, alpha]), "RGBA")
