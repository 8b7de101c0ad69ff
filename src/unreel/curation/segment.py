"""Segments of a curation, their tables and exclusions, and the state of the curation between two steps.

A step streams over the rows. A decision about the complete set reads only the necessary columns.
"""

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, TypeAdapter

from unreel.benchmarks.entry import Entry
from unreel.core.chunks import SCAN_ROWS, iter_chunks
from unreel.core.clip import Clip, ClipId
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import read_clip_id
from unreel.core.span import convert_to_microseconds
from unreel.curation.step_execution import (
    CurationContext,
    CurationStepRequest,
    Found,
    Given,
    format_canonical_json,
    to_json_values,
)
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row
from unreel.engine.writer_lock import WriterLock, build_writer_lock
from unreel.media.fingerprint import BorderWidths, ClipFingerprint
from unreel.media.messages import format_fraction
from unreel.media.render import WHOLE, CroppedFrameRange
from unreel.recipes.validation import RecipeSection, Seed, Text

_RUN = 20_000
"""Number of items that are sorted in memory."""
_OPEN = 16
"""Maximum number of sorted files that are read at once."""

Line = tuple[Any, ...]
"""Line of a sorted file: a tuple of JSON values. Lines are in the order of such tuples."""


class SortedRunWriter:
    """Writer for external sorting, which stores lines, added in any order, in sorted files (runs)."""

    def __init__(self, directory: OutputDirectory, name: str) -> None:
        self._folder, self._name = directory, name
        self._files: list[str] = []
        self._waiting: list[Line] = []
        self._n_put_down = 0

    def add(self, line: Line) -> None:
        self._waiting.append(line)
        if len(self._waiting) == _RUN:
            self._sort()

    def end(self) -> tuple[str, ...]:
        """Write the remaining lines; return the sorted files, merged to 16 that a reader can open."""
        if self._waiting:
            self._sort()
        while len(self._files) > _OPEN:
            joined, self._files = self._files[:_OPEN], self._files[_OPEN:]
            self._put_down(merge_sorted_runs(self._folder, joined))
            for name in joined:
                self._folder.remove(name)
        return tuple(self._files)

    def _sort(self) -> None:
        self._put_down(sorted(self._waiting))
        self._waiting = []

    def _put_down(self, ordered: Iterable[Line]) -> None:
        name = f"{self._name}-{self._n_put_down}.jsonl"
        with self._folder.create_text(name) as file:
            file.writelines(json.dumps(line) + "\n" for line in ordered)
        self._files.append(name)
        self._n_put_down += 1


def merge_sorted_runs(directory: OutputDirectory, files: Sequence[str]) -> Iterator[Line]:
    """Merge the sorted files in `directory` and yield their lines in one sorted order."""
    with ExitStack() as stack:
        runs = [stack.enter_context(directory.read(name)) for name in files]
        yield from heapq.merge(*(map(_parse_json_line, run) for run in runs))


def _parse_json_line(text: bytes) -> Line:
    return tuple(json.loads(text))


Places = NDArray[np.int64]
"""Indices of rows in a file."""
_OF_ONE_COLUMN = 1 << 16
_CACHE_BYTES = 1 << 20
"""Maximum size of the column data that Lance buffers before writing; its default is eight times as much."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkingTable:
    """Table on disk between two steps: rows of a Lance file in a given order; empty without a file."""

    file: Path | None = None
    n_rows: int = 0
    places: Places | None = None
    """Indices of the rows in the file, in order; `None` for all rows."""

    def __len__(self) -> int:
        return self.n_rows if self.places is None else len(self.places)

    def batches(
        self, columns: Sequence[str] | None = None, *, rows: int = SCAN_ROWS
    ) -> Iterator[Any]:
        if self.file is None:
            return
        from lance.file import LanceFileReader

        reader = LanceFileReader(str(self.file), columns=None if columns is None else [*columns])
        for start in range(0, len(self), rows):
            n = min(rows, len(self) - start)
            if self.places is None:
                table = reader.read_range(start, n, batch_size=n).to_table()
            else:
                table = _read_rows_at(reader, self.places[start : start + n])
            yield from table.combine_chunks().to_batches()

    def take(self, indices: NDArray[np.intp], columns: Sequence[str]) -> Any:
        """Return the rows at `indices`, in that order, as an Arrow table; indices may repeat."""
        from lance.file import LanceFileReader

        stored = indices if self.places is None else self.places[indices]
        return _read_rows_at(LanceFileReader(str(self.file), columns=[*columns]), stored)

    def column(self, name: str) -> Any:
        import pyarrow as pa

        chunks = [batch.column(0) for batch in self.batches([name], rows=_OF_ONE_COLUMN)]
        return pa.chunked_array(chunks) if chunks else pa.chunked_array([], pa.string())

    def digests(self, name: str) -> NDArray[np.bytes_]:
        """Return the column `name` of 32-byte hashes as an array that can be compared and sorted."""
        packed = b"".join(
            b"".join(batch.column(0).to_pylist())
            for batch in self.batches([name], rows=_OF_ONE_COLUMN)
        )
        return np.frombuffer(packed, "S32")

    def where(self, mask: NDArray[np.bool_]) -> "WorkingTable":
        """Return a table of the rows that the boolean `mask` selects."""
        return self.reordered(np.flatnonzero(mask))

    def reordered(self, order: NDArray[np.intp]) -> "WorkingTable":
        """Return a table of the rows at the indices `order`, in that order."""
        indices = order if self.places is None else self.places[order]
        return replace(self, places=indices.astype(np.int64))

    def by_name(self) -> "WorkingTable":
        """Return the table sorted by name; rows of equal name keep their order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = self.column("name")
        at = pa.array(np.arange(len(self), dtype=np.int32))
        table = pa.table({"name": names, "at": at}) if len(self) else None
        if table is None:
            return self
        keys = [("name", "ascending"), ("at", "ascending")]
        order = pc.sort_indices(table, sort_keys=keys).to_numpy()
        is_sorted = bool((order[1:] > order[:-1]).all())
        return self if is_sorted else self.reordered(order.astype(np.intp))


NO_ROWS = WorkingTable()


def format_digest_hex(packed: bytes) -> str:
    """Return a 32-byte hash in hexadecimal; trailing zero bytes, which NumPy removes, are restored."""
    return packed.ljust(32, b"\0").hex()


def write_working_table(
    directory: OutputDirectory, name: str, rows: Iterable[dict[str, Any]], schema: Any
) -> WorkingTable:
    """Write `rows` in batches to the folder's file `name`, replacing it, and return them as a table."""
    import pyarrow as pa
    from lance.file import LanceFileWriter

    directory.require_plain()
    directory.remove(name)
    file, n_rows = directory.root / name, 0
    with LanceFileWriter(str(file), schema, data_cache_bytes=_CACHE_BYTES) as writer:
        for chunk in iter_chunks(rows, SCAN_ROWS):
            writer.write_batch(pa.RecordBatch.from_pylist(chunk, schema=schema))
            n_rows += len(chunk)
    return WorkingTable(file=file if n_rows else None, n_rows=n_rows)


def _read_rows_at(reader: Any, indices: NDArray[np.int64]) -> Any:
    unique, back = np.unique(indices, return_inverse=True)
    rows = reader.take_rows(unique, batch_size=max(1, len(unique))).to_table()
    return rows if np.array_equal(unique, indices) else rows.take(back)


ExactSeconds = Annotated[Fraction, PlainSerializer(format_fraction)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShot:
    """Shot of a file, a range of frames without a cut, with its borders and the screens' measurements."""

    first_frame: int
    end_frame: int
    start_s: ExactSeconds
    """Start of the shot, relative to the file's first frame."""
    length_s: ExactSeconds
    borders: BorderWidths
    motion: float
    sharpness: float
    noise: float
    lightness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    """Result of scanning a file: the measured shots, which together cover the whole file."""

    shots: tuple[MeasuredShot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFileWithFingerprint(ScannedFile):
    """Result of scanning a file: the measured shots, and the fingerprint of the whole file."""

    fingerprint: ClipFingerprint


QUARANTINE = "quarantine.jsonl"
REJECTED = "rejected"
NO_LICENCE = "no-licence"
GIVE_LICENCE = (
    "Give source.licence or a column `licence`, or allow such clips with require_licence = false at "
    "the top of the recipe"
)
CONTRADICTION = "contradiction"


def build_hashed_path(sha256: ClipId, suffix: str) -> str:
    """Return the relative path of a media file that is stored by its hash, such as `ab/ab12.mp4`."""
    return f"{sha256[:2]}/{sha256}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToPublish:
    """File that a benchmark publishes, a clip or a picture: hash, location and size."""

    sha256: str
    location: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSegment:
    """Clip during a curation: a whole file, or the frame range and crop `cut` of a file."""

    entry: Entry
    clip: Clip
    """Complete file of the segment."""
    source: ClipId
    """Identifier of the ingested file, which is the unique source video."""
    cut: CroppedFrameRange = WHOLE
    start_s: Fraction = Fraction(0)
    """Start of the segment, relative to the file's first frame."""
    length_s: Fraction
    cleaned: Clip | None = None
    """Copy of the clip without its watermarks."""
    first_frame: FileToPublish | None = None
    family: str = ""
    """Identifier of the family of near-duplicates; "" if there are none."""
    shots: tuple[MeasuredShot, ...] = ()
    """Shots with the measurements of the scan, which later steps use."""
    fingerprint: ClipFingerprint | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Results of steps as JSON values, by step; they are written to the manifest."""

    @property
    def id(self) -> str:
        """Return the id of the segment, a hash of its file's content and its cut."""
        return digest("piece", self.clip.id, format_canonical_json(to_json_values(self.cut)))

    def subject(self, **inputs: Any) -> CurationStepRequest:
        clip = self.clip
        return CurationStepRequest(
            clip=clip.id, name=self.entry.name, location=clip.location, given=inputs
        )

    def left_out(self, step: str, reason: str, detail: str) -> "ExcludedSegment":
        middle = convert_to_microseconds(self.start_s + self.length_s / 2)
        return ExcludedSegment(self.entry.name, step, reason, detail, self.clip.location, middle)

    def remade(self, clip: Clip) -> "ClipSegment":
        """Return the segment with the whole file `clip` as content, without measured shots and fingerprint."""
        length_s = clip.facts.video.duration_s
        segment = replace(self, clip=clip, cut=WHOLE, start_s=Fraction(0), length_s=length_s)
        return replace(segment, shots=(), fingerprint=None)


@dataclass(frozen=True, slots=True, order=True)
class ExcludedSegment:
    """Record of a file or clip that a step excluded from the benchmark, with the reason."""

    name: str
    step: str
    reason: str
    detail: str
    location: str = ""
    """Path or URL of the file; "" if unknown."""
    at_us: int | None = None
    """Midpoint of the segment in its file; `None` if the file was not opened."""


def filter_segments(
    step: str,
    segments: Iterable[ClipSegment],
    results: Iterable[Found | Failure | None],
    keep: Callable[[ClipSegment, Found], ClipSegment | ExcludedSegment],
) -> Iterator[ClipSegment | ExcludedSegment]:
    """Yield `keep` of each segment and result; keep it without a result, exclude it with a failure."""
    for segment, result in zip(segments, results, strict=True):
        match result:
            case None:
                yield segment
            case Failure():
                yield segment.left_out(step, result.reason.value, result.detail)
            case _:
                yield keep(segment, result)


_NOWHERE = -1
"""Placeholder for a missing timestamp."""


@dataclass(frozen=True, slots=True)
class SegmentExclusions:
    """Exclusions of several steps: counts by step and reason, and the files that list the segments."""

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __add__(self, other_exclusions: "SegmentExclusions") -> "SegmentExclusions":
        counts = Counter(self.counts)
        counts.update(other_exclusions.counts)
        return SegmentExclusions(dict(counts), (*self.files, *other_exclusions.files))

    @property
    def by_reason(self) -> Counter[str]:
        """Return the number of excluded segments by reason, over all steps."""
        tally: Counter[str] = Counter()
        for (_, reason), n in self.counts.items():
            tally[reason] += n
        return tally

    def read(self, directory: OutputDirectory) -> Iterator[ExcludedSegment]:
        """Read the files that list the excluded segments, and yield the segments sorted by name."""
        for name, step, reason, detail, location, at_us in merge_sorted_runs(directory, self.files):
            instant = None if at_us == _NOWHERE else at_us
            yield ExcludedSegment(name, step, reason, detail, location, instant)


NONE_LEFT_OUT = SegmentExclusions()


class ExcludedSegmentWriter:
    """Writer of the list of segments that one step excludes."""

    def __init__(self, directory: OutputDirectory, step: str) -> None:
        self._runs = SortedRunWriter(directory, f"{step}.out")
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, excluded: ExcludedSegment) -> None:
        self._counts[excluded.step, excluded.reason] += 1
        at_us = _NOWHERE if excluded.at_us is None else excluded.at_us
        self._runs.add(astuple(replace(excluded, at_us=at_us)))

    def end(self) -> SegmentExclusions:
        """Write the remaining excluded segments, and return the counts and the files that list them."""
        return SegmentExclusions(dict(self._counts), self._runs.end())


Item = TypeVar("Item")
PIECES = ".pieces"
"""Name of the folder of intermediate tables. A run deletes its content, so the name is unusual."""
_PIECE = TypeAdapter(ClipSegment)
_SHOTS = TypeAdapter(tuple[MeasuredShot, ...])
_SEPARATE_COLUMNS = {"shots", "fingerprint"}
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

        `build_inputs` maps a row with `columns` to the additional inputs of its request.
        """

        def iter_requests() -> Iterator[CurationStepRequest]:
            for batch in self.rows.batches(("clip", "name", "location", *columns)):
                for row in batch.to_pylist():
                    yield CurationStepRequest(
                        clip=read_clip_id(row["clip"].hex(), PIECES),
                        name=row["name"],
                        location=row["location"],
                        given=build_inputs(row),
                    )

        return ReiterableStream(iter_requests)

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
        import pyarrow as pa

        writer = ExcludedSegmentWriter(self.folder, step)

        def iter_rows() -> Iterator[dict[str, Any]]:
            for item in stream:
                if isinstance(item, ExcludedSegment):
                    writer.add(item)
                else:
                    yield _build_segment_row(item)

        binary, texts = pa.binary(), ("name", "location", "label", "family", "group", "length_s")
        schema = pa.schema(
            [
                *((name, pa.binary(32)) for name in ("id", "clip", "source")),
                *((name, pa.string()) for name in texts),
                *((name, pa.int64()) for name in ("pixels", "size_bytes")),
                *((name, binary) for name in ("piece", "shots", "sketch", "hashes")),
            ]
        )
        rows = write_working_table(self.folder, f"{step}.rows", iter_rows(), schema)
        return CurationStepResult(segments=SegmentTable(rows=rows), left_out=writer.end())

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
        segments_to_keep: SegmentTable = NO_PIECES,
        excluded: SegmentExclusions = NONE_LEFT_OUT,
    ) -> None:
        """Remove all files except those of `segments_to_keep` and `excluded`; folders are not removed."""
        names = {
            *excluded.files,
            *([segments_to_keep.rows.file.name] if segments_to_keep.rows.file else []),
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
    is_repeat = np.concatenate([[False], ids[1:] == ids[:-1], [False]])
    starts, ends = (
        np.flatnonzero(~is_repeat[:-1] & is_repeat[1:]),
        np.flatnonzero(is_repeat[:-1] & ~is_repeat[1:]),
    )
    if not len(starts):
        return segments, ()
    groups = [order[start : end + 1] for start, end in zip(starts, ends, strict=True)]
    labels = segments.strings("label")
    keep = np.ones(len(segments), np.bool_)
    for group in groups:
        keep[group if len(set(labels[group])) > 1 else group[1:]] = False
    same = SegmentTable(rows=segments.rows.reordered(np.concatenate(groups)))

    def iter_duplicates() -> Iterator[ExcludedSegment]:
        walk = iter(same)
        for size in map(len, groups):
            group = list(islice(walk, size))
            names = ", ".join(segment.entry.name for segment in group)
            if len({segment.entry.label for segment in group}) > 1:
                detail = f"real under one of these names and generated under another: {names}"
                yield from (segment.left_out(step, CONTRADICTION, detail) for segment in group)
            else:
                detail = f"the bytes of {group[0].entry.name}"
                yield from (segment.left_out(step, "duplicate", detail) for segment in group[1:])

    return segments.where(keep), iter_duplicates()


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
        "piece": _PIECE.dump_json(segment, exclude=_SEPARATE_COLUMNS),
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
    fingerprint = None
    if sketch is not None and hashes is not None:
        fingerprint = ClipFingerprint(sketch=sketch, hashes=hashes)
    measured = () if shots is None else _SHOTS.validate_json(shots)
    return replace(segment, shots=measured, fingerprint=fingerprint)


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
