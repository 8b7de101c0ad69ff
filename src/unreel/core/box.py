"""Boxes in a frame, as fractions of its width and height."""

import math
from dataclasses import dataclass

from unreel.core.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with positive area: 0 is the left or top edge of the frame, 1 the other one."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (0 <= self.x0 < self.x1 <= 1 and 0 <= self.y0 < self.y1 <= 1):
            raise InvalidValueError(
                f"box must satisfy 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1, got "
                f"[{self.x0}, {self.y0}, {self.x1}, {self.y1}]. Give corners in parts of the frame"
            )

    @property
    def area(self) -> float:
        """Return the fraction of the frame that the box covers."""
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    def iou(self, other_box: "Box") -> float:
        """Compute the intersection over union: 1 for equal boxes, 0 if the boxes share no area."""
        width = min(self.x1, other_box.x1) - max(self.x0, other_box.x0)
        height = min(self.y1, other_box.y1) - max(self.y0, other_box.y0)
        if width <= 0 or height <= 0:
            return 0.0
        shared = width * height
        return min(1.0, shared / (self.area + other_box.area - shared))

    def centre_distance(self, other_box: "Box") -> float:
        """Compute the distance of the box centres as a fraction of the frame diagonal, 0 to 1."""
        across = ((self.x0 + self.x1) - (other_box.x0 + other_box.x1)) / 2
        down = ((self.y0 + self.y1) - (other_box.y0 + other_box.y1)) / 2
        return min(1.0, math.hypot(across, down) / math.sqrt(2))
