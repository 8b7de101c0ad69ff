"""Segments of a curation: their table, its folder between two steps, and the state of the curation.

A step streams over the rows. A decision about the complete set reads only the necessary columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import read_clip_id
from unreel.curation.segment import (
    CONTRADICTION,
    GIVE_LICENCE,
    NO_LICENCE,
    NO_ROWS,
    NONE_LEFT_OUT,
    QUARANTINE,
    REJECTED,
    ClipSegment,
    ExcludedSegment,
    ExcludedSegmentWriter,
    MeasuredShot,
    SegmentExclusions,
    WorkingTable,
    write_working_table,
)
from unreel.curation.step_execution import CurationContext, CurationStepRequest, Given
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row
from unreel.engine.writer_lock import WriterLock, build_writer_lock
from unreel.media.fingerprint import ClipFingerprint
from unreel.recipes.validation import RecipeSection, Seed, Text

Item = TypeVar("Item")
PIECES = ".pieces"
"""Name of the folder of intermediate tables. A run deletes its content, so the name is unusual."""
_PIECE = TypeAdapter(ClipSegment)
_SHOTS = TypeAdapter(tuple[MeasuredShot, ...])
_APART = {"shots", "fingerprint"}
"""Large fields that few steps read, stored in separate columns."""
_WHOLE = ("piece", "shots", "sketch", "hashes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentTable:
    """Table of the segments of a curation, stored on disk, in a given order."""

    rows: WorkingTable = NO_ROWS

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ClipSegment]:
        for batch in self.rows.batches(_WHOLE):
            yield from map(_parse_segment, *(batch.column(name).to_pylist() for name in _WHOLE))

    def subjects(
        self, build_inputs: Callable[[Row], Given] = lambda _: {}, columns: Sequence[str] = ()
    ) -> "ReiterableStream[CurationStepRequest]":
        """Return the requests of a step, one for each segment's file.

        Args:
            build_inputs: Function from a row to the additional inputs of its request.
            columns: Columns of the row that `build_inputs` reads.
        """
        return ReiterableStream(lambda: self._subjects(build_inputs, columns))

    def _subjects(
        self, build_inputs: Callable[[Row], Given], columns: Sequence[str]
    ) -> Iterator[CurationStepRequest]:
        for batch in self.rows.batches(("clip", "name", "location", *columns)):
            for row in batch.to_pylist():
                yield CurationStepRequest(
                    clip=read_clip_id(row["clip"].hex(), PIECES),
                    name=row["name"],
                    location=row["location"],
                    given=build_inputs(row),
                )

    def strings(self, name: str) -> NDArray[np.object_]:
        """Return the text column `name` as an array of shared strings, for columns of few distinct texts."""
        codes, values = self.codes(name)
        texts: NDArray[np.object_] = np.array(values.to_pylist(), object)[codes]
        return texts

    def codes(self, name: str) -> tuple[NDArray[np.int32], Any]:
        """Return the text column `name` as integer codes, and the Arrow array of distinct texts."""
        coded = self.rows.column(name).combine_chunks().dictionary_encode()
        return coded.indices.to_numpy(), coded.dictionary

    def where(self, mask: NDArray[np.bool_]) -> "SegmentTable":
        return self if mask.all() else SegmentTable(rows=self.rows.where(mask))

    def by_name(self) -> "SegmentTable":
        """Return the table with the segments sorted by name."""
        return SegmentTable(rows=self.rows.by_name())


NO_PIECES = SegmentTable()


class ReiterableStream(Generic[Item]):
    """Iterable that can be iterated repeatedly: each time it calls a function for a new iterator."""

    def __init__(self, begin: Callable[[], Iterator[Item]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[Item]:
        return self._begin()


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationStepResult:
    """Result of a curation step: the remaining segments, and the segments that it excluded."""

    segments: SegmentTable
    left_out: SegmentExclusions = NONE_LEFT_OUT


@dataclass(frozen=True, slots=True)
class SegmentWorkDirectory:
    """Local directory that stores the segments between two steps of a curation."""

    folder: OutputDirectory

    @classmethod
    def of(cls, context: CurationContext) -> "SegmentWorkDirectory":
        return cls(OutputDirectory(OutputDirectory(context.ledgers.parent).make(PIECES)))

    def write(
        self, step: str, stream: Iterable[ClipSegment | ExcludedSegment]
    ) -> CurationStepResult:
        leaving = ExcludedSegmentWriter(self.folder, step)
        rows = write_working_table(
            self.folder,
            f"{step}.rows",
            _iter_segment_rows(stream, leaving),
            _build_segment_schema(),
        )
        return CurationStepResult(segments=SegmentTable(rows=rows), left_out=leaving.end())

    def write_exclusions(self, step: str, excluded: Iterable[ExcludedSegment]) -> SegmentExclusions:
        leaving = ExcludedSegmentWriter(self.folder, step)
        for record in excluded:
            leaving.add(record)
        return leaving.end()

    def lock(self) -> WriterLock:
        """Return a lock so that only one curation at a time writes to this directory."""
        return build_writer_lock(StorageLocation(str(self.folder.root)))

    def clear(
        self,
        *,
        kept_segments: SegmentTable = NO_PIECES,
        excluded: SegmentExclusions = NONE_LEFT_OUT,
    ) -> None:
        """Remove all files except those of `kept_segments` and `excluded`; folders are not removed."""
        names = {
            *excluded.files,
            *([kept_segments.rows.file.name] if kept_segments.rows.file else []),
        }
        for name in self.folder.files():
            if "/" not in name and name not in names:
                self.folder.remove(name)


def deduplicate_segments(
    segments: SegmentTable, *, step: str
) -> tuple[SegmentTable, Iterable[ExcludedSegment]]:
    """Separate the segments into the first one of each content, and the exclusions of its duplicates.

    Equal content means the same bytes and cut. If equal segments have different labels, all of them
    are excluded.
    """
    ids = segments.rows.digests("id")
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    alike = np.concatenate([[False], ids[1:] == ids[:-1], [False]])
    starts, ends = np.flatnonzero(~alike[:-1] & alike[1:]), np.flatnonzero(alike[:-1] & ~alike[1:])
    if not len(starts):
        return segments, ()
    groups = [order[start : end + 1] for start, end in zip(starts, ends, strict=True)]
    labels = segments.strings("label")
    keep = np.ones(len(segments), np.bool_)
    for group in groups:
        keep[group if len(set(labels[group])) > 1 else group[1:]] = False
    same = SegmentTable(rows=segments.rows.reordered(np.concatenate(groups)))
    return segments.where(keep), _iter_content_duplicates(
        same, [len(group) for group in groups], step
    )


def _iter_content_duplicates(
    same_segments: SegmentTable, sizes: Sequence[int], step: str
) -> Iterator[ExcludedSegment]:
    """Yield the exclusions of duplicates; `same_segments` lists groups of equal segments with these `sizes`."""
    walk = iter(same_segments)
    for size in sizes:
        group = list(islice(walk, size))
        names = [segment.entry.name for segment in group]
        if len({segment.entry.label for segment in group}) > 1:
            detail = (
                f"real under one of these names and generated under another: {', '.join(names)}"
            )
            yield from (segment.left_out(step, CONTRADICTION, detail) for segment in group)
        else:
            detail = f"the bytes of {names[0]}"
            yield from (segment.left_out(step, "duplicate", detail) for segment in group[1:])


def _build_segment_schema() -> Any:
    import pyarrow as pa

    texts = ("name", "location", "label", "family", "group", "length_s")
    return pa.schema(
        [
            ("id", pa.binary(32)),
            ("clip", pa.binary(32)),
            ("source", pa.binary(32)),
            *((name, pa.string()) for name in texts),
            ("pixels", pa.int64()),
            ("size_bytes", pa.int64()),
            ("piece", pa.binary()),
            ("shots", pa.binary()),
            ("sketch", pa.binary()),
            ("hashes", pa.binary()),
        ]
    )


def _iter_segment_rows(
    stream: Iterable[ClipSegment | ExcludedSegment], writer: ExcludedSegmentWriter
) -> Iterator[dict[str, Any]]:
    for item in stream:
        if isinstance(item, ExcludedSegment):
            writer.add(item)
        else:
            yield _build_segment_row(item)


def _build_segment_row(segment: ClipSegment) -> dict[str, Any]:
    entry, clip, fingerprint = segment.entry, segment.clip, segment.fingerprint
    video = clip.facts.video
    return {
        "id": bytes.fromhex(segment.id),
        "clip": bytes.fromhex(clip.id),
        "source": bytes.fromhex(segment.source),
        "name": entry.name,
        "location": clip.location,
        "label": entry.label.value,
        "family": segment.family,
        "group": entry.group,
        "length_s": str(segment.length_s),
        "pixels": video.width * video.height,
        "size_bytes": clip.facts.size_bytes,
        "piece": _PIECE.dump_json(segment, exclude=_APART),
        "shots": _SHOTS.dump_json(segment.shots) if segment.shots else None,
        "sketch": None if fingerprint is None else fingerprint.sketch,
        "hashes": None if fingerprint is None else fingerprint.hashes,
    }


def _parse_segment(
    stored: bytes, shots: bytes | None, sketch: bytes | None, hashes: bytes | None
) -> ClipSegment:
    segment = _PIECE.validate_json(stored)
    if shots is None and sketch is None:
        return segment
    fingerprint = (
        None if sketch is None or hashes is None else ClipFingerprint(sketch=sketch, hashes=hashes)
    )
    return replace(
        segment, shots=() if shots is None else _SHOTS.validate_json(shots), fingerprint=fingerprint
    )


class CurationGlobalSettings(RecipeSection):
    """Settings at the top of a curation recipe, which apply to all steps."""

    name: Text
    """Name of the benchmark."""
    seed: Seed = 0
    """Seed of all random choices: splits, traces, groups, permutations of the audit."""
    require_licence: bool = True
    """Whether to exclude clips for which neither the source nor the recipe names a licence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationJob:
    """Input of each step of a curation: the global settings, the context and the folder of the recipe."""

    recipe: CurationGlobalSettings
    """Complete recipe; a step uses the global settings and only its own section."""
    root: Path
    """Folder of the recipe, to which its paths are relative."""
    context: CurationContext
    accept_leak: bool = False

    @property
    def directory(self) -> SegmentWorkDirectory:
        """Return the directory that stores the segments of the curation between two steps."""
        return SegmentWorkDirectory.of(self.context)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSummary:
    """Result of the label audit for the benchmark: a text for the data card, and a JSON document."""

    text: str
    document: Mapping[str, Any]
    leaks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenBenchmark:
    """Result of writing a frozen benchmark: location, numbers of clips and digest."""

    place: str
    clips: Mapping[str, int]
    """Number of clips by split."""
    digest: str
    """SHA-256 of the checksum file; equal for equal benchmarks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationState:
    """State of a curation: the remaining segments, the exclusions, and the results of finished steps."""

    segments: SegmentTable = NO_PIECES
    left_out: SegmentExclusions = NONE_LEFT_OUT
    audit: AuditSummary | None = None
    frozen: FrozenBenchmark | None = None
    steps: tuple[str, ...] = ()
    """Names of the finished steps."""

    def after(self, result: CurationStepResult) -> "CurationState":
        """Return the state after a step: the remaining segments, and all exclusions so far."""
        return replace(self, segments=result.segments, left_out=self.left_out + result.left_out)

    def require_pieces(self, step: str) -> None:
        """Raise `InvalidSettingError` if no segment is left for the step `step`, which needs one."""
        if not self.segments:
            counts = ", ".join(f"{n} {reason}" for reason, n in self.reasons.items())
            raise InvalidSettingError(
                step,
                f"no clip is left to {step} ({counts or 'there was none'})",
                GIVE_LICENCE
                if self.lacks_licences
                else f"See {QUARANTINE} in the working folder for what to do",
            )

    @property
    def reasons(self) -> Mapping[str, int]:
        """Return the number of excluded segments by step and reason."""
        tally = {f"{step}: {reason}": n for (step, reason), n in self.left_out.counts.items()}
        return dict(sorted(tally.items()))

    @property
    def lacks_licences(self) -> bool:
        """Return whether clips were excluded because they have no licence."""
        return NO_LICENCE in self.left_out.by_reason

    @property
    def leaks(self) -> bool:
        """Return whether the audit found that the labels leak."""
        return self.audit is not None and self.audit.leaks

    @property
    def n_failed(self) -> int:
        """Count the files and clips that were excluded because of an error, not by a step's decision."""
        failures = {*FailureReason, REJECTED, CONTRADICTION}
        return sum(n for reason, n in self.left_out.by_reason.items() if reason in failures)
