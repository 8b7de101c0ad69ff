"""Types for watermarks that were found in a clip, and text recognition in pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.box import Box
from unreel.core.registry import LazyImport
from unreel.media.decode import Rgb
from unreel.media.picture import scale_down_picture

LONGEST_SIDE: Final = 1280
LEAST_CONFIDENCE: Final = 0.6
LEAST_LETTERS: Final = 2
"""Minimum number of letters of a line: single letters are mostly edges that look like one."""

_ENGINE: Final = LazyImport("rapidocr:RapidOCR", extra="review")
_QUIET_AND_SINGLE: Final = {
    "Global.log_level": "critical",
    "Global.use_cls": False,  # no mark is upside down
    # One core per clip: several clips are processed in parallel.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrTextLine:
    """Line of text that was recognised in a picture, with its box and its confidence from 0 to 1."""

    text: str
    box: Box
    confidence: float


ReadText = Callable[[Rgb], tuple[OcrTextLine, ...]]
"""Function that recognises the lines of text in a picture, in reading order."""


def build_ocr_reader(*, detect_side: int | None = None) -> ReadText:
    """Build a text recognition function with rapidocr; nothing is downloaded.

    Build one per process: loading takes about a second. The function has no state between pictures.
    With `detect_side`, lines are detected in a picture of that longest side and read at full size.
    """
    small = {"Det.limit_type": "max", "Det.limit_side_len": detect_side} if detect_side else {}
    engine = _ENGINE.load()(params=_QUIET_AND_SINGLE | small)

    def read(picture: Rgb) -> tuple[OcrTextLine, ...]:
        small = scale_down_picture(picture, LONGEST_SIDE)
        # The engine expects OpenCV's order of colours.
        result: Any = engine(np.ascontiguousarray(small[..., ::-1]))
        if result.boxes is None or result.txts is None or result.scores is None:
            return ()
        lines = (
            _build_ocr_line(text, corners, float(score), shape=small.shape)
            for text, corners, score in zip(result.txts, result.boxes, result.scores, strict=True)
        )
        return tuple(line for line in lines if line is not None)

    return read


def _build_ocr_line(
    text: str, corners: NDArray[np.float32], confidence: float, *, shape: tuple[int, ...]
) -> OcrTextLine | None:
    """Return the recognised line with its upright box; `None` if it is too short or unreliable."""
    line = " ".join(text.split())
    height, width = shape[:2]
    x0, y0 = (float(v) for v in np.clip(corners.min(axis=0) / (width, height), 0, 1))
    x1, y1 = (float(v) for v in np.clip(corners.max(axis=0) / (width, height), 0, 1))
    if (
        sum(map(str.isalnum, line)) < LEAST_LETTERS
        or confidence < LEAST_CONFIDENCE
        or x0 >= x1
        or y0 >= y1
    ):
        return None
    return OcrTextLine(text=line, box=Box(x0, y0, x1, y1), confidence=min(1.0, confidence))


class WatermarkKind(StrEnum):
    """Kind of a watermark: text or logo. The values are stored in tables: add, never rename."""

    TEXT = "text"
    LOGO = "logo"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkRegion:
    """Watermark in a clip: an overlay that stays in place while the scene behind it moves."""

    box: Box
    kind: WatermarkKind
    text: str | None = None
    """Recognised text; `None` for a logo."""
    stability: float
    """Mean fraction of the sampled frames in which an edge pixel of the mark is visible: 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkSearchResult:
    """Result of a search for watermarks in a clip: certain, suspected and moving ones."""

    found: tuple[WatermarkRegion, ...] = ()
    """Fixed marks, the largest first."""
    suspected: tuple[WatermarkRegion, ...] = ()
    """Texts near the border in a still part of the picture: marks, or texts of the scene."""
    roaming: tuple[str, ...] = ()
    """Texts that were read at several positions of the picture, one at a time."""
    inconclusive: str | None = None
    """Reason why marks may have been missed; `None` if the search was conclusive."""
