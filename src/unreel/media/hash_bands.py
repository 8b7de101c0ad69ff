"""Find candidate pairs of similar hashes in a large set, without comparing all pairs.

A band is a random choice of the 256 bits. Two hashes that differ in 10 bits agree in a band of
24 bits with probability 0.38; unrelated hashes with about 2^-24. A dozen bands find nearly all
similar pairs and almost no unrelated pairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS

CROWD = 64
"""Maximum number of hashes with the same key in a band of which all pairs are compared."""
_WORD_BITS = 64
_SPARE_BITS = 4
_FEWEST_BITS = 16
_FURTHER_BITS = 12
_ROUNDS = 4
_MARK_BITS = 24
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)

Hashes = NDArray[np.uint64]
"""Array of 64-bit words: hashes with one row per clip, or a flat array of keys or entries."""
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ClipIndexPairs:
    """Pairs of clip indices, as two arrays of equal length."""

    first: Places
    second: Places

    def __len__(self) -> int:
        return len(self.first)

    def where(self, chosen: NDArray[np.bool_] | slice) -> "ClipIndexPairs":
        """Return the pairs that the mask or slice `chosen` selects."""
        return ClipIndexPairs(self.first[chosen], self.second[chosen])


@dataclass(frozen=True, slots=True)
class HashBand:
    """Random selection of hash bits, and the odd multipliers that combine these bits into a key."""

    masks: Hashes
    odd: Hashes

    def keys(self, hashes: Hashes) -> Hashes:
        """Return a key for each hash, in the upper 32 bits; hashes with equal band bits have equal keys."""
        mixed = np.zeros(len(hashes), np.uint64)
        for word in np.flatnonzero(self.masks):
            mixed += (hashes[:, word] & self.masks[word]) * self.odd[word]
        mixed ^= mixed >> _HALF
        mixed *= _MIX
        mixed &= ~_LOW
        return mixed


def sample_hash_band(draw: np.random.Generator, n_bits: int) -> HashBand:
    """Sample a random band of `n_bits` of the 256 hash bits."""
    masks = np.zeros(HASH_WORDS, np.uint64)
    for bit in draw.choice(HASH_WORDS * _WORD_BITS, n_bits, replace=False).tolist():
        masks[bit // _WORD_BITS] |= np.uint64(1 << bit % _WORD_BITS)
    return HashBand(masks, draw.integers(0, 1 << 63, HASH_WORDS, np.uint64) << _ONE | _ONE)


def compute_band_bit_count(n_clips: int) -> int:
    """Return how many bits a band needs so that few unrelated clips among `n_clips` share a key."""
    return max(_FEWEST_BITS, n_clips.bit_length() + _SPARE_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameHashMatcher:
    """Matcher of clips by the hashes of one frame, with one trimming, or with two that are compared."""

    sides: tuple[Hashes, ...]
    known: int
    """Number of first clips that are not compared with each other."""
    most_bits: int

    def meet(self, band: HashBand) -> tuple[ClipIndexPairs, Hashes]:
        """Return clip pairs that agree in `band` within `most_bits`, and the entries of keys shared by over 64."""
        entries = np.concatenate(
            [
                band.keys(rows) | np.arange(len(rows), dtype=np.uint64) << _ONE | np.uint64(number)
                for number, rows in enumerate(self.sides)
            ]
        )
        if self.known:
            marked = np.zeros(1 << _MARK_BITS, np.bool_)
            prefixes = entries >> np.uint64(64 - _MARK_BITS)
            marked[prefixes[_extract_clip_indices(entries) >= self.known]] = True
            entries = entries[marked[prefixes]]  # their key may occur in a new clip
        entries.sort()
        small, crowded = _split_by_key_count(entries)
        return self._near(_pair_entries_by_key(small)), crowded

    def thin(
        self, crowded: Hashes, draw: np.random.Generator, family: Callable[[Places], Places]
    ) -> Iterator[ClipIndexPairs]:
        """Yield a limited number of candidate pairs for hash keys that too many clips share.

        Pairs of adjacent entries come first, then pairs with one clip of each family of copies.

        A key that stays crowded is split by further bits. If all its entries have one hash, such as
        that of a black frame, it yields no pairs: such a frame is no evidence of a copy.
        """
        for _ in range(_ROUNDS):
            if not len(crowded):
                return
            (at,) = np.nonzero(crowded[1:] >> _HALF == crowded[:-1] >> _HALF)
            yield self._near((crowded[at], crowded[at + 1]))
            keys = crowded & ~_LOW
            whose = family(_extract_clip_indices(crowded)) << 1 | _extract_side_bits(crowded)
            order = np.lexsort((whose, keys))
            keys, whose = keys[order], whose[order]
            first = np.append(True, (keys[1:] != keys[:-1]) | (whose[1:] != whose[:-1]))
            small, crowded = _split_by_key_count(np.sort(crowded[order][first]))
            yield self._near(_pair_entries_by_key(small))
            band = sample_hash_band(draw, _FURTHER_BITS)
            further = np.zeros_like(crowded)
            for number, hashes in enumerate(self.sides):
                mask = _extract_side_bits(crowded) == number
                further[mask] = band.keys(hashes[_extract_clip_indices(crowded[mask])])
            crowded = np.sort(((crowded + further * _MIX) & ~_LOW) | (crowded & _LOW))

    def _near(self, entries: tuple[Hashes, Hashes]) -> ClipIndexPairs:
        """Return the pairs of entries whose hashes differ by at most `most_bits`."""
        left, right = entries
        first, second = _extract_clip_indices(left), _extract_clip_indices(right)
        eligible = (first != second) & (np.maximum(first, second) >= self.known)
        if len(self.sides) > 1:
            eligible &= _extract_side_bits(left) != _extract_side_bits(right)
        left, right, first, second = (row[eligible] for row in (left, right, first, second))
        apart = np.zeros(len(left), np.uint16)
        for word in range(HASH_WORDS):
            apart += np.bitwise_count(self._words(left, word) ^ self._words(right, word))
        return ClipIndexPairs(first, second).where(apart <= self.most_bits)

    def _words(self, entries: Hashes, word: int) -> Hashes:
        hashes: Hashes = self.sides[0][_extract_clip_indices(entries), word]
        if len(self.sides) > 1:
            second = _extract_side_bits(entries) == 1
            hashes[second] = self.sides[1][_extract_clip_indices(entries[second]), word]
        return hashes


def _extract_clip_indices(entries: Hashes) -> Places:
    return ((entries & _LOW) >> _ONE).astype(np.intp)


def _extract_side_bits(entries: Hashes) -> NDArray[np.intp]:
    return (entries & _ONE).astype(np.intp)


def _split_by_key_count(entries: Hashes) -> tuple[Hashes, Hashes]:
    """Split sorted entries into those whose key has 2 to 64 entries, and those whose key has more."""
    same = entries[1:] >> _HALF == entries[:-1] >> _HALF
    entries = entries[(np.append(same, False) | np.append(False, same))[: len(entries)]]
    keys = entries >> _HALF
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    sizes = np.diff(np.append(starts, len(keys)))
    counts = np.repeat(sizes, sizes)
    return entries[counts <= CROWD], entries[counts > CROWD]


def _pair_entries_by_key(entries: Hashes) -> tuple[Hashes, Hashes]:
    """Return all pairs of sorted entries with the same key."""
    keys = entries >> _HALF
    left, right = [entries[:0]], [entries[:0]]
    for step in range(1, CROWD):
        (at,) = np.nonzero(keys[step:] == keys[:-step])
        if not len(at):
            break
        left.append(entries[at])
        right.append(entries[at + step])
    return np.concatenate(left), np.concatenate(right)
