"""Step that finds families of near-duplicates, whose clips then stay in one split.

With `drop`, one clip for each label and family is kept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from unreel.core.chunks import SCAN_ROWS
from unreel.curation.recipe import DuplicatesRecipeSection
from unreel.curation.segment import ExcludedSegment, format_digest_hex
from unreel.curation.segment_table import (
    CurationJob,
    CurationState,
    CurationStepResult,
    SegmentTable,
)
from unreel.curation.step_execution import Given, VersionedCurationStep, to_json_values
from unreel.engine.stage import Row
from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, WAYS, ClipFingerprint, Places, Words
from unreel.media.near_duplicates import find_near_duplicates
from unreel.stats.clusters import group_connected_names


class StoredFingerprints:
    """Fingerprints of all segments, sorted by clip id; the hashes are read from disk on access."""

    def __init__(self, segments: SegmentTable) -> None:
        clips = segments.rows.digests("clip")
        order = np.argsort(clips, kind="stable")
        self._table_rows = segments.rows
        self._rows = segments.rows.reordered(order)
        self._rank_of_row = np.argsort(order)
        self.names = ClipIdSequence(clips[order])
        self.sketches = np.empty((len(clips), SKETCH_SIDE**2), np.uint8)
        for indices, sketches in self._iter_column("sketch"):
            packed = np.frombuffer(b"".join(sketches.to_pylist()), np.uint8)
            self.sketches[indices] = packed.reshape(-1, SKETCH_SIDE**2)

    def words(self, indices: Places) -> Words:
        return _unpack_fingerprint_hashes(self._rows.take(indices, ["hashes"]).column(0))

    def blocks(self) -> Iterator[tuple[Places, Words]]:
        """Yield the indices and fingerprint hashes of all clips, in the order of the segment table."""
        for indices, hashes in self._iter_column("hashes"):
            yield indices, _unpack_fingerprint_hashes(hashes)

    def _iter_column(self, column: str) -> Iterator[tuple[Places, Any]]:
        start = 0
        for batch in self._table_rows.batches([column]):
            stop = start + batch.num_rows
            yield self._rank_of_row[start:stop], batch.column(0)
            start = stop


def _unpack_fingerprint_hashes(hashes: Any) -> Words:
    packed = b"".join(hashes.to_pylist())
    return np.frombuffer(packed, "<u8").reshape(len(hashes), len(WAYS), -1, HASH_WORDS)


class ClipIdSequence(Sequence[str]):
    """Sequence of clip ids that are stored as bytes and formatted as text on access."""

    def __init__(self, packed: NDArray[np.bytes_]) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return map(format_digest_hex, self._packed)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return ClipIdSequence(self._packed[index])
        return format_digest_hex(self._packed[index])


DUPLICATES = "duplicates"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateFamilyId:
    """Id of a clip's near-duplicate family: the first clip of the family; "" without a duplicate."""

    family: str


def run_duplicates_step(
    section: DuplicatesRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add near-duplicates' family ids; with `drop`, keep the largest picture of each label and family."""
    named = assign_duplicate_families(job, state.segments)
    if section.near == "keep":
        return state.after(CurationStepResult(segments=named))
    families, labels = named.strings("family"), named.strings("label")
    members = np.flatnonzero(families != "")
    related = named.rows.reordered(members)
    worths = zip(
        related.column("pixels").to_pylist(),
        related.column("size_bytes").to_pylist(),
        related.digests("clip").tolist(),
        strict=True,
    )
    best: dict[tuple[str, str], tuple[tuple[int, int, bytes], int]] = {}
    for index, worth in zip(members.tolist(), worths, strict=True):
        group = families[index], labels[index]
        best[group] = max(best.get(group, (worth, index)), (worth, index))
    keep = families == ""
    keep[[index for _, index in best.values()]] = True
    worse = np.flatnonzero(~keep)
    better = np.array([best[families[i], labels[i]][1] for i in worse], np.intp)

    def iter_worse() -> Iterator[ExcludedSegment]:
        for start in range(0, len(worse), SCAN_ROWS):
            chunk = slice(start, start + SCAN_ROWS)
            names = named.rows.take(better[chunk], ["name"]).column("name").to_pylist()
            gone = SegmentTable(rows=named.rows.reordered(worse[chunk]))
            for segment, name in zip(gone, names, strict=True):
                detail = f"shows the same as {name}"
                yield segment.left_out(DUPLICATES, "near-duplicate", detail)

    excluded = job.directory.write_exclusions("duplicates-worse", iter_worse())
    return state.after(CurationStepResult(segments=named.where(keep), left_out=excluded))


def assign_duplicate_families(job: CurationJob, segments: SegmentTable) -> SegmentTable:
    """Return every segment with the id of its near-duplicate family, and without its fingerprint."""
    step = VersionedCurationStep(name=DUPLICATES, version=1, finds=TypeAdapter(DuplicateFamilyId))

    def build_input(row: Row) -> Given:
        fingerprint = ClipFingerprint(sketch=row["sketch"], hashes=row["hashes"])
        return {"fingerprint": to_json_values(fingerprint), "pixels": row["pixels"]}

    def find_families() -> Callable[[int], DuplicateFamilyId]:
        root = job.directory.folder.root
        matches = find_near_duplicates(StoredFingerprints(segments), inside=root)
        pairs = [(match.first, match.second) for match in matches]
        groups = group_connected_names(sorted({name for pair in pairs for name in pair}), pairs)
        family = {member: group[0] for group in groups for member in group}
        clips = segments.rows.digests("clip")
        return lambda i: DuplicateFamilyId(family=family.get(format_digest_hex(clips[i]), ""))

    requests = segments.subjects(build_input, ("sketch", "hashes", "pixels"))
    decisions = job.context.run_cached(step, requests, find_families)
    named = (
        replace(segment, family=decision.family, fingerprint=None)
        for segment, decision in zip(segments, decisions, strict=True)
    )
    return job.directory.write(DUPLICATES, named).segments
