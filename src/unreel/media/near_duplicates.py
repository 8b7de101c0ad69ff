"""Search of near-duplicate clips, even if re-encoded, scaled, cropped or with a logo.

Two clips match if, for one combination of trimmings, the median distance of their frames is at
most `MAX_BITS`, and if their sketches of 64 grey levels are similar.

In a set of thousands all pairs are compared. In a set of millions only pairs whose hashes agree
in a band, a random choice of the 256 bits, are compared. Copies differ in about 10 bits for the
best trimming and agree in a band of 24 bits with probability 0.38, unrelated hashes with about
2^-24. Decision 0042 gives the number of missed pairs.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS, TRIMS, WAYS, FingerprintSet, LargeFingerprintSet

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

    hash_sets: tuple[Hashes, ...]
    known: int
    max_bits: int

    def meet(self, band: HashBand) -> tuple[ClipIndexPairs, Hashes]:
        """Return clip pairs that agree in `band` within `max_bits`, and the entries of keys shared by over 64."""
        entries = np.concatenate(
            [
                band.keys(rows) | np.arange(len(rows), dtype=np.uint64) << _ONE | np.uint64(number)
                for number, rows in enumerate(self.hash_sets)
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
            for number, hashes in enumerate(self.hash_sets):
                mask = _extract_side_bits(crowded) == number
                further[mask] = band.keys(hashes[_extract_clip_indices(crowded[mask])])
            crowded = np.sort(((crowded + further * _MIX) & ~_LOW) | (crowded & _LOW))

    def _near(self, entries: tuple[Hashes, Hashes]) -> ClipIndexPairs:
        """Return the pairs of entries whose hashes differ by at most `max_bits`."""
        left, right = entries
        first, second = _extract_clip_indices(left), _extract_clip_indices(right)
        eligible = (first != second) & (np.maximum(first, second) >= self.known)
        if len(self.hash_sets) > 1:
            eligible &= _extract_side_bits(left) != _extract_side_bits(right)
        left, right, first, second = (row[eligible] for row in (left, right, first, second))
        distances = np.zeros(len(left), np.uint16)
        for word in range(HASH_WORDS):
            distances += np.bitwise_count(self._words(left, word) ^ self._words(right, word))
        return ClipIndexPairs(first, second).where(distances <= self.max_bits)

    def _words(self, entries: Hashes, word: int) -> Hashes:
        hashes: Hashes = self.hash_sets[0][_extract_clip_indices(entries), word]
        if len(self.hash_sets) > 1:
            second = _extract_side_bits(entries) == 1
            hashes[second] = self.hash_sets[1][_extract_clip_indices(entries[second]), word]
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
    keys = entries >> _HALF
    left, right = [entries[:0]], [entries[:0]]
    for step in range(1, CROWD):
        (at,) = np.nonzero(keys[step:] == keys[:-step])
        if not len(at):
            break
        left.append(entries[at])
        right.append(entries[at + step])
    return np.concatenate(left), np.concatenate(right)


class DuplicateClipFamilies:
    """Union-find structure of clips: families of near-duplicates, at first one family per clip."""

    def __init__(self, n_clips: int) -> None:
        self._above = np.arange(n_clips)
        self._sizes = np.ones(n_clips, np.intp)

    def of(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return, for each clip index in `indices`, the clip that represents its family."""
        tops = self._above[indices]
        while (higher := self._above[tops] != tops).any():
            tops[higher] = self._above[tops[higher]]
        self._above[indices] = tops
        return tops

    def sizes(self, tops: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the number of clips in each family with the representatives `tops`."""
        return self._sizes[tops]

    def join(self, first: int, second: int) -> None:
        """Join the families of two clips."""
        top, under = sorted(self.of(np.array([first, second])).tolist(), key=self._rank)
        if top != under:
            self._above[under] = top
            self._sizes[top] += self._sizes[under]

    def _rank(self, top: int) -> tuple[int, int]:
        return -int(self._sizes[top]), top


_HASH_BYTES = HASH_WORDS * 8


class FrameHashFile:
    """File with the hashes of some frames of all clips, ordered by frame and trimming."""

    def __init__(
        self, file: IO[bytes], fingerprints: LargeFingerprintSet, frames: Sequence[int]
    ) -> None:
        self._file = file
        self._frames = {frame: number for number, frame in enumerate(frames)}
        self._n_clips = len(fingerprints.sketches)
        self._places = np.empty(self._n_clips, np.intp)
        start = 0
        for indices, hashes in fingerprints.blocks():
            self._places[start : start + len(indices)] = indices
            for frame, way in product(frames, range(len(WAYS))):
                file.seek(self._offset(frame, way) + start * _HASH_BYTES)
                file.write(hashes[:, way, frame].tobytes())
            start += len(indices)

    def read(self, frame: int, way: int) -> Hashes:
        """Return the hashes of the frame `frame` of all clips, under the trimming `way`."""
        self._file.seek(self._offset(frame, way))
        ordered = np.frombuffer(self._file.read(self._n_clips * _HASH_BYTES), np.uint64)
        hashes = np.empty((self._n_clips, HASH_WORDS), np.uint64)
        hashes[self._places] = ordered.reshape(-1, HASH_WORDS)
        return hashes

    def _offset(self, frame: int, way: int) -> int:
        return (self._frames[frame] * len(WAYS) + way) * self._n_clips * _HASH_BYTES


@contextmanager
def open_frame_hash_file(
    fingerprints: LargeFingerprintSet, frames: Sequence[int], inside: Path | None
) -> Iterator[FrameHashFile]:
    """Write all clips' hashes of `frames` to a temporary file in `inside` or the system's; open it."""
    with tempfile.TemporaryFile(prefix="unreel-", dir=inside) as file:
        yield FrameHashFile(file, fingerprints, frames)


MAX_BITS = 38
"""Maximum distance of two copies, in bits of 256. Takes of one scene by one camera had distances from 40 on."""
NEAR_BITS = 64
"""Maximum distance in bits, with one clip untrimmed or both without logo areas, to compare all trimmings."""
MIN_CORRELATION = 0.75
FEW = 16_384
_FRAMES = (1, 3, 4, 6)
"""Indices of the frames whose bands are compared. A match needs four of the eight frames; the outer are often black."""
_BANDS = 4
_THREADS = 2
_CODES_AT_ONCE = 1 << 16
_COMPARED_AT_ONCE = 1 << 22
_PAIRS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicateClipPair:
    """Pair of clips with the same content, with the median distance of their frame hashes in bits."""

    first: str
    second: str
    bits: float


def find_near_duplicates(
    fingerprints: LargeFingerprintSet,
    *,
    known: int = 0,
    seed: int = 0,
    all_pairs: bool = False,
    inside: Path | None = None,
) -> list[NearDuplicateClipPair]:
    """Return the pairs of clips with the same content, in the order of `fingerprints`.

    In a set of up to 16,384 clips, or with `all_pairs`, all pairs are compared; otherwise only
    pairs that agree in random bits of a frame. A family of more than 64 clips then has enough
    pairs to connect it, not all of them. Pairs among the `known` first clips are skipped. `inside`
    is the folder for a temporary file.
    """
    n_clips = len(fingerprints.sketches)
    if all_pairs or n_clips <= FEW:
        judge = _ClipPairMatcher(
            _CachedFingerprints(fingerprints), known, crowd=n_clips if all_pairs else CROWD
        )
        sketches = _normalise_sketches(fingerprints.sketches)
        n_rows = max(1, _COMPARED_AT_ONCE // max(1, n_clips))
        for start in range(0, n_clips, n_rows):
            after = max(start, known)  # pairs of two known clips are skipped
            similar = sketches[start : start + n_rows] @ sketches[after:].T >= MIN_CORRELATION
            firsts, seconds = np.nonzero(np.triu(similar, 1 + start - after))
            judge.compare(ClipIndexPairs(firsts + start, seconds + after))
    else:
        judge = _ClipPairMatcher(fingerprints, known, crowd=CROWD)
        with open_frame_hash_file(fingerprints, _FRAMES, inside) as planes:
            _compare_band_pairs(planes, judge, seed)
    return judge.matches()


class _ClipPairMatcher:
    def __init__(self, fingerprints: FingerprintSet, known: int, *, crowd: int) -> None:
        self._prints = fingerprints
        self._crowd = crowd
        self.known = known
        self.n_clips = len(fingerprints.sketches)
        self._compared = np.array([-1], np.intp)
        self._matched: dict[int, float] = {}
        self.families = DuplicateClipFamilies(self.n_clips)

    def compare(self, pairs: ClipIndexPairs) -> None:
        """Compare the pairs that are not already in one large family; no pair may be passed twice."""
        codes = pairs.first * self.n_clips + pairs.second
        for start in range(0, len(codes), _CODES_AT_ONCE):
            candidates = self._not_in_a_crowd(codes[start : start + _CODES_AT_ONCE])
            for offset in range(0, len(candidates), _PAIRS_AT_ONCE):
                self._look_at(self._not_in_a_crowd(candidates[offset : offset + _PAIRS_AT_ONCE]))

    def compare_once(self, pairs: ClipIndexPairs) -> None:
        """Compare the pairs that have similar sketches and were not compared before."""
        low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
        codes = self._not_in_a_crowd(np.sort(low * self.n_clips + high))
        codes = codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]]
        at = np.searchsorted(self._compared, codes)
        fresh = codes[self._compared[np.minimum(at, len(self._compared) - 1)] != codes]
        self._compared = np.sort(np.concatenate([self._compared, fresh]), kind="stable")
        sketches, similar = self._prints.sketches, np.empty(len(fresh), np.bool_)
        for start in range(0, len(fresh), _CODES_AT_ONCE):
            part = fresh[start : start + _CODES_AT_ONCE]
            left = _normalise_sketches(sketches[part // self.n_clips])
            right = _normalise_sketches(sketches[part % self.n_clips])
            similar[start : start + len(part)] = (
                np.einsum("ij,ij->i", left, right) >= MIN_CORRELATION
            )
        fresh = fresh[similar]
        self.compare(ClipIndexPairs(fresh // self.n_clips, fresh % self.n_clips))

    def matches(self) -> list[NearDuplicateClipPair]:
        """Return all matching pairs found so far."""
        names = self._prints.names
        return [
            NearDuplicateClipPair(
                first=names[code // self.n_clips], second=names[code % self.n_clips], bits=bits
            )
            for code, bits in sorted(self._matched.items())
        ]

    def _not_in_a_crowd(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        families, n = self.families, self.n_clips
        left, right = families.of(codes // n), families.of(codes % n)
        remaining_codes: NDArray[np.intp] = codes[
            (left != right) | (families.sizes(left) <= self._crowd)
        ]
        return remaining_codes

    def _look_at(self, codes: NDArray[np.intp]) -> None:
        if not len(codes):
            return
        indices, where = np.unique(
            [codes // self.n_clips, codes % self.n_clips], return_inverse=True
        )
        hashes = self._prints.words(indices)
        left, right = hashes[where.reshape(2, -1)]
        close = _find_near_pairs(left, right)
        bits = _compute_min_distance(left[close], right[close])
        for code, distance in zip(codes[close].tolist(), bits.tolist(), strict=True):
            if distance <= MAX_BITS:
                self._matched[code] = distance
                self.families.join(code // self.n_clips, code % self.n_clips)


class _CachedFingerprints:
    """Set of clip fingerprints whose hashes are all read at the start and kept in memory."""

    def __init__(self, fingerprints: FingerprintSet) -> None:
        self.names, self.sketches = fingerprints.names, fingerprints.sketches
        indices = np.arange(len(fingerprints.sketches))
        self._words = fingerprints.words(indices) if len(indices) else np.empty(0, np.uint64)

    def words(self, indices: NDArray[np.intp]) -> NDArray[np.uint64]:
        return self._words[indices]


def _normalise_sketches(grids: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Scale each sketch to mean 0 and length 1; all uniform sketches become the same vector."""
    sketches = grids.astype(np.float32)
    sketches -= sketches.mean(axis=1, keepdims=True)
    # All pictures without structure are similar to each other.
    sketches[~sketches.any(axis=1)] = 1
    sketches /= np.linalg.norm(sketches, axis=1, keepdims=True)
    return sketches


def _compare_band_pairs(hash_file: FrameHashFile, matcher: _ClipPairMatcher, seed: int) -> None:
    """Compare all pairs that agree in a random band of a frame's hash, trimmed similar or one untrimmed."""
    draw = np.random.default_rng(seed)
    n_bits = compute_band_bit_count(matcher.n_clips)
    with ThreadPoolExecutor(_THREADS, "bands") as pool:
        for hash_sets in _iter_trimmed_hashes(hash_file):
            hashed = FrameHashMatcher(hash_sets=hash_sets, known=matcher.known, max_bits=NEAR_BITS)
            bands = [sample_hash_band(draw, n_bits) for _ in range(_BANDS)]
            for pairs, crowded in pool.map(hashed.meet, bands):
                matcher.compare_once(pairs)
                for more in hashed.thin(crowded, draw, matcher.families.of):
                    matcher.compare_once(more)


def _iter_trimmed_hashes(hash_file: FrameHashFile) -> Iterator[tuple[Hashes, ...]]:
    for frame in _FRAMES:
        plain = hash_file.read(frame, 0)
        yield (plain,)
        for way in range(1, len(WAYS)):
            trimmed = hash_file.read(frame, way)
            yield (plain, trimmed) if way < len(TRIMS) else (trimmed,)


def _find_near_pairs(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a mask of the pairs within `NEAR_BITS`, with a fifth of the work of `_compute_min_distance`."""
    trims = len(TRIMS)
    one_way = _compute_median_distance(first[:, :1, None], second[:, None, :trims])
    other_way = _compute_median_distance(first[:, :trims, None], second[:, None, :1])
    return (
        np.minimum(np.minimum(one_way, other_way), _compute_distance_without_logos(first, second))
        <= NEAR_BITS
    )


def _compute_min_distance(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return each pair's smallest median over frames of differing bits, over all trimmings."""
    trims = len(TRIMS)
    trimmed = _compute_median_distance(first[:, :trims, None], second[:, None, :trims])
    return np.minimum(trimmed, _compute_distance_without_logos(first, second))


def _compute_distance_without_logos(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> NDArray[np.float64]:
    trims = len(TRIMS)
    return _compute_median_distance(first[:, trims:, None], second[:, trims:, None])


def _compute_median_distance(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Return each pair's smallest median over frames; axes: pairs, trimmings, trimmings, frames, words."""
    shape = np.broadcast_shapes(first.shape, second.shape)[:-1]
    distances = np.zeros(shape, np.uint16)
    for word in range(HASH_WORDS):
        distances += np.bitwise_count(first[..., word] ^ second[..., word])
    distances.sort(axis=-1)
    frames = shape[-1]
    doubled = distances[..., (frames - 1) // 2].astype(np.float64) + distances[..., frames // 2]
    smallest: NDArray[np.float64] = doubled.min(axis=(1, 2)) / 2
    return smallest
