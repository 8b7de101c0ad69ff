"""Plain sentences about an injected trace, as a person would write them."""

import colorsys
from typing import Final

import numpy as np

from unreel.core.box import Box
from unreel.core.trace import Category
from unreel.media.decode import Rgb

_SENTENCES: Final = {
    Category.SUDDEN_BLURRING: "{Thing} {place} turns blurred from one moment to the next while all around it stays sharp.",
    Category.OBJECT_DISTORTION: "{Thing} {place} twists and wobbles as if it were made of rubber.",
    Category.OBJECT_DISAPPEARANCE: "{Thing} {place} vanishes while it should still be there.",
    Category.REDUNDANT_OBJECT: "A second copy of {thing} appears {place} and moves in step with the first.",
    Category.OBJECT_MERGING: "{Thing} {place} and what is beside it are drawn together and melt into one.",
    Category.OBJECT_SPLITTING: "{Thing} {place} splits into two copies that drift apart.",
    Category.OBJECT_TRAJECTORY: "{Thing} {place} leaves its path and jumps from side to side as it moves.",
    Category.BACKGROUND_DISTORTION: "The background {place} bends and ripples although nothing touches it.",
    Category.UNEXPECTED_MOVE: "A part of the scene {place} moves {direction} by itself, without any cause, while all around it stays.",
}
_GREY: Final = 0.18
_DARK: Final = 0.22
_BRIGHT: Final = 0.8
_HUES: Final = (
    (0.04, "red"),
    (0.11, "orange"),
    (0.18, "yellow"),
    (0.45, "green"),
    (0.53, "turquoise"),
    (0.7, "blue"),
    (0.8, "purple"),
    (0.94, "pink"),
    (1.0, "red"),
)


def explain(category: Category, *, box: Box, thing: str, towards: tuple[int, int]) -> str:
    """Return one sentence that describes a trace of `category` in `box`."""
    return _SENTENCES[category].format(
        thing=thing,
        Thing=thing.capitalize(),
        place=place_name(box),
        direction=direction_name(towards),
    )


def place_name(box: Box) -> str:
    """Return the name of the ninth of the picture that contains the centre of `box`."""
    across, down = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    column = ("left", "middle", "right")[min(2, int(3 * across))]
    row = ("top", "middle", "bottom")[min(2, int(3 * down))]
    if (row, column) == ("middle", "middle"):
        return "in the middle"
    if row == "middle":
        return f"on the {column}"
    return f"at the {row}" if column == "middle" else f"at the {row} {column}"


def direction_name(towards: tuple[int, int]) -> str:
    """The nearer of the four directions."""
    across, down = towards
    if abs(across) >= abs(down):
        return "to the right" if across > 0 else "to the left"
    return "down" if down > 0 else "up"


def colour_name(pixels: Rgb) -> str:
    """The word for the colour that `pixels` (rows of red, green, blue) mostly have."""
    red, green, blue = (float(level) / 255 for level in np.median(pixels.reshape(-1, 3), axis=0))
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value < _DARK:
        return "dark"
    if saturation < _GREY:
        return "bright" if value > _BRIGHT else "grey"
    return next(name for limit, name in _HUES if hue <= limit)
