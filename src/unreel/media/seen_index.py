"""Index of clips that were seen before: hashes of frames twice a second, and the search for copies and parts.

The index is one SQLite file without pictures. A clip that is searched gives four frames a second, each as it is,
trimmed at its edges, and mirrored. Frames of an indexed clip match if their PDQ hashes differ in few bits; a clip
matches if several of its frames do so at one offset in time. A first pass compares 64 of the 256 bits.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.clip import ClipId
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.registry import LazyImport
from unreel.core.safe_names import read_clip_id
from unreel.core.span import MICROSECONDS, TimeSpan, format_seconds
from unreel.media.reader import MediaReader

INDEX_SAMPLING, SEARCH_SAMPLING = "fps-2", "fps-4"
MAX_BITS = 40
"""Maximum number of differing bits of 256 between a frame and its copy."""
MIN_FRAMES = 4
"""Minimum number of matching frames at one offset; fewer if a clip has fewer."""
MIN_SHARE = 0.5
"""Minimum fraction of matching frames where the two clips overlap in time."""
_MAX_FIRST_BITS = 20
"""Maximum number of differing bits in the 64 bits of the first pass."""
_INDEX_STEP_US, _SEARCH_STEP_US = MICROSECONDS // 2, MICROSECONDS // 4
_BLOCK_FRAMES = 1 << 15
_MAX_OFFSET_US = _SEARCH_STEP_US + 10_000
_MIN_QUALITY = 50
"""Minimum quality of a hash by PDQ, 0 to 100; plain pictures have less, and resemble each other."""
_TRIMS = (0.0, 0.025, 0.05)
_SIDE, _HASHED_SIDE = 256, 128
_PDQ = LazyImport("pdqhash:compute", extra="review")
_FRAME = np.dtype([("at_us", "<i8"), ("words", "<u8", 4)])
_SCHEMA = """
CREATE TABLE IF NOT EXISTS clips (
    id TEXT PRIMARY KEY, place TEXT NOT NULL, source TEXT NOT NULL, added_at TEXT NOT NULL,
    duration_us INTEGER NOT NULL, frames BLOB NOT NULL
) STRICT
"""

Frames = NDArray[np.void]
"""Times and hashes of the frames of a clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenClip:
    """A clip of the index."""

    id: ClipId
    place: str
    """Path of the file, or the name that another newsroom gave it."""
    source: str
    """Collection that the clip was added with: a folder, a case or a pack."""
    added_at: str
    duration_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMatch:
    """A clip of the index that a searched clip repeats, completely or partly."""

    clip: SeenClip
    is_same_file: bool
    is_mirrored: bool
    span: TimeSpan
    """Matching part of the searched clip."""
    seen_span: TimeSpan
    """Matching part of the clip of the index."""
    n_frames: int
    """Number of matching frames."""
    bits: float
    """Median number of differing bits of the matching frames, of 256."""

    def __str__(self) -> str:
        if self.is_same_file:
            return f"The same file is {self.clip.place} ({self.clip.source})."
        mirrored = ", mirrored" if self.is_mirrored else ""
        return (
            f"{_format_span(self.span)} shows the same as {_format_span(self.seen_span)} of "
            f"{self.clip.place} ({self.clip.source}){mirrored}."
        )


def hash_clip(file: str | Path, reader: MediaReader) -> Frames | Failure:
    """Return the times and hashes of a clip's frames for the index; frames without structure are left out."""
    hashed = _hash_frames(file, reader, INDEX_SAMPLING, mirrored=False, trims=_TRIMS[:1])
    return hashed if isinstance(hashed, Failure) else hashed[False]


class SeenIndex:
    """Index of clips in one SQLite file; several processes may read and add at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self._database = sqlite3.connect(file, timeout=60, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(_SCHEMA)
        except sqlite3.Error as error:
            raise UnreadableSourceError(
                str(file),
                f"cannot be used as an index ({error})",
                "Name a file of `unreel seen add`",
            ) from error
        self._loaded: tuple[int, list[SeenClip], NDArray[np.intp], Frames] | None = None

    def __enter__(self) -> "SeenIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def __len__(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM clips").fetchone()[0])

    def __contains__(self, clip: ClipId) -> bool:
        found = self._database.execute("SELECT 1 FROM clips WHERE id = ?", (clip,))
        return found.fetchone() is not None

    def add(
        self,
        clip: ClipId,
        frames: Frames,
        *,
        place: str,
        source: str,
        duration_us: int,
        added_at: datetime,
    ) -> None:
        """Add a clip; one with the same bytes that is already there stays as it is."""
        row = (clip, place, source, added_at.isoformat(timespec="seconds"), duration_us)
        statement = "INSERT OR IGNORE INTO clips VALUES (?, ?, ?, ?, ?, ?)"
        self._database.execute(statement, (*row, frames.tobytes()))

    def iter_rows(self) -> Iterator[tuple[SeenClip, Frames]]:
        """Yield the clips of the index with their frames, in the order of addition."""
        with closing(self._database.execute("SELECT * FROM clips ORDER BY rowid")) as rows:
            for clip_id, place, source, added_at, duration_us, data in rows:
                clip = SeenClip(
                    id=read_clip_id(clip_id, str(self.file)),
                    place=place,
                    source=source,
                    added_at=added_at,
                    duration_us=duration_us,
                )
                yield clip, parse_frames(data)

    def find(
        self, file: str | Path, clip: ClipId, reader: MediaReader
    ) -> list[SeenMatch] | Failure:
        """Return the clips of the index that the clip at `file` repeats, the longest part first."""
        searched = _hash_frames(file, reader, SEARCH_SAMPLING, mirrored=True, trims=_TRIMS)
        if isinstance(searched, Failure):
            return searched
        clips, owners, frames = self._load()
        matches = [
            match
            for is_mirrored, rows in searched.items()
            for match in _match_frames(rows, clips, owners, frames, clip, is_mirrored=is_mirrored)
        ]
        known = {match.clip.id for match in matches if match.is_same_file}
        if clip not in known:
            matches += [_build_same_file_match(seen) for seen in clips if seen.id == clip]
        best: dict[ClipId, SeenMatch] = {}
        for match in sorted(matches, key=lambda match: (match.is_mirrored, -match.n_frames)):
            best.setdefault(match.clip.id, match)
        return sorted(best.values(), key=lambda match: (not match.is_same_file, -match.n_frames))

    def _load(self) -> tuple[list[SeenClip], NDArray[np.intp], Frames]:
        """Read all hashes into memory, again if the index has grown."""
        n_clips = len(self)
        if self._loaded is None or self._loaded[0] != n_clips:
            rows = list(self.iter_rows())
            owners = np.repeat(np.arange(len(rows)), [len(frames) for _, frames in rows])
            frames = np.concatenate([np.empty(0, _FRAME), *(frames for _, frames in rows)])
            self._loaded = (n_clips, [clip for clip, _ in rows], owners, frames)
        return self._loaded[1:]


def parse_frames(data: bytes) -> Frames:
    """Return the frames that the bytes of the index contain."""
    if len(data) % _FRAME.itemsize:
        raise UnreadableSourceError("index", "a row of frames is cut off", "Add the clip again")
    return np.frombuffer(data, _FRAME)


def _hash_frames(
    file: str | Path, reader: MediaReader, sampling: str, *, mirrored: bool, trims: Sequence[float]
) -> dict[bool, Frames] | Failure:
    """Hash the sampled frames with each of `trims`, and mirrored as well; the keys tell whether mirrored."""
    sampled = reader.frames(file, sampling=sampling, encoding="rgb24", longest_side=_SIDE)
    if isinstance(sampled, Failure):
        return sampled
    compute = _PDQ.load()
    rows: dict[bool, list[tuple[int, NDArray[np.uint64]]]] = defaultdict(list)
    for frame in sampled.frames:
        picture = Image.fromarray(frame.rgb())
        for is_mirrored in (False, True) if mirrored else (False,):
            if is_mirrored:
                picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            for trim in trims:
                width, height = picture.size
                box = (width * trim, height * trim, width * (1 - trim), height * (1 - trim))
                size = (_HASHED_SIDE, _HASHED_SIDE)
                small = picture.resize(size, Image.Resampling.BOX, box=box)
                bits, quality = compute(np.asarray(small))
                if quality >= _MIN_QUALITY:
                    words = np.packbits(np.asarray(bits, np.uint8)).view("<u8")
                    rows[is_mirrored].append((round(frame.at_s * MICROSECONDS), words))
    return {
        is_mirrored: np.array(rows[is_mirrored], _FRAME)
        for is_mirrored in ((False, True) if mirrored else (False,))
    }


def _match_frames(
    searched: Frames,
    clips: Sequence[SeenClip],
    owners: NDArray[np.intp],
    frames: Frames,
    clip: ClipId,
    *,
    is_mirrored: bool,
) -> Iterator[SeenMatch]:
    """Yield a match for each indexed clip with enough equal frames at one offset in time."""
    hits: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    first_words = np.ascontiguousarray(frames["words"][:, 0])
    for start in range(0, len(frames), _BLOCK_FRAMES):  # a block stays in the processor's cache
        block = first_words[start : start + _BLOCK_FRAMES]
        for at_us, words in searched.tolist():
            n_differing = np.bitwise_count(block ^ np.uint64(words[0]))
            near = start + np.flatnonzero(n_differing <= _MAX_FIRST_BITS)
            bits = np.bitwise_count(frames["words"][near] ^ np.array(words, np.uint64)).sum(axis=1)
            for place, distance in zip(near[bits <= MAX_BITS], bits[bits <= MAX_BITS], strict=True):
                hit = (at_us, int(frames["at_us"][place]), int(distance))
                hits[int(owners[place])].append(hit)
    times = np.unique(searched["at_us"])
    for owner, found in hits.items():
        seen = clips[owner]
        match = _find_best_offset(found, times, frames["at_us"][owners == owner])
        if match is None:
            continue
        at_us, offset_us, bits = match
        start_us, end_us = int(at_us.min()), int(at_us.max()) + _SEARCH_STEP_US
        seen_start_us = max(0, start_us + offset_us)
        yield SeenMatch(
            clip=seen,
            is_same_file=seen.id == clip,
            is_mirrored=is_mirrored,
            span=TimeSpan(start_us, end_us),
            seen_span=TimeSpan(seen_start_us, max(end_us + offset_us, seen_start_us + 1)),
            n_frames=len(at_us),
            bits=float(np.median(bits)),
        )


def _find_best_offset(
    hits: Sequence[tuple[int, int, int]], times: NDArray[np.int64], seen_times: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int, NDArray[np.int64]] | None:
    """Return the times of the matching frames at the offset with most of them, this offset, and their bits.

    The offset is that of the closest frames, because the others lie between two frames of the index.
    `None` if too few frames match.
    """
    best: dict[int, tuple[int, int, int]] = {}
    rank = (0, 0)
    for offset in {seen_at - at for at, seen_at, _ in hits}:
        at_offset: dict[int, tuple[int, int, int]] = {}
        for hit in sorted(hits, key=lambda hit: hit[2]):
            if abs(hit[1] - hit[0] - offset) <= _MAX_OFFSET_US:
                at_offset.setdefault(hit[0], hit)
        n_bits = sum(bits for _, _, bits in at_offset.values())
        if (len(at_offset), -n_bits) > rank:
            best, rank = at_offset, (len(at_offset), -n_bits)
    if not best:
        return None
    at_us, seen_us, bits = np.array([best[at] for at in sorted(best)]).T
    offset_us = int(np.median((seen_us - at_us)[bits <= np.median(bits)]))
    first_us, last_us = seen_times.min() - _MAX_OFFSET_US, seen_times.max() + _MAX_OFFSET_US
    n_overlap = int(((times + offset_us >= first_us) & (times + offset_us <= last_us)).sum())
    n_needed = max(min(MIN_FRAMES, len(times)), MIN_SHARE * n_overlap)
    return (at_us, offset_us, bits) if len(at_us) >= n_needed else None


def _build_same_file_match(seen: SeenClip) -> SeenMatch:
    span = TimeSpan(0, seen.duration_us)
    return SeenMatch(
        clip=seen,
        is_same_file=True,
        is_mirrored=False,
        span=span,
        seen_span=span,
        n_frames=0,
        bits=0.0,
    )


def _format_span(span: TimeSpan) -> str:
    return f"{format_seconds(span.start_us)} to {format_seconds(span.end_us)}"
