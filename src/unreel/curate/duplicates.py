"""Near-duplicates: clips that show the same, however they were encoded, scaled, cropped or stamped.

A clip is hashed frame by frame with PDQ, its borders cut off first. A plain PDQ hash does not survive
a crop of five per cent, so each frame is hashed whole and with its edges trimmed in several ways; nor a
logo on a plain picture, so it is also hashed without its top and without its bottom, where logos and
lines of text are. Two clips match when one way brings the median of their frames within `MOST_BITS`.

Who is compared with whom is decided by a sketch of 64 grey levels: one matrix product over the set, so
10^5 clips are the limit of one machine. Beyond that, cluster first and compare inside clusters; hashes
cut into bands would lose pairs that differ by tens of bits.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.errors import InvalidValueError
from unreel.core.registry import Lazy
from unreel.curate.borders import Borders
from unreel.media.scan import N_PICKED, PickedFrame, Scan

MOST_BITS: Final = 38
"""Of 256. Copies stay below it; takes of one scene by one camera were seen from 40 on."""
NEAR_BITS: Final = 64
"""A pair is compared under all trims when it comes this near with one of the two untrimmed."""
LEAST_ALIKE: Final = 0.75
"""Correlation of two sketches from which on two clips are compared by their hashes."""

_PART: Final = 0.05
_HALF: Final = _PART / 2
TRIMS: Final = (
    (0.0, 0.0, 0.0, 0.0),
    (_HALF, _HALF, _HALF, _HALF),
    (_PART, _PART, _PART, _PART),
    (_PART, 0.0, 0.0, 0.0),
    (0.0, _PART, 0.0, 0.0),
    (0.0, 0.0, _PART, 0.0),
    (0.0, 0.0, 0.0, _PART),
    (_PART, _PART, 0.0, 0.0),
    (0.0, _PART, _PART, 0.0),
    (_PART, 0.0, 0.0, _PART),
    (0.0, 0.0, _PART, _PART),
)
"""Parts of a frame cut off before it is hashed: left, top, right, bottom. Against a cropped copy: each of
one clip is compared with each of the other."""
_FIFTH: Final = 0.2
UNSTAMPED: Final = ((0.0, 0.0, 0.0, _FIFTH), (0.0, _FIFTH, 0.0, 0.0))
"""Parts left out against a stamped copy: compared with the same of the other clip."""

_SKETCH_SIDE: Final = 8
_SKETCH_BYTES: Final = _SKETCH_SIDE**2
_HASH_WORDS: Final = 4
_WAYS: Final = (*TRIMS, *UNSTAMPED)
_HASHES_BYTES: Final = len(_WAYS) * N_PICKED * _HASH_WORDS * 8
_WIDE: Final = 128
_NARROW: Final = 64
_ROWS_AT_ONCE: Final = 1_024
_PAIRS_AT_ONCE: Final = 256

_PDQ: Final = Lazy("pdqhash:compute", extra="curate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What is compared of a clip; `as_json` and `from_json` keep it exactly."""

    sketch: bytes
    """Mean grey levels of an 8 x 8 grid, over the picked frames."""
    hashes: bytes
    """256 bits for each of `TRIMS` and `UNSTAMPED` and each of `N_PICKED` frames."""

    def __post_init__(self) -> None:
        if len(self.sketch) != _SKETCH_BYTES or len(self.hashes) != _HASHES_BYTES:
            msg = "a fingerprint has another length in this release. Scan the clip again"
            raise InvalidValueError(msg)

    def as_json(self) -> dict[str, str]:
        """A value that JSON can hold."""
        return {
            "sketch": base64.b64encode(self.sketch).decode("ascii"),
            "hashes": base64.b64encode(self.hashes).decode("ascii"),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Fingerprint":
        """The fingerprint that `as_json` gave."""
        return cls(
            sketch=base64.b64decode(found["sketch"]), hashes=base64.b64decode(found["hashes"])
        )

    def words(self) -> NDArray[np.uint64]:
        """The hashes by way, frame and word."""
        return np.frombuffer(self.hashes, "<u8").reshape(len(_WAYS), N_PICKED, _HASH_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two clips that show the same, and the bits by which their median frame differs."""

    first: str
    second: str
    bits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroup:
    """Clips that show the same, directly or through others; `canonical` is the one to keep."""

    canonical: str
    others: tuple[str, ...]


def fingerprint(scan: Scan, borders: Borders) -> Fingerprint:
    """The fingerprint of a clip's picked frames inside its borders."""
    whole = [_content(frame, borders, scan=scan) for frame in scan.picked]
    grids = [_resized(picture, _SKETCH_SIDE) for picture in whole]
    # A clip of fewer frames than are picked shows each of them for longer.
    shown = [whole[place * len(whole) // N_PICKED] for place in range(N_PICKED)]
    hashes = b"".join(_hash(picture, way) for way in _WAYS for picture in shown)
    sketch = np.rint(np.mean(grids, axis=0)).astype(np.uint8)
    return Fingerprint(sketch=sketch.tobytes(), hashes=hashes)


def clip_bits(first: Fingerprint, second: Fingerprint) -> float:
    """Bits of 256 by which the median frames of two clips differ, under the trims that suit best."""
    return float(_bits(first.words()[None], second.words()[None])[0])


def find_matches(prints: Sequence[tuple[str, Fingerprint]]) -> list[Match]:
    """All pairs of clips that show the same, in the order of `prints`."""
    if not prints:
        return []
    names = [name for name, _ in prints]
    words = np.stack([one.words() for _, one in prints])
    matches = []
    for firsts, seconds in _candidates([one for _, one in prints]):
        for place in range(0, len(firsts), _PAIRS_AT_ONCE):
            one, other = firsts[place:][:_PAIRS_AT_ONCE], seconds[place:][:_PAIRS_AT_ONCE]
            near = _nearly(words[one], words[other])
            one, other = one[near], other[near]
            matches += [
                Match(first=names[i], second=names[j], bits=float(bits))
                for i, j, bits in zip(one, other, _bits(words[one], words[other]), strict=True)
                if bits <= MOST_BITS
            ]
    return matches


def group_duplicates(
    names: Sequence[str], pairs: Iterable[tuple[str, str]]
) -> tuple[DuplicateGroup, ...]:
    """Groups of two or more that `pairs` join; the canonical one comes first in `names`."""
    place = {name: number for number, name in enumerate(names)}
    above = list(range(len(names)))

    def root(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    for first, second in pairs:
        low, high = sorted((root(place[first]), root(place[second])))
        above[high] = low
    members: dict[int, list[str]] = {}
    for number, name in enumerate(names):
        members.setdefault(root(number), []).append(name)
    return tuple(
        DuplicateGroup(canonical=group[0], others=tuple(group[1:]))
        for group in members.values()
        if len(group) > 1
    )


def _content(frame: PickedFrame, borders: Borders, *, scan: Scan) -> Image.Image:
    """The frame inside its borders, grey, at one small size."""
    inner = borders.content(width=scan.width, height=scan.height)
    across, down = frame.width, frame.height
    box = (inner.x0 * across, inner.y0 * down, inner.x1 * across, inner.y1 * down)
    grey = Image.fromarray(frame.rgb).convert("L")
    return grey.resize((_WIDE, _WIDE), Image.Resampling.BOX, box=box)


def _resized(picture: Image.Image, side: int) -> NDArray[np.float64]:
    return np.asarray(picture.resize((side, side), Image.Resampling.BOX), np.float64)


def _hash(picture: Image.Image, trim: tuple[float, float, float, float]) -> bytes:
    left, top, right, bottom = (part * _WIDE for part in trim)
    box = (left, top, _WIDE - right, _WIDE - bottom)
    small = picture.resize((_NARROW, _NARROW), Image.Resampling.BILINEAR, box=box)
    bits, _ = _PDQ.load()(np.asarray(small.convert("RGB")))
    return np.packbits(np.asarray(bits, np.uint8)).tobytes()


def _candidates(
    prints: Sequence[Fingerprint],
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Places of pairs whose sketches are alike, each pair once."""
    grids = np.frombuffer(b"".join(one.sketch for one in prints), np.uint8)
    sketches = grids.reshape(len(prints), _SKETCH_BYTES).astype(np.float32)
    sketches -= sketches.mean(axis=1, keepdims=True)
    # A picture without any structure is like every other one of its kind.
    sketches[~sketches.any(axis=1)] = 1
    sketches /= np.linalg.norm(sketches, axis=1, keepdims=True)
    for start in range(0, len(prints), _ROWS_AT_ONCE):
        alike = sketches[start : start + _ROWS_AT_ONCE] @ sketches[start:].T >= LEAST_ALIKE
        firsts, seconds = np.nonzero(np.triu(alike, 1))
        yield firsts + start, seconds + start


def _nearly(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Pairs that come near when only one of the two is trimmed: a fifth of the work of `_bits`."""
    trims = len(TRIMS)
    one_way = _median_bits(first[:, :1, None], second[:, None, :trims])
    other_way = _median_bits(first[:, :trims, None], second[:, None, :1])
    return np.minimum(np.minimum(one_way, other_way), _unstamped_bits(first, second)) <= NEAR_BITS


def _bits(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.float64]:
    """For each pair the least median distance over all ways of comparing them."""
    trims = len(TRIMS)
    trimmed = _median_bits(first[:, :trims, None], second[:, None, :trims])
    return np.minimum(trimmed, _unstamped_bits(first, second))


def _unstamped_bits(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.float64]:
    trims = len(TRIMS)
    return _median_bits(first[:, trims:, None], second[:, trims:, None])


def _median_bits(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.float64]:
    """For pairs x ways x ways x frames x words: the median over frames where it is least."""
    shape = np.broadcast_shapes(first.shape, second.shape)[:-1]
    apart = np.zeros(shape, np.uint16)
    for word in range(_HASH_WORDS):
        apart += np.bitwise_count(first[..., word] ^ second[..., word])
    apart.sort(axis=-1)
    frames = shape[-1]
    doubled = apart[..., (frames - 1) // 2].astype(np.float64) + apart[..., frames // 2]
    least: NDArray[np.float64] = doubled.min(axis=(1, 2)) / 2
    return least
