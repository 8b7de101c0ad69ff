"""Detection of watermarks in frames: edges that stay in place while the picture moves; text recognition."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError
from unreel.core.registry import LazyImport
from unreel.media.decode import Rgb
from unreel.media.picture import scale_down_picture

LONGEST_SIDE = 1280
MIN_CONFIDENCE = 0.6
MIN_LINE_LETTERS = 2
"""Minimum number of letters of a line: single letters are mostly edges that look like one."""

_ENGINE = LazyImport("rapidocr:RapidOCR", extra="review")
_QUIET_AND_SINGLE = {
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
        height, width = small.shape[:2]
        lines = []
        for words, corners, score in zip(result.txts, result.boxes, result.scores, strict=True):
            text, confidence = " ".join(words.split()), float(score)
            x0, y0 = (float(v) for v in np.clip(corners.min(axis=0) / (width, height), 0, 1))
            x1, y1 = (float(v) for v in np.clip(corners.max(axis=0) / (width, height), 0, 1))
            is_long = sum(map(str.isalnum, text)) >= MIN_LINE_LETTERS
            if is_long and confidence >= MIN_CONFIDENCE and x0 < x1 and y0 < y1:
                box = Box(x0, y0, x1, y1)
                lines.append(OcrTextLine(text=text, box=box, confidence=min(1.0, confidence)))
        return tuple(lines)

    return read


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


Floats = NDArray[np.float32]
Levels = NDArray[np.int16]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", np.uint8, np.int16)

MIN_FRAMES = 6
"""Minimum number of frames: with fewer, edges that coincide by chance look fixed."""

_MIN_EDGE = 3.0
"""Minimum slope of an edge in grey levels per pixel: less is noise of the coding."""
_SEEN_FROM = 0.5
"""Minimum fraction of an edge's usual height in a frame that shows the edge."""
_MIN_SEEN = 0.8
_CROWD_SIDE = 5
_MIN_CROWD = 6
"""Minimum number of edge pixels in a neighbourhood: fewer agree by chance and are dropped."""
_MOVES_FROM = 4.0
"""Mean deviation over time, in grey levels, from which a pixel is moving."""


@dataclass(frozen=True, slots=True, eq=False)
class StaticMotionSeparation:
    """Parts of a clip's frames: static edges, moving pixels, and the median picture."""

    edges: Mask
    """Mask of pixels that have an edge of the same direction in most of the frames."""
    seen: Floats
    """Fraction of the frames that show each pixel's usual edge."""
    moves: Mask
    """Mask of pixels that change over time."""
    picture: Rgb
    """Median of the frames: static parts are sharp in it, moving parts are blurred."""

    @property
    def share_moving(self) -> float:
        """Return the fraction of pixels that change over time."""
        return float(self.moves.mean())


def detect_static_frame_parts(frames: Sequence[Rgb]) -> StaticMotionSeparation:
    """Detect static parts of equally large frames; raise `InvalidValueError` if too few or unequal."""
    if len(frames) < MIN_FRAMES or len({frame.shape for frame in frames}) != 1:
        raise InvalidValueError(
            f"watermark search needs at least {MIN_FRAMES} frames of one size, got shapes "
            f"{[frame.shape for frame in frames]}"
        )
    grey = []
    for frame in frames:
        red, green, blue = (frame[..., channel].astype(np.int16) for channel in range(3))
        grey.append((5 * red + 9 * green + 2 * blue) >> 4)
    edges, fractions = _detect_common_edges(grey)
    usual = compute_pixel_median(grey)
    strays = sum(np.abs(frame - usual) for frame in grey) / len(grey)
    moves = strays >= _MOVES_FROM
    return StaticMotionSeparation(edges, fractions, moves, compute_pixel_median(frames))


def compute_pixel_median(arrays: Sequence[NDArray[Number]]) -> NDArray[Number]:
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
    # Half of the sum would overflow the type.
    return low + (high - low) // 2


def _detect_common_edges(grey: Sequence[Levels]) -> tuple[Mask, Floats]:
    """Return a mask of static edges (steep in most frames), and the fraction of frames that show each."""
    across, down = [], []
    for levels in grey:  # Sobel gradients, 8 times the slope; 0 on the border
        across.append(np.zeros_like(levels))
        step = levels[:, 2:] - levels[:, :-2]
        across[-1][1:-1, 1:-1] = step[:-2] + 2 * step[1:-1] + step[2:]
        down.append(np.zeros_like(levels))
        step = levels[2:] - levels[:-2]
        down[-1][1:-1, 1:-1] = step[:, :-2] + 2 * step[:, 1:-1] + step[:, 2:]
    usual_across = compute_pixel_median(across).astype(np.float32)
    usual_down = compute_pixel_median(down).astype(np.float32)
    square = usual_across**2 + usual_down**2
    steep = square >= (8 * _MIN_EDGE) ** 2
    fractions = np.zeros(square.shape, np.float32)
    for slope_across, slope_down in zip(across, down, strict=True):
        fractions += slope_across * usual_across + slope_down * usual_down >= _SEEN_FROM * square
    fractions *= steep / np.float32(len(grey))
    agreed = fractions >= _MIN_SEEN
    crowd = ndimage.uniform_filter(agreed.astype(np.float32), size=_CROWD_SIDE) * _CROWD_SIDE**2
    return agreed & (crowd >= _MIN_CROWD - 0.5), fractions


N_FRAMES = 4
"""Number of frames in which text is recognised: each takes about a second of one core."""
MIN_LETTERS = 3
_MIN_MOVE = 0.1
"""Minimum distance of two positions, as a fraction of the diagonal: less may be a shaking camera."""
_SAME_HEIGHT = 1.25


def find_roaming_texts(
    frames: Sequence[Rgb], read_text: ReadText, *, text_line: Iterable[OcrTextLine]
) -> tuple[str, ...]:
    """Find one-size texts at several positions, never twice in a frame; a hint, as passed signs match too."""
    known = {_normalise_text(line.text) for line in text_line}
    step = max(1, len(frames) // N_FRAMES)
    by_text: dict[str, list[tuple[int, Box]]] = defaultdict(list)
    for index in range(step // 2, len(frames), step):
        for line in read_text(frames[index]):
            key = _normalise_text(line.text)
            if len(key) >= MIN_LETTERS and key not in known:
                by_text[key].append((index, line.box))
    roaming = []
    for text, sightings in by_text.items():
        heights = [box.y1 - box.y0 for _, box in sightings]
        first = sightings[0][1]
        if (
            len({index for index, _ in sightings}) == len(sightings)
            and max(heights) <= _SAME_HEIGHT * min(heights)
            and any(first.centre_distance(box) >= _MIN_MOVE for _, box in sightings[1:])
        ):
            roaming.append(text)
    return tuple(sorted(roaming))


def _normalise_text(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


MIN_MOVING = 0.5
"""Minimum moving fraction of the picture; with less, the search is inconclusive."""

_MIN_EDGE_PIXELS = 60
_MIN_SIDE_PIXELS = 8
_MIN_FILL = 0.35
"""Minimum fraction of its box that the edges of a mark cover. Marks have 0.36 to 0.71; still
objects of a scene in front of motion mostly have less."""
_MIN_STABILITY = 0.9
_LARGEST = 0.1
_WIDEST = 0.9
_TALLEST = 0.35
_LETTER_GAP = 0.012
"""Maximum distance of edges of one mark, as a fraction of the picture's diagonal."""
_MIN_INNER_STABILITY = 0.93
"""Minimum stability of text away from the border: a sign that shakes with the camera has less."""
_SPANS_LINE = 0.7
_SIDE_MOVES_FROM = 0.5
_NEAR_BORDER = 0.25
"""Maximum distance of a mark's middle from the border, as a fraction of the picture; text may be farther."""


@dataclass(frozen=True, slots=True)
class _PixelRectangle:
    """Rectangle of pixels; `x1` and `y1` are exclusive."""

    x0: int
    y0: int
    x1: int
    y1: int

    def joined(self, other: "_PixelRectangle") -> "_PixelRectangle":
        return _PixelRectangle(
            min(self.x0, other.x0),
            min(self.y0, other.y0),
            max(self.x1, other.x1),
            max(self.y1, other.y1),
        )

    def meets(self, other: "_PixelRectangle") -> bool:
        across = min(self.x1, other.x1) - max(self.x0, other.x0)
        return across > 0 and min(self.y1, other.y1) - max(self.y0, other.y0) > 0


def find_watermarks(
    frames: Sequence[Rgb], *, read_text: ReadText | None = None
) -> WatermarkSearchResult:
    """Find watermarks in 6 (better 12) spread `frames`; without `read_text` only logos, no moving text."""
    still = detect_static_frame_parts(frames)
    lines = read_text(still.picture) if read_text else ()
    left = _list_edge_rectangles(still)
    height, width = still.edges.shape
    candidates: list[tuple[_PixelRectangle, str | None]] = []
    for line in lines:
        x0, y0 = int(line.box.x0 * width), int(line.box.y0 * height)
        x1, y1 = int(np.ceil(line.box.x1 * width)), int(np.ceil(line.box.y1 * height))
        rect = _PixelRectangle(x0, y0, max(x0 + 1, x1), max(y0 + 1, y1))
        overlapping = [edge for edge in left if edge.meets(rect)]
        left = [edge for edge in left if edge not in overlapping]
        if overlapping:
            # The outline of the edges if they span the line, else the union of both.
            outline = functools.reduce(_PixelRectangle.joined, overlapping)
            spans_line = outline.x1 - outline.x0 >= _SPANS_LINE * (rect.x1 - rect.x0)
            rect = outline if spans_line else outline.joined(rect)
        candidates.append((rect, line.text))
    candidates += [(rect, None) for rect in left]

    found, suspected = [], []
    for rect, text in candidates:
        inside = (slice(rect.y0, rect.y1), slice(rect.x0, rect.x1))
        edges = still.edges[inside]
        stability = float(still.seen[inside][edges].mean()) if edges.any() else 0.0
        region = WatermarkRegion(
            box=Box(rect.x0 / width, rect.y0 / height, rect.x1 / width, rect.y1 / height),
            kind=WatermarkKind.TEXT if text else WatermarkKind.LOGO,
            text=text,
            stability=stability,
        )
        is_near_border = _is_near_border(rect, still.edges.shape)
        # A certain mark has motion around it; away from the border it also stays in position.
        stays = is_near_border or stability >= _MIN_INNER_STABILITY
        if stays and _has_motion_around(still.moves, rect):
            found.append(region)
        elif text and is_near_border:
            suspected.append(region)
    inconclusive = None
    if still.share_moving < MIN_MOVING:
        share = f"{1 - still.share_moving:.0%} of the picture is still"
        inconclusive = f"{share}: a mark there cannot be separated from the scene"
    return WatermarkSearchResult(
        found=tuple(sorted(found, key=lambda mark: mark.box.area, reverse=True)),
        suspected=tuple(suspected),
        roaming=find_roaming_texts(frames, read_text, text_line=lines) if read_text else (),
        inconclusive=inconclusive,
    )


def _list_edge_rectangles(separation: StaticMotionSeparation) -> list[_PixelRectangle]:
    gap = max(2, round(_LETTER_GAP * float(np.hypot(*separation.edges.shape))))
    # Edges that are dilated by half the gap on each side touch their neighbours.
    joined = ndimage.maximum_filter(separation.edges, size=(gap // 2 * 2 + 1, gap * 2 + 1))
    labels, _ = ndimage.label(joined)
    labels[~separation.edges] = 0
    rects = []
    for index, box in enumerate(ndimage.find_objects(labels), start=1):
        mask = labels[box] == index
        rect = _PixelRectangle(box[1].start, box[0].start, box[1].stop, box[0].stop)
        if (
            _has_watermark_size(mask, separation.edges.shape)
            and separation.seen[box][mask].mean() >= _MIN_STABILITY
            and _is_near_border(rect, separation.edges.shape)
        ):
            rects.append(rect)
    return rects


def _has_watermark_size(edges: NDArray[np.bool_], shape: tuple[int, ...]) -> bool:
    height, width = edges.shape
    n_edges = int(edges.sum())
    return (
        n_edges >= _MIN_EDGE_PIXELS
        and min(height, width) >= _MIN_SIDE_PIXELS
        and n_edges >= _MIN_FILL * height * width
        and height * width <= _LARGEST * shape[0] * shape[1]
        and width <= _WIDEST * shape[1]
        and height <= _TALLEST * shape[0]
    )


def _has_motion_around(moves: NDArray[np.bool_], rect: _PixelRectangle) -> bool:
    """Return whether the picture moves on at least two sides of `rect`, and on all but one."""
    height, width = moves.shape
    margin = max(4, round(0.02 * min(height, width)))
    above, below = slice(max(0, rect.y0 - margin), rect.y0), slice(rect.y1, rect.y1 + margin)
    left, right = slice(max(0, rect.x0 - margin), rect.x0), slice(rect.x1, rect.x1 + margin)
    rows, columns = slice(rect.y0, rect.y1), slice(rect.x0, rect.x1)
    borders = [moves[above, columns], moves[below, columns], moves[rows, left], moves[rows, right]]
    present = [bool(side.mean() >= _SIDE_MOVES_FROM) for side in borders if side.size]
    return sum(present) >= max(2, len(present) - 1)


def _is_near_border(rect: _PixelRectangle, shape: tuple[int, ...]) -> bool:
    height, width = shape
    across, down = (rect.x0 + rect.x1) / 2 / width, (rect.y0 + rect.y1) / 2 / height
    return min(across, down, 1 - across, 1 - down) <= _NEAR_BORDER
