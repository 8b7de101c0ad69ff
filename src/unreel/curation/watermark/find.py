"""Detection of overlays: edges that stay in position although the picture around them moves.

Motion around a fixed mark proves it. In a still part of the picture a mark cannot be separated from
the scene: nothing is found there, and `WatermarkSearch.inconclusive` gives its fraction.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unreel.core.box import Box
from unreel.curation.watermark.mark import MarkKind, WatermarkRegion, WatermarkSearch
from unreel.curation.watermark.stillness import StaticPicture, lay_over
from unreel.curation.watermark.text import ReadText, TextLine
from unreel.media.decode import Rgb

N_FRAMES: Final = 4
"""Frames that are read: each costs about a second of one core."""
LEAST_LETTERS: Final = 3
_APART: Final = 0.1
"""Parts of the diagonal between two places: less may be a shaking camera."""
_SAME_HEIGHT: Final = 1.25


def find_roaming_texts(
    frames: Sequence[Rgb], read_text: ReadText, *, fixed: Iterable[TextLine]
) -> tuple[str, ...]:
    """Return texts of one size that appear at two or more places, but never twice in one frame.

    The result is a hint and no proof: a sign that the camera passes looks the same.
    """
    known = {_normalise_text(line.text) for line in fixed}
    step = max(1, len(frames) // N_FRAMES)
    places: dict[str, list[tuple[int, Box]]] = defaultdict(list)
    for index in range(step // 2, len(frames), step):
        for line in read_text(frames[index]):
            key = _normalise_text(line.text)
            if len(key) >= LEAST_LETTERS and key not in known:
                places[key].append((index, line.box))
    return tuple(sorted(key for key, seen in places.items() if _has_position_jump(seen)))


def _normalise_text(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _has_position_jump(seen: Sequence[tuple[int, Box]]) -> bool:
    if len({index for index, _ in seen}) != len(seen):
        return False
    heights = [box.y1 - box.y0 for _, box in seen]
    if max(heights) > _SAME_HEIGHT * min(heights):
        return False
    first = seen[0][1]
    return any(first.centre_distance(box) >= _APART for _, box in seen[1:])


LEAST_MOVING: Final = 0.5
"""Where less of the picture moves than this, its marks may hide."""

_LEAST_EDGE_PIXELS: Final = 60
_LEAST_SIDE_PIXELS: Final = 8
_LEAST_FILL: Final = 0.35
"""Part of its box that the edges of a mark cover. Marks have 0.36 to 0.71; things of a scene that stand still
before something that moves mostly less."""
_LEAST_STABILITY: Final = 0.9
_LARGEST: Final = 0.1
_WIDEST: Final = 0.9
_TALLEST: Final = 0.35
_LETTER_GAP: Final = 0.012
"""Edges closer than this part of the picture's diagonal belong to one mark."""
_LEAST_INNER_STABILITY: Final = 0.93
"""Of words away from the border: a sign that shakes with the camera has less."""
_SPANS_LINE: Final = 0.7
_SIDE_MOVES_FROM: Final = 0.5
_NEAR_BORDER: Final = 0.25
"""Parts of the picture between its border and the middle of a mark: only words are looked for inside."""


@dataclass(frozen=True, slots=True)
class _PixelRectangle:
    """A rectangle of pixels; the right and bottom ends do not belong to it."""

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


@dataclass(frozen=True, slots=True)
class _MarkCandidate:
    place: _PixelRectangle
    text: str | None = None


def find_watermarks(frames: Sequence[Rgb], *, read_text: ReadText | None = None) -> WatermarkSearch:
    """Return the overlays on a clip, from at least 6 frames that are spread over it; 12 are enough.

    Without `read_text`, every overlay is a logo and no moving text is found.
    """
    still = lay_over(frames)
    lines = read_text(still.picture) if read_text else ()
    candidates = _build_candidates(_list_edge_rectangles(still), lines, shape=still.edges.shape)
    proven = [candidate for candidate in candidates if _is_certain_mark(candidate, still)]
    found = sorted(
        (_build_watermark_region(candidate, still) for candidate in proven),
        key=lambda mark: mark.box.area,
        reverse=True,
    )
    suspected = [
        _build_watermark_region(own, still)
        for own in candidates
        if own not in proven and own.text and _is_near_border(own.place, still.edges.shape)
    ]
    return WatermarkSearch(
        found=tuple(found),
        suspected=tuple(suspected),
        roaming=find_roaming_texts(frames, read_text, fixed=lines) if read_text else (),
        inconclusive=_find_inconclusive_reason(still),
    )


def _find_inconclusive_reason(still: StaticPicture) -> str | None:
    if still.share_moving >= LEAST_MOVING:
        return None
    stands = 1 - still.share_moving
    return f"{stands:.0%} of the picture is still: a mark there cannot be separated from the scene"


def _list_edge_rectangles(still: StaticPicture) -> list[_PixelRectangle]:
    """Return the groups of fixed edges that have the size and density of a watermark."""
    gap = max(2, round(_LETTER_GAP * float(np.hypot(*still.edges.shape))))
    # A box of edges grown by half the gap on each side touches its neighbour.
    joined = ndimage.maximum_filter(still.edges, size=(gap // 2 * 2 + 1, gap * 2 + 1))
    labels, _ = ndimage.label(joined)
    labels[~still.edges] = 0
    places = []
    for index, box in enumerate(ndimage.find_objects(labels), start=1):
        own = labels[box] == index
        place = _PixelRectangle(box[1].start, box[0].start, box[1].stop, box[0].stop)
        if (
            _is_mark_like(own, still.edges.shape)
            and still.seen[box][own].mean() >= _LEAST_STABILITY
            and _is_near_border(place, still.edges.shape)
        ):
            places.append(place)
    return places


def _is_mark_like(edges: NDArray[np.bool_], shape: tuple[int, ...]) -> bool:
    height, width = edges.shape
    n_edges = int(edges.sum())
    return (
        n_edges >= _LEAST_EDGE_PIXELS
        and min(height, width) >= _LEAST_SIDE_PIXELS
        and n_edges >= _LEAST_FILL * height * width
        and height * width <= _LARGEST * shape[0] * shape[1]
        and width <= _WIDEST * shape[1]
        and height <= _TALLEST * shape[0]
    )


def _build_candidates(
    places: Sequence[_PixelRectangle], lines: Iterable[TextLine], *, shape: tuple[int, ...]
) -> list[_MarkCandidate]:
    """Return each text line merged with the edges that it overlaps, and the other edges as logos."""
    left = list(places)
    candidates = []
    for line in lines:
        place = _convert_to_pixels(line.box, shape)
        own = [other for other in left if other.meets(place)]
        left = [other for other in left if other not in own]
        candidates.append(_MarkCandidate(_compute_outline(place, own), line.text))
    return candidates + [_MarkCandidate(place) for place in left]


def _compute_outline(line: _PixelRectangle, edges: Sequence[_PixelRectangle]) -> _PixelRectangle:
    """Return the rectangle of a text line and its edges.

    If the edges span the line, this is the rectangle of the edges, because text readers draw wide
    boxes. Otherwise it contains both.
    """
    if not edges:
        return line
    around = functools.reduce(_PixelRectangle.joined, edges)
    spans = around.x1 - around.x0 >= _SPANS_LINE * (line.x1 - line.x0)
    return around if spans else around.joined(line)


def _is_certain_mark(candidate: _MarkCandidate, still: StaticPicture) -> bool:
    """Return whether the picture moves around the candidate.

    Words away from the border of the picture must also stay exactly in place.
    """
    place = candidate.place
    exact = _compute_stability(place, still) >= _LEAST_INNER_STABILITY
    return _has_motion_around(still.moves, place) and (
        exact or _is_near_border(place, still.moves.shape)
    )


def _compute_stability(place: _PixelRectangle, still: StaticPicture) -> float:
    inside = (slice(place.y0, place.y1), slice(place.x0, place.x1))
    edges = still.edges[inside]
    return float(still.seen[inside][edges].mean()) if edges.any() else 0.0


def _has_motion_around(moves: NDArray[np.bool_], place: _PixelRectangle) -> bool:
    """Return whether the picture moves on two or more sides of `place`, and is still on one at most."""
    height, width = moves.shape
    reach = max(4, round(0.02 * min(height, width)))
    above, below = slice(max(0, place.y0 - reach), place.y0), slice(place.y1, place.y1 + reach)
    left, right = slice(max(0, place.x0 - reach), place.x0), slice(place.x1, place.x1 + reach)
    rows, columns = slice(place.y0, place.y1), slice(place.x0, place.x1)
    sides = [moves[above, columns], moves[below, columns], moves[rows, left], moves[rows, right]]
    present = [bool(side.mean() >= _SIDE_MOVES_FROM) for side in sides if side.size]
    return sum(present) >= max(2, len(present) - 1)


def _build_watermark_region(candidate: _MarkCandidate, still: StaticPicture) -> WatermarkRegion:
    place = candidate.place
    height, width = still.edges.shape
    return WatermarkRegion(
        box=Box(place.x0 / width, place.y0 / height, place.x1 / width, place.y1 / height),
        kind=MarkKind.TEXT if candidate.text else MarkKind.LOGO,
        text=candidate.text,
        stability=_compute_stability(place, still),
    )


def _convert_to_pixels(box: Box, shape: tuple[int, ...]) -> _PixelRectangle:
    height, width = shape[:2]
    x0, y0 = int(box.x0 * width), int(box.y0 * height)
    x1, y1 = int(np.ceil(box.x1 * width)), int(np.ceil(box.y1 * height))
    return _PixelRectangle(x0, y0, max(x0 + 1, x1), max(y0 + 1, y1))


def _is_near_border(place: _PixelRectangle, shape: tuple[int, ...]) -> bool:
    height, width = shape
    across, down = (place.x0 + place.x1) / 2 / width, (place.y0 + place.y1) / 2 / height
    return min(across, down, 1 - across, 1 - down) <= _NEAR_BORDER
