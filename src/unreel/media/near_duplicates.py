"""Search of near-duplicate clips, even if re-encoded, scaled, cropped or with a logo.

Two clips match if, for one combination of trimmings, the median distance of their frames is at
most `MOST_BITS`, and if their sketches of 64 grey levels are similar.

In a set of thousands all pairs are compared. In a set of millions only pairs whose hashes agree
in random bits are compared (`hash_bands`), because copies differ in about 10 of 256 bits for the
best trimming. Decision 0042 gives the number of missed pairs.
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS, TRIMS, WAYS, FingerprintSet, LargeFingerprintSet
from unreel.media.hash_bands import (
    CROWD,
    ClipIndexPairs,
    FrameHashMatcher,
    Hashes,
    compute_band_bit_count,
    sample_hash_band,
)


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
        lying = np.frombuffer(self._file.read(self._n_clips * _HASH_BYTES), np.uint64)
        hashes = np.empty((self._n_clips, HASH_WORDS), np.uint64)
        hashes[self._places] = lying.reshape(-1, HASH_WORDS)
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


MOST_BITS = 38
"""Maximum distance of two copies, in bits of 256. Takes of one scene by one camera had distances from 40 on."""
NEAR_BITS = 64
"""Maximum distance in bits, with one clip untrimmed or both without logo areas, to compare all trimmings."""
LEAST_ALIKE = 0.75
"""Minimum correlation of the sketches of two clips to compare their hashes."""
FEW = 16_384
"""Maximum number of clips of which all pairs are compared."""
_FRAMES = (1, 3, 4, 6)
"""Indices of the frames whose bands are compared. A match needs four of the eight frames; the outer are often black."""
_BANDS = 4
"""Number of bands for each of these frames and each way of hashing it."""
_THREADS = 2
_CODES_AT_ONCE = 1 << 16
_ALIKE_AT_ONCE = 1 << 22
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

    In a set of up to 16,384 clips all pairs are compared; in a larger one only pairs that agree in
    random bits of a frame, see `hash_bands`. A family of more than 64 clips has enough pairs to
    connect it, not all of them.

    Args:
        fingerprints: Fingerprints of the clips to compare.
        known: Number of first clips that were compared before: pairs among them are skipped.
        seed: Seed of the random bits.
        all_pairs: Whether all pairs are compared and each match is returned, regardless of the size.
        inside: Folder for the temporary file of a large set; the system's folder by default.
    """
    n_clips = len(fingerprints.sketches)
    if all_pairs or n_clips <= FEW:
        judge = _ClipPairMatcher(
            _CachedFingerprints(fingerprints), known, crowd=n_clips if all_pairs else CROWD
        )
        for pairs in _iter_similar_pairs(fingerprints.sketches, known):
            judge.compare(pairs)
    else:
        judge = _ClipPairMatcher(fingerprints, known, crowd=CROWD)
        with open_frame_hash_file(fingerprints, _FRAMES, inside) as planes:
            _compare_band_pairs(planes, judge, seed)
    return judge.matches()


class _ClipPairMatcher:
    """Matcher that compares candidate pairs of clips by their frame hashes, and stores the matches."""

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
            apart = self._not_in_a_crowd(codes[start : start + _CODES_AT_ONCE])
            for offset in range(0, len(apart), _PAIRS_AT_ONCE):
                self._look_at(self._not_in_a_crowd(apart[offset : offset + _PAIRS_AT_ONCE]))

    def compare_once(self, pairs: ClipIndexPairs) -> None:
        """Compare the pairs that have similar sketches and were not compared before."""
        low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
        codes = self._not_in_a_crowd(np.sort(low * self.n_clips + high))
        codes = codes[np.append(True, codes[1:] != codes[:-1])[: len(codes)]]
        at = np.searchsorted(self._compared, codes)
        fresh = codes[self._compared[np.minimum(at, len(self._compared) - 1)] != codes]
        self._compared = np.sort(np.concatenate([self._compared, fresh]), kind="stable")
        sketches, alike = self._prints.sketches, np.empty(len(fresh), np.bool_)
        for start in range(0, len(fresh), _CODES_AT_ONCE):
            part = fresh[start : start + _CODES_AT_ONCE]
            left = _normalise_sketches(sketches[part // self.n_clips])
            right = _normalise_sketches(sketches[part % self.n_clips])
            alike[start : start + len(part)] = np.einsum("ij,ij->i", left, right) >= LEAST_ALIKE
        fresh = fresh[alike]
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
        apart: NDArray[np.intp] = codes[(left != right) | (families.sizes(left) <= self._crowd)]
        return apart

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
            if distance <= MOST_BITS:
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


def _iter_similar_pairs(grids: NDArray[np.uint8], known: int) -> Iterator[ClipIndexPairs]:
    """Yield the pairs of clips with similar sketches, each once; pairs of two known clips are skipped."""
    sketches = _normalise_sketches(grids)
    rows = max(1, _ALIKE_AT_ONCE // max(1, len(sketches)))
    for start in range(0, len(sketches), rows):
        after = max(start, known)
        alike = sketches[start : start + rows] @ sketches[after:].T >= LEAST_ALIKE
        firsts, seconds = np.nonzero(np.triu(alike, 1 + start - after))
        yield ClipIndexPairs(firsts + start, seconds + after)


def _normalise_sketches(grids: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Scale each sketch to mean 0 and length 1; all uniform sketches become the same vector."""
    sketches = grids.astype(np.float32)
    sketches -= sketches.mean(axis=1, keepdims=True)
    # All pictures without structure are similar to each other.
    sketches[~sketches.any(axis=1)] = 1
    sketches /= np.linalg.norm(sketches, axis=1, keepdims=True)
    return sketches


def _compare_band_pairs(hash_file: FrameHashFile, matcher: _ClipPairMatcher, seed: int) -> None:
    """Compare all pairs that agree in a random band of a frame's hash, trimmed alike or one untrimmed."""
    draw = np.random.default_rng(seed)
    n_bits = compute_band_bit_count(matcher.n_clips)
    with ThreadPoolExecutor(_THREADS, "bands") as pool:
        for sides in _iter_trimmed_hashes(hash_file):
            hashed = FrameHashMatcher(sides=sides, known=matcher.known, most_bits=NEAR_BITS)
            bands = [sample_hash_band(draw, n_bits) for _ in range(_BANDS)]
            for pairs, crowded in pool.map(hashed.meet, bands):
                matcher.compare_once(pairs)
                for more in hashed.thin(crowded, draw, matcher.families.of):
                    matcher.compare_once(more)


def _iter_trimmed_hashes(hash_file: FrameHashFile) -> Iterator[tuple[Hashes, ...]]:
    """Yield, for each frame and trimming, the hashes of all clips that are compared with each other."""
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
    apart = np.zeros(shape, np.uint16)
    for word in range(HASH_WORDS):
        apart += np.bitwise_count(first[..., word] ^ second[..., word])
    apart.sort(axis=-1)
    frames = shape[-1]
    doubled = apart[..., (frames - 1) // 2].astype(np.float64) + apart[..., frames // 2]
    smallest: NDArray[np.float64] = doubled.min(axis=(1, 2)) / 2
    return smallest
