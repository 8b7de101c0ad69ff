"""A room in the afternoon: light through a window, a table, a swinging lamp, and a ball that bounces.

In the flawed form a second ball comes out of the first at `FLAW_S`, without a shadow.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from scenes.paint import Hue, Light, box, dim, fill, from_colour, glow, grain, grid, ramp, to_pixels
from unreel.core.box import Box
from unreel.media.decode import Rgb

FLAW_S: Final = 2.0

_EDGE: Final = 0.62
"""Where the wall meets the floor."""
_GROUND: Final = 0.885
_RADIUS: Final = 0.082
_LIGHT: Final = np.array([-0.55, -0.62, 0.56]) / np.linalg.norm([-0.55, -0.62, 0.56])
_LAMP: Final = (1.18, -0.02, 0.235)
"""Where the lamp hangs, from how high, and how far down."""


@dataclass(frozen=True, slots=True)
class RoomScene:
    """The scene in one size; its colours follow from `seed`."""

    width: int
    height: int
    seed: int
    flawed: bool = False

    def draw(self, at_s: float) -> Rgb:
        """The picture at an instant."""
        light = _backdrop(self.width, self.height, self.seed).copy()
        paint = _hue(self.seed + 0.45, 0.80, 0.62)
        x, y = self._ball(at_s)
        _cast(light, x, lift=_GROUND - _RADIUS - y)
        _mirror(light, x, y, paint)
        _sphere(light, x, y, paint, turn=x / _RADIUS)
        if self.flawed and at_s >= FLAW_S:
            twin_x, twin_y = self._twin(at_s)
            _sphere(light, twin_x, twin_y, paint, turn=x / _RADIUS)
        _lamp(light, 0.07 * math.sin(1.9 * at_s))
        return to_pixels(light)

    def flaw_box(self, at_s: float) -> Box:
        """Return the box of the second ball."""
        x, y = self._twin(at_s)
        reach, aspect = _RADIUS * 1.08, self.width / self.height
        return Box(
            max(0.0, (x - reach) / aspect),
            max(0.0, y - reach),
            min(1.0, (x + reach) / aspect),
            min(1.0, y + reach),
        )

    def _ball(self, at_s: float) -> tuple[float, float]:
        aspect = self.width / self.height
        room = aspect - 0.5
        x = 0.25 + room * (0.5 - 0.5 * math.cos(2 * math.pi * at_s / 9))
        height = 0.30 * math.exp(-0.12 * at_s)
        return x, _GROUND - _RADIUS - height * abs(math.sin(math.pi * at_s / 0.95))

    def _twin(self, at_s: float) -> tuple[float, float]:
        x, y = self._ball(FLAW_S)
        since_s = max(0.0, at_s - FLAW_S)
        return x - 0.06 * since_s, y - 0.09 * since_s


@lru_cache(maxsize=4)
def _backdrop(width: int, height: int, seed: int) -> Light:
    """Draw the still background."""
    picture = _walls(width, height, seed)
    _window(picture)
    _floor(picture)
    _beam(picture)
    _painting(picture, seed)
    _table(picture, seed)
    return picture


def _walls(width: int, height: int, seed: int) -> Light:
    across, down = grid(width, height)
    wall = np.asarray(_hue(seed + 0.08, 0.22, 0.62), np.float32)
    fall = 0.38 + 0.75 * np.exp(-(((across - 0.5) / 0.9) ** 2) - ((down - 0.35) / 0.6) ** 2)
    plaster = 0.96 + 0.08 * grain(width, height, seed=seed + 2, cells=40)
    picture: Light = (fall * plaster)[..., None] * wall
    return picture.astype(np.float32)


def _window(picture: Light) -> None:
    height, width, _ = picture.shape
    sky = ramp(
        width, height, [(0.0, from_colour(150, 196, 240)), (0.55, from_colour(240, 244, 250))]
    )
    fill(picture, box(0.155, 0.085, 0.545, 0.515), (0.62, 0.58, 0.52))
    fill(picture, box(0.175, 0.105, 0.525, 0.495), sky * 1.15)
    hills = (
        (0.175, 0.43),
        (0.27, 0.39),
        (0.36, 0.42),
        (0.46, 0.37),
        (0.525, 0.41),
        (0.525, 0.495),
        (0.175, 0.495),
    )
    fill(picture, hills, (0.23, 0.36, 0.17))
    fill(
        picture,
        ((0.175, 0.46), (0.33, 0.435), (0.525, 0.455), (0.525, 0.495), (0.175, 0.495)),
        (0.13, 0.25, 0.09),
    )
    for bar in (box(0.344, 0.105, 0.356, 0.495), box(0.175, 0.293, 0.525, 0.304)):
        fill(picture, bar, (0.66, 0.62, 0.56))
    fill(picture, box(0.135, 0.515, 0.565, 0.535), (0.70, 0.66, 0.60))
    dim(picture, box(0.14, 0.535, 0.56, 0.552), 0.35, blur=0.008)
    across, down = grid(width, height)
    folds = 0.62 + 0.25 * np.sin(across * 150 + 4 * down) + 0.05 * np.sin(across * 61)
    cloth = np.asarray(from_colour(222, 206, 178), np.float32) * folds.astype(np.float32)[..., None]
    for left, right in ((0.06, 0.19), (0.51, 0.64)):
        inner = 0.012 if left < 0.3 else -0.012
        curtain = ((left, 0.06), (right, 0.06), (right + inner, 0.57), (left + inner, 0.57))
        fill(picture, curtain, cloth)
    fill(picture, box(0.03, 0.048, 0.67, 0.062), (0.10, 0.065, 0.04))
    glow(picture, 0.35, 0.3, radius=0.42, colour=(0.10, 0.09, 0.07))


def _floor(picture: Light) -> None:
    height, width, _ = picture.shape
    across, down = grid(width, height)
    depth = np.maximum(down - (_EDGE - 0.10), 0.02)
    plank_at = (across - width / height / 2) / depth * 0.9
    plank = np.floor(plank_at)
    tone = 0.78 + 0.3 * ((np.sin(plank * 12.9898) * 43758.5453) % 1)
    fibre = 0.9 + 0.2 * np.sin(40 / depth + 9 * np.sin(plank * 3.1) + 3 * (plank_at - plank))
    line_at = np.minimum(plank_at - plank, 1 - plank_at + plank) * depth * height / 0.9
    seam = 1 - 0.55 * np.exp(-((line_at / 0.9) ** 2))
    wood = np.asarray(from_colour(158, 108, 66), np.float32)
    near = 0.55 + 0.45 * np.clip((down - _EDGE) / (1 - _EDGE), 0, 1)
    boards = wood * (tone * (0.9 + 0.1 * fibre) * seam * near)[..., None].astype(np.float32)
    end = width / height + 0.1
    fill(picture, box(-0.1, _EDGE, end, 1.1), boards)
    fill(picture, box(-0.1, _EDGE - 0.035, end, _EDGE), (0.52, 0.48, 0.43))
    dim(picture, box(-0.1, _EDGE - 0.004, end, _EDGE + 0.012), 0.6, blur=0.006)
    dim(picture, box(-0.1, _EDGE - 0.037, end, _EDGE - 0.034), 0.4)


def _beam(picture: Light) -> None:
    """The window's panes, thrown onto the floor."""
    height, width, _ = picture.shape
    lit = np.zeros((height, width, 3), np.float32)
    for row, (top, bottom) in enumerate(((0.70, 0.795), (0.805, 0.93))):
        for column in range(2):
            lean_top, lean_bottom = 0.18 + 0.55 * (top - 0.7), 0.18 + 0.55 * (bottom - 0.7)
            wide_top, wide_bottom = 0.175 + 0.2 * (top - 0.7), 0.175 + 0.2 * (bottom - 0.7)
            a, b = (
                0.30 + lean_top + column * (wide_top + 0.012),
                0.30 + lean_bottom + column * (wide_bottom + 0.014),
            )
            pane = ((a, top), (a + wide_top, top), (b + wide_bottom, bottom), (b, bottom))
            fill(lit, pane, (1.0, 0.93, 0.78), blur=0.004 + 0.002 * row)
    picture *= 1 + 1.25 * lit


def _painting(picture: Light, seed: int) -> None:
    height, width, _ = picture.shape
    dim(picture, box(0.815, 0.185, 1.055, 0.455), 0.4, blur=0.012)
    fill(picture, box(0.80, 0.165, 1.04, 0.435), (0.09, 0.055, 0.03))
    fill(picture, box(0.806, 0.171, 1.034, 0.429), (0.24, 0.15, 0.07))
    fill(picture, box(0.818, 0.183, 1.022, 0.417), (0.78, 0.74, 0.66))
    sky = ramp(
        width, height, [(0.2, _hue(seed + 0.55, 0.5, 0.7)), (0.38, _hue(seed + 0.1, 0.5, 0.9))]
    )
    fill(picture, box(0.838, 0.205, 1.002, 0.395), sky)
    fill(
        picture,
        (
            (0.838, 0.345),
            (0.895, 0.275),
            (0.945, 0.34),
            (0.975, 0.305),
            (1.002, 0.335),
            (1.002, 0.395),
            (0.838, 0.395),
        ),
        _hue(seed + 0.6, 0.45, 0.22),
    )
    fill(
        picture,
        ((0.838, 0.37), (0.92, 0.345), (1.002, 0.365), (1.002, 0.395), (0.838, 0.395)),
        _hue(seed + 0.35, 0.55, 0.16),
    )


def _table(picture: Light, seed: int) -> None:
    dim(picture, box(1.34, 0.775, 1.74, 0.80), 0.6, blur=0.016)
    wood, dark = (0.20, 0.105, 0.048), (0.085, 0.042, 0.02)
    for x in (1.375, 1.665):
        fill(
            picture,
            ((x - 0.012, 0.56), (x + 0.012, 0.56), (x + 0.008, 0.785), (x - 0.008, 0.785)),
            dark,
        )
    fill(picture, box(1.345, 0.545, 1.695, 0.585), dark)
    fill(picture, ((1.36, 0.522), (1.68, 0.522), (1.712, 0.548), (1.328, 0.548)), wood)
    fill(
        picture,
        ((1.36, 0.522), (1.50, 0.522), (1.49, 0.548), (1.328, 0.548)),
        (0.42, 0.27, 0.15),
        cover=0.5,
        blur=0.006,
    )
    glaze = _hue(seed + 0.52, 0.55, 0.34)
    vase = (
        (1.475, 0.375),
        (1.515, 0.375),
        (1.511, 0.40),
        (1.545, 0.455),
        (1.543, 0.50),
        (1.521, 0.532),
        (1.469, 0.532),
        (1.447, 0.50),
        (1.445, 0.455),
        (1.479, 0.40),
    )
    fill(picture, vase, glaze)
    fill(
        picture,
        (
            (1.478, 0.40),
            (1.488, 0.40),
            (1.472, 0.458),
            (1.474, 0.51),
            (1.460, 0.50),
            (1.457, 0.456),
        ),
        (0.9, 0.86, 0.78),
        cover=0.55,
        blur=0.004,
    )
    dim(
        picture,
        (
            (1.512, 0.40),
            (1.545, 0.455),
            (1.543, 0.50),
            (1.521, 0.532),
            (1.505, 0.532),
            (1.525, 0.47),
        ),
        0.5,
        blur=0.006,
    )
    rng = np.random.default_rng(seed)
    for x, y in ((1.43, 0.275), (1.47, 0.235), (1.515, 0.225), (1.555, 0.262), (1.495, 0.285)):
        fill(
            picture,
            ((1.492, 0.38), (1.498, 0.38), (x + 0.002, y), (x - 0.002, y)),
            (0.06, 0.13, 0.04),
        )
        bloom = _hue(seed + 0.93 + float(rng.uniform(-0.04, 0.04)), 0.65, 0.75)
        for turn in range(6):
            angle = turn * math.pi / 3 + x
            petal = _disc(x + 0.013 * math.cos(angle), y + 0.013 * math.sin(angle), 0.011)
            fill(picture, petal, bloom, cover=0.9)
        fill(picture, _disc(x, y, 0.008), (0.75, 0.52, 0.10))


def _lamp(picture: Light, turn: float) -> None:
    x, top, down = _LAMP
    end_x, end_y = x + down * math.sin(turn), top + down * math.cos(turn)
    fill(
        picture,
        ((x - 0.0015, top), (x + 0.0015, top), (end_x + 0.0015, end_y), (end_x - 0.0015, end_y)),
        (0.03, 0.03, 0.03),
    )
    lean = 0.06 * math.sin(turn)
    shade_ = (
        (end_x - 0.018, end_y - 0.02),
        (end_x + 0.018, end_y - 0.02),
        (end_x + 0.075 - lean, end_y + 0.055 + lean),
        (end_x - 0.075 - lean, end_y + 0.055 - lean),
    )
    fill(picture, shade_, (0.55, 0.20, 0.10))
    fill(
        picture,
        (
            (end_x - 0.018, end_y - 0.02),
            (end_x - 0.004, end_y - 0.02),
            (end_x - 0.03 - lean, end_y + 0.055),
            (end_x - 0.075 - lean, end_y + 0.055 - lean),
        ),
        (0.95, 0.50, 0.28),
        cover=0.55,
        blur=0.006,
    )
    fill(
        picture,
        box(end_x - 0.05 - lean, end_y + 0.052, end_x + 0.05 - lean, end_y + 0.06),
        (1.2, 1.0, 0.7),
    )
    glow(picture, end_x - lean, end_y + 0.07, radius=0.10, colour=(0.16, 0.11, 0.05))


def _cast(picture: Light, x: float, *, lift: float) -> None:
    """The ball's shadow: paler and wider the higher it is."""
    soft = 1 + 2.2 * lift
    points = _disc(0, 0, _RADIUS * 0.9 * soft)
    shadow = [(x + 0.35 * lift + px, _GROUND - 0.008 + 0.28 * py) for px, py in points]
    dim(picture, shadow, 0.72 / (1 + 3.5 * lift), blur=0.008 + 0.05 * lift)


def _mirror(picture: Light, x: float, y: float, paint: Hue) -> None:
    """A faint image in the varnish."""
    down = 2 * _GROUND - y
    fill(picture, _disc(x, down, _RADIUS), paint, cover=0.10, blur=0.012)


def _sphere(picture: Light, x: float, y: float, paint: Hue, *, turn: float) -> None:
    height, width, _ = picture.shape
    left, right = (int(min(max((x + way * 1.1 * _RADIUS) * height, 0), width)) for way in (-1, 1))
    top, bottom = (int(min(max((y + way * 1.1 * _RADIUS) * height, 0), height)) for way in (-1, 1))
    if left >= right or top >= bottom:
        return
    part = (slice(top, bottom), slice(left, right))
    across, down = grid(width, height)
    nx, ny = (across[part] - x) / _RADIUS, (down[part] - y) / _RADIUS
    inside = nx**2 + ny**2
    nz = np.sqrt(np.clip(1 - inside, 0, 1))
    normal = np.stack([nx, ny, nz], axis=-1)
    facing = np.clip(normal @ _LIGHT, 0, 1)
    half = _LIGHT + np.array([0.0, 0.0, 1.0])
    shine = np.clip(normal @ (half / np.linalg.norm(half)), 0, 1) ** 60
    floor = 0.16 * np.clip(ny, 0, 1)[..., None] * np.asarray(from_colour(190, 130, 80))
    band = np.sin(math.cos(turn) * nx * 4 + math.sin(turn) * ny * 4)
    striped = np.clip((0.45 - np.abs(band)) * 6 + 0.5, 0, 1)[..., None]
    colour = striped * np.asarray((0.80, 0.76, 0.68)) + (1 - striped) * np.asarray(paint)
    rim = 0.12 * (1 - nz) ** 3
    lit = (
        (0.14 + 0.95 * facing)[..., None] * colour
        + floor * colour * 3
        + (0.85 * shine + rim)[..., None]
    )
    edge = np.clip((1 - np.sqrt(inside)) * _RADIUS * height, 0, 1)[..., None]
    picture[part] = picture[part] * (1 - edge) + lit * edge


def _disc(x: float, y: float, radius: float) -> list[tuple[float, float]]:
    turns = [2 * math.pi * part / 32 for part in range(32)]
    return [(x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]


def _hue(turn: float, saturation: float, value: float) -> Hue:
    shifted = np.clip(np.abs((turn * 0.618 * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1, 0, 1)
    r, g, b = (float(c) for c in value * (1 - saturation + saturation * shifted))
    return r, g, b
