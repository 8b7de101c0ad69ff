"""Uniform borders: added bars of one grey level at the edges of the picture.

A bar differs from a dark or empty part of the scene by its straight inner edge: within a few lines
the frame changes from nothing to content along much of the line. An object in front of a black
background begins with its tip.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.core.box import Box
from unreel.media.scan import FULL, FrameSide, PickedFrame

THINNEST_PX: Final = 2
"""A thinner bar is what encoders leave at an edge."""
STEADY: Final = 4
"""Grey levels by which a bar may change over time."""
EMPTY_SHARE: Final = 0.01
"""Part of a line inside a bar that may differ from the bar: what a codec does to it."""
EDGE_SHARE: Final = 0.3
"""Part of a line that must differ from the bar for the picture to begin there."""
EDGE_PX: Final = 8
"""Lines over which an edge may be smeared: one block of a codec."""
STEP_PX: Final = 3
STEP_SHARE: Final = 0.15
"""Part of a line that may differ from the bar `STEP_PX` before the picture begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BorderWidths:
    """Widths of the bars in pixels of the displayed clip; 0 without a bar."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0

    def __bool__(self) -> bool:
        return any((self.left, self.top, self.right, self.bottom))

    def content(self, *, width: int, height: int) -> Box:
        """Return the picture inside the bars, as fractions of a frame of `width` x `height` pixels."""
        return Box(
            self.left / width,
            self.top / height,
            1 - self.right / width,
            1 - self.bottom / height,
        )


def find_borders(frames: Sequence[PickedFrame]) -> BorderWidths:
    """Find the bars that all `frames` of a shot share."""
    return BorderWidths(**{side.value: _count_border_lines(frames, side) for side in FrameSide})


def _count_border_lines(frames: Sequence[PickedFrame], side: FrameSide) -> int:
    """Return the number of lines from `side` to the picture; 0 if there is no clear bar."""
    profiles = [frame.sides[side] for frame in frames if side in frame.sides]
    if not profiles or len(profiles) < len(frames):
        return 0
    levels = [profile.level for profile in profiles]
    if max(levels) - min(levels) > STEADY:
        return 0
    # The most that any frame shows there: a frame that is dark at its edge hides the edge.
    shares = np.max([profile.content for profile in profiles], axis=0) / FULL
    filled = np.flatnonzero(shares >= EDGE_SHARE)
    if not len(filled) or filled[0] < THINNEST_PX:
        return 0
    edge = int(filled[0])
    inside = shares[: max(1, edge - EDGE_PX)]
    straight = edge < STEP_PX or shares[edge - STEP_PX] <= STEP_SHARE
    return edge if straight and float(inside.max()) <= EMPTY_SHARE else 0
