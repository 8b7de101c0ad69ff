"""Coordinate spaces of boxes in answers. The space is declared, not guessed from numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError

PERMILLE = 1000
_MODEL_INPUT = re.compile(r"model-input ([0-9]{1,5})x([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class BoxSpace:
    """A coordinate system for boxes: `width` by `height` units with the top left corner at 0, 0."""

    name: str
    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise InvalidValueError(
                f"width and height of a box space must be at least 1, not {self.width}x{self.height}"
            )

    def box(self, corners: Sequence[Fraction]) -> Box | None:
        """Convert `x0, y0, x1, y1` in this space to a `Box`, clipped to the frame.

        Return `None` if the box is empty. Corners in reverse order are not swapped: the result is `None`.
        """
        x0, x1 = (_clamp_to_unit(corners[i] / self.width) for i in (0, 2))
        y0, y1 = (_clamp_to_unit(corners[i] / self.height) for i in (1, 3))
        return Box(x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None

    def corners(self, box: Box) -> tuple[float, float, float, float]:
        """Return the corners of `box` in the units of this space."""
        return (
            box.x0 * self.width,
            box.y0 * self.height,
            box.x1 * self.width,
            box.y1 * self.height,
        )


def parse_box_space(declared: str, *, width: int, height: int) -> BoxSpace:
    """Return the coordinate space called `declared`, for frames of `width` by `height` pixels.

    `pixel` means the clip's own pixels, `unit` runs from 0 to 1, `permille` from 0 to 1000, and
    `model-input 448x252` means pixels of the resized frame that the model received.
    """
    if size := _MODEL_INPUT.fullmatch(declared):
        return BoxSpace(declared, int(size[1]), int(size[2]))
    sizes = {"pixel": (width, height), "unit": (1, 1), "permille": (PERMILLE, PERMILLE)}
    if declared not in sizes:
        raise InvalidValueError(
            f"no box space is named {declared!r}. Use pixel, unit, permille or 'model-input WxH', "
            "for example 'model-input 448x252'"
        )
    return BoxSpace(declared, *sizes[declared])


def _clamp_to_unit(part: Fraction) -> float:
    return float(min(Fraction(1), max(Fraction(0), part)))
