"""Paints marks over, so that a reviewer may be asked with and without them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from unreel.core.box import Box
from unreel.core.registry import LazyImport
from unreel.curation.watermark.mark import WatermarkRegion
from unreel.media.decode import Rgb

MARGIN: Final = 0.008
"""Parts of the picture's diagonal by which a box grows: marks have soft edges and shadows."""
_CONTEXT_PIXELS: Final = 12
_RADIUS_PIXELS: Final = 4
_INPAINT: Final = LazyImport("cv2:inpaint", extra="curate")  # the OpenCV that rapidocr brings
_TELEA: Final = LazyImport("cv2:INPAINT_TELEA", extra="curate")


def remove_watermarks(frames: Sequence[Rgb], marks: Sequence[WatermarkRegion]) -> list[Rgb]:
    """Return `frames` with every mark's grown box inpainted; all other pixels are unchanged.

    The background of a fixed mark is in no other frame either, so each frame is inpainted
    separately.
    """
    return [_paint(frame, [mark.box for mark in marks]) for frame in frames]


def grown(box: Box, *, width: int, height: int) -> tuple[slice, slice]:
    """Rows and columns of the pixels that painting `box` over may change."""
    margin = max(2, round(MARGIN * float(np.hypot(width, height))))
    top, left = int(box.y0 * height) - margin, int(box.x0 * width) - margin
    bottom, right = np.ceil([box.y1 * height, box.x1 * width]).astype(int) + margin
    return slice(max(0, top), min(height, int(bottom))), slice(max(0, left), min(width, int(right)))


def _paint(frame: Rgb, boxes: Sequence[Box]) -> Rgb:
    inpaint: Any = _INPAINT.load()
    painted = frame.copy()
    height, width, _ = frame.shape
    for box in boxes:
        rows, columns = grown(box, width=width, height=height)
        top, left = max(0, rows.start - _CONTEXT_PIXELS), max(0, columns.start - _CONTEXT_PIXELS)
        around = painted[top : rows.stop + _CONTEXT_PIXELS, left : columns.stop + _CONTEXT_PIXELS]
        hole = np.zeros(around.shape[:2], np.uint8)
        hole[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = 255
        filled = inpaint(np.ascontiguousarray(around), hole, _RADIUS_PIXELS, _TELEA.load())
        around[hole > 0] = filled[hole > 0]
    return painted
