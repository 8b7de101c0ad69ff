"""Static parts of a clip's frames, and moving parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unreel.core.errors import InvalidValueError
from unreel.media.decode import Rgb

Floats = NDArray[np.float32]
Levels = NDArray[np.int16]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", np.uint8, np.int16)

LEAST_FRAMES: Final = 6
"""With fewer, edges that happen to fall onto each other look fixed."""

_LEAST_EDGE: Final = 3.0
"""Grey levels per pixel: below, edges are noise of the coding."""
_SEEN_FROM: Final = 0.5
"""An edge is seen in a frame where at least this part of its usual height is there."""
_LEAST_SEEN: Final = 0.8
_CROWD_SIDE: Final = 5
_LEAST_CROWD: Final = 6
"""Pixels of a crowd: fewer agree by chance, so lone ones are dropped."""
_MOVES_FROM: Final = 4.0
"""Grey levels by which a pixel strays over time where something moves behind it."""


@dataclass(frozen=True, slots=True, eq=False)
class StaticPicture:
    """A clip's frames laid over each other."""

    edges: Mask
    """Pixels whose edge is there, the same way round, in most of the frames."""
    seen: Floats
    """Share of the frames in which each pixel's usual edge is there."""
    moves: Mask
    """Pixels that change over time."""
    picture: Rgb
    """The median of the frames: what stays is sharp in it, what moves is blurred."""

    @property
    def share_moving(self) -> float:
        """Return the fraction of the picture that changes."""
        return float(self.moves.mean())


def lay_over(frames: Sequence[Rgb]) -> StaticPicture:
    """Return the common parts of frames of one clip, all of one size and spread over its time."""
    if len(frames) < LEAST_FRAMES or len({frame.shape for frame in frames}) != 1:
        msg = (
            f"a look for marks needs {LEAST_FRAMES} frames of one size, got "
            f"{[frame.shape for frame in frames]}. Sample more frames of the clip"
        )
        raise InvalidValueError(msg)
    grey = [_convert_to_grey(frame) for frame in frames]
    edges, seen = _detect_common_edges(grey)
    usual = median(grey)
    strays = sum(np.abs(frame - usual) for frame in grey) / len(grey)
    return StaticPicture(edges, seen, strays >= _MOVES_FROM, median(frames))


def median(arrays: Sequence[NDArray[Number]]) -> NDArray[Number]:
    """Return the median of arrays of equal shape, pixel by pixel.

    For an even number of arrays this is the mean of the middle two, rounded down. Minimum and
    maximum of whole arrays are computed repeatedly, which is far faster than sorting each pixel.
    """
    rows = [array.copy() for array in arrays]
    for first in range(len(rows) // 2 + 1):
        for other in range(first + 1, len(rows)):
            low = np.minimum(rows[first], rows[other])
            np.maximum(rows[first], rows[other], out=rows[other])
            rows[first] = low
    low, high = rows[(len(rows) - 1) // 2], rows[len(rows) // 2]
    # Not half the sum: that would not fit into the type.
    return low + (high - low) // 2


def _convert_to_grey(frame: Rgb) -> Levels:
    red, green, blue = (frame[..., channel].astype(np.int16) for channel in range(3))
    return (5 * red + 9 * green + 2 * blue) >> 4


def _compute_sobel_gradients(grey: Levels) -> tuple[Levels, Levels]:
    """Return the horizontal and vertical Sobel gradients: 8 times the slope; 0 on the border."""
    across, down = np.zeros_like(grey), np.zeros_like(grey)
    step = grey[:, 2:] - grey[:, :-2]
    across[1:-1, 1:-1] = step[:-2] + 2 * step[1:-1] + step[2:]
    step = grey[2:] - grey[:-2]
    down[1:-1, 1:-1] = step[:, :-2] + 2 * step[:, 1:-1] + step[:, 2:]
    return across, down


def _detect_common_edges(grey: Sequence[Levels]) -> tuple[Mask, Floats]:
    """Return where the median gradient is steep and most frames agree with it, and how many agree."""
    across, down = zip(*map(_compute_sobel_gradients, grey), strict=True)
    usual_across = median(across).astype(np.float32)
    usual_down = median(down).astype(np.float32)
    square = usual_across**2 + usual_down**2
    steep = square >= (8 * _LEAST_EDGE) ** 2
    seen = np.zeros(square.shape, np.float32)
    for slope_across, slope_down in zip(across, down, strict=True):
        seen += slope_across * usual_across + slope_down * usual_down >= _SEEN_FROM * square
    seen *= steep / np.float32(len(grey))
    agreed = seen >= _LEAST_SEEN
    crowd = ndimage.uniform_filter(agreed.astype(np.float32), size=_CROWD_SIDE) * _CROWD_SIDE**2
    return agreed & (crowd >= _LEAST_CROWD - 0.5), seen
