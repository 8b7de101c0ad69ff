"""Reads text off a picture: a port, and rapidocr behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.box import Box
from unreel.core.registry import LazyImport
from unreel.media.decode import Rgb
from unreel.media.picture import fit_longest

LONGEST_SIDE: Final = 1280
LEAST_CONFIDENCE: Final = 0.6
LEAST_LETTERS: Final = 2
"""Lone letters are mostly edges that happen to look like one."""

_ENGINE: Final = LazyImport("rapidocr:RapidOCR", extra="review")
_QUIET_AND_SINGLE: Final = {
    "Global.log_level": "critical",
    "Global.use_cls": False,  # no mark stands on its head
    # One clip, one core: parallel work is across clips.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """One line of text, its box and the reader's confidence, 0 to 1."""

    text: str
    box: Box
    confidence: float


ReadText = Callable[[Rgb], tuple[TextLine, ...]]
"""Lines on a picture, in reading order."""


def build_text_reader(*, detect_side: int | None = None) -> ReadText:
    """Build a text reader with rapidocr. Its models are in its wheel, so nothing is downloaded.

    Build one reader per process: loading takes about a second. The reader has no state between
    pictures. With `detect_side`, lines are detected in a picture of that longest side and read at
    full size.
    """
    small = {"Det.limit_type": "max", "Det.limit_side_len": detect_side} if detect_side else {}
    engine = _ENGINE.load()(params=_QUIET_AND_SINGLE | small)

    def read(picture: Rgb) -> tuple[TextLine, ...]:
        shown = fit_longest(picture, LONGEST_SIDE)
        # The engine expects OpenCV's order of colours.
        found: Any = engine(np.ascontiguousarray(shown[..., ::-1]))
        if found.boxes is None or found.txts is None or found.scores is None:
            return ()
        lines = (
            _build_text_line(text, corners, float(score), shape=shown.shape)
            for text, corners, score in zip(found.txts, found.boxes, found.scores, strict=True)
        )
        return tuple(line for line in lines if line is not None)

    return read


def _build_text_line(
    text: str, corners: NDArray[np.float32], confidence: float, *, shape: tuple[int, ...]
) -> TextLine | None:
    """Return the line with its upright box, unless it is empty or unreliable."""
    words = " ".join(text.split())
    height, width = shape[:2]
    x0, y0 = (float(v) for v in np.clip(corners.min(axis=0) / (width, height), 0, 1))
    x1, y1 = (float(v) for v in np.clip(corners.max(axis=0) / (width, height), 0, 1))
    if (
        sum(map(str.isalnum, words)) < LEAST_LETTERS
        or confidence < LEAST_CONFIDENCE
        or x0 >= x1
        or y0 >= y1
    ):
        return None
    return TextLine(text=words, box=Box(x0, y0, x1, y1), confidence=min(1.0, confidence))
