"""Texts that jump about the picture: read here in one frame, there in another."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from unreel.core.box import Box
from unreel.curation.watermark.text import ReadText, TextLine
from unreel.media.decode import Rgb

N_FRAMES: Final = 4
"""Frames that are read: each costs about a second of one core."""
LEAST_LETTERS: Final = 3
_APART: Final = 0.1
"""Parts of the diagonal between two places: less may be a shaking camera."""
_SAME_HEIGHT: Final = 1.25


def roaming_texts(
    frames: Sequence[Rgb], read_text: ReadText, *, fixed: Iterable[TextLine]
) -> tuple[str, ...]:
    """Texts of one size that were read at two places or more, never at two in one frame.

    A sign that the camera passes looks the same, so this is a hint and no proof.
    """
    known = {_key(line.text) for line in fixed}
    step = max(1, len(frames) // N_FRAMES)
    places: dict[str, list[tuple[int, Box]]] = defaultdict(list)
    for index in range(step // 2, len(frames), step):
        for line in read_text(frames[index]):
            key = _key(line.text)
            if len(key) >= LEAST_LETTERS and key not in known:
                places[key].append((index, line.box))
    return tuple(sorted(key for key, seen in places.items() if _jumps(seen)))


def _key(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _jumps(seen: Sequence[tuple[int, Box]]) -> bool:
    if len({index for index, _ in seen}) != len(seen):
        return False
    heights = [box.y1 - box.y0 for _, box in seen]
    if max(heights) > _SAME_HEIGHT * min(heights):
        return False
    first = seen[0][1]
    return any(first.centre_distance(box) >= _APART for _, box in seen[1:])
