"""Near-duplicates: clips that show the same, however they were encoded, scaled, cropped or stamped.

Two clips match when one way of trimming their frames brings the median of them within `MOST_BITS`.

Who is compared with whom is decided by a sketch of 64 grey levels: one matrix product over the set, so
10^5 clips are the limit of one machine. Beyond that, cluster first and compare inside clusters; hashes
cut into bands would lose pairs that differ by tens of bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, TRIMS, Fingerprint

MOST_BITS: Final = 38
"""Of 256. Copies stay below it; takes of one scene by one camera were seen from 40 on."""
NEAR_BITS: Final = 64
"""A pair is compared under all trims when it comes this near with one of the two untrimmed."""
LEAST_ALIKE: Final = 0.75
"""Correlation of two sketches from which on two clips are compared by their hashes."""
_ROWS_AT_ONCE: Final = 1_024
_PAIRS_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two clips that show the same, and the bits by which their median frame differs."""

    first: str
    second: str
    bits: float


def clip_bits(first: Fingerprint, second: Fingerprint) -> float:
    """Bits of 256 by which the median frames of two clips differ, under the trims that suit best."""
    return float(_bits(first.words()[None], second.words()[None])[0])


def find_matches(prints: Sequence[tuple[str, Fingerprint]]) -> list[Match]:
    """All pairs of clips that show the same, in the order of `prints`."""
    if not prints:
        return []
    names = [name for name, _ in prints]
    words = np.stack([own.words() for _, own in prints])
    matches = []
    for firsts, seconds in _candidates([own for _, own in prints]):
        for place in range(0, len(firsts), _PAIRS_AT_ONCE):
            left, right = firsts[place:][:_PAIRS_AT_ONCE], seconds[place:][:_PAIRS_AT_ONCE]
            near = _nearly(words[left], words[right])
            left, right = left[near], right[near]
            matches += [
                Match(first=names[i], second=names[j], bits=float(bits))
                for i, j, bits in zip(left, right, _bits(words[left], words[right]), strict=True)
                if bits <= MOST_BITS
            ]
    return matches


def _candidates(
    prints: Sequence[Fingerprint],
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Places of pairs whose sketches are alike, each pair once."""
    grids = np.frombuffer(b"".join(own.sketch for own in prints), np.uint8)
    sketches = grids.reshape(len(prints), SKETCH_SIDE**2).astype(np.float32)
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
    for word in range(HASH_WORDS):
        apart += np.bitwise_count(first[..., word] ^ second[..., word])
    apart.sort(axis=-1)
    frames = shape[-1]
    doubled = apart[..., (frames - 1) // 2].astype(np.float64) + apart[..., frames // 2]
    least: NDArray[np.float64] = doubled.min(axis=(1, 2)) / 2
    return least
