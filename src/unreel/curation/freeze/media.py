"""Media files of a frozen benchmark: published names, parallel copies, first frames as JPEG, and the manifest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter

from unreel.benchmarks.entry import DeclaredFacts
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.clip import Clip, ClipId
from unreel.core.content_ids import compute_bytes_clip_id, compute_clip_id
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import get_safe_suffix, read_clip_id
from unreel.core.span import convert_to_microseconds
from unreel.curation.recipe import FreezeRecipeSection
from unreel.curation.segment import (
    ClipSegment,
    CurationJob,
    CurationState,
    FileToPublish,
    build_hashed_path,
    filter_segments,
    merge_sorted_runs,
)
from unreel.curation.step_execution import (
    CurationContext,
    Given,
    VersionedCurationStep,
    format_canonical_json,
    to_json_values,
)
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row, Stage, WorkerResources, convert_to_failed_row, is_failed_row
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.reader import MediaReader, SampledFrame

METADATA = "metadata.parquet"
_AS_JSON = ("traces", "ratings", "votes")
_TYPED: dict[str, type] = {
    "score": int,
    "width": int,
    "height": int,
    "n_frames": int,
    "duration_us": int,
    "size_bytes": int,
    "has_sound": bool,
}
_GROUP = 10_000
"""Number of rows of a Parquet row group, which a reader loads at once."""


def build_media_path(clip: Clip) -> str:
    """Return the path of the clip's file below the folder of its split; its content hash is its name."""
    return f"media/{build_hashed_path(clip.id, get_safe_suffix(clip.location))}"


def get_manifest_file_name(clip: Clip, *, in_place: bool) -> str:
    """Return the clip's path in the split's folder or, with `in_place`, the original file's location."""
    return clip.location if in_place else build_media_path(clip)


def build_first_frame_path(segment: ClipSegment) -> str:
    """Return the path of the clip's first frame below the folder of its split; "" if none is stored."""
    picture = segment.first_frame
    return "" if picture is None else f"first_frames/{build_hashed_path(segment.clip.id, '.jpg')}"


def build_manifest_row(
    segment: ClipSegment, split: str, *, in_place: bool = False
) -> dict[str, Any]:
    """Return the manifest row of the segment: declared fields, measurements, and results of steps."""
    facts = segment.clip.facts
    video = facts.video
    measured = DeclaredFacts(
        width=video.width,
        height=video.height,
        rate=video.average_rate,
        n_frames=video.n_frames,
        duration_us=convert_to_microseconds(video.duration_s),
    )
    copy, picture = segment.cleaned, segment.first_frame
    cleaned = None if copy is None else get_manifest_file_name(copy, in_place=in_place)
    entry = replace(segment.entry, split=split, facts=measured, cleaned=cleaned)
    record = convert_entry_to_record(
        entry, file_name=get_manifest_file_name(segment.clip, in_place=in_place)
    )
    for name in _AS_JSON:
        record[name] = format_canonical_json(record[name])
    return record | {
        "sha256": segment.clip.id,
        "size_bytes": facts.size_bytes,
        "codec": video.codec,
        "has_sound": bool(facts.audio),
        "first_frame": picture.location
        if picture and in_place
        else build_first_frame_path(segment),
        "source_video": segment.source,
        "family": segment.family,
        "notes": format_canonical_json(
            {step: to_json_values(note) for step, note in segment.notes.items()}
        ),
    }


class ManifestWriter:
    """Writer of manifest rows as a Parquet file into `sink`; rows must be sorted by name."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink, self._rows = sink, list[dict[str, Any]]()
        self._writer: Any = None

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) == _GROUP:
            self._put_down()

    def end(self) -> None:
        """Write the remaining manifest rows and close the writer; at least one row must have been added."""
        if self._rows:
            self._put_down()
        self._writer.close()

    def _put_down(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            kinds = {int: pa.int64(), bool: pa.bool_()}
            fields = [
                (name, kinds.get(_TYPED.get(name, str), pa.string())) for name in self._rows[0]
            ]
            self._writer = pq.ParquetWriter(self._sink, pa.schema(fields), compression="zstd")
        self._writer.write_table(
            pa.Table.from_pylist(self._rows, schema=self._writer.schema), row_group_size=_GROUP
        )
        self._rows = []


FIRST_FRAME = "first_frame"
FIRST_FRAME_PLAN = "fps-1/86400"
"""Sampling of one frame per day, which is the first frame of any clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFirstFrame:
    """Stored first frame of a clip: hash, file name and size in bytes."""

    sha256: ClipId
    name: str
    bytes: int


def run_first_frames_step(
    _section: FreezeRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Store the first frame of every segment as a full-size JPEG, and add it to the segment."""
    step = VersionedCurationStep(name=FIRST_FRAME, version=1, finds=TypeAdapter(StoredFirstFrame))
    media = job.context.media
    look = partial(_store_first_frame, media_location=media)
    frames = job.context.ask(step, state.segments.subjects(), look)

    def add_frame(segment: ClipSegment, frame: StoredFirstFrame) -> ClipSegment:
        sha256 = read_clip_id(frame.sha256, FIRST_FRAME)
        location = (media / build_hashed_path(sha256, ".jpg")).uri
        file = FileToPublish(sha256=sha256, location=location, size_bytes=frame.bytes)
        return replace(segment, first_frame=file)

    pictured = filter_segments(FIRST_FRAME, state.segments, frames, add_frame)
    return state.after(job.directory.write(FIRST_FRAME, pictured))


def read_first_frame(reader: MediaReader, path: Path) -> SampledFrame | Failure:
    """Return the first frame of the clip as a full-size JPEG."""
    sampled = reader.frames(path, sampling=FIRST_FRAME_PLAN)
    return sampled if isinstance(sampled, Failure) else sampled.frames[0]


def _store_first_frame(
    reader: MediaReader, file: Path, _given: Given, *, media_location: StorageLocation
) -> StoredFirstFrame | Failure:
    frame = read_first_frame(reader, file)
    if isinstance(frame, Failure):
        return frame
    sha256 = compute_bytes_clip_id(frame.data)
    name = build_hashed_path(sha256, ".jpg")
    media_location.put(name, frame.data)
    return StoredFirstFrame(sha256=sha256, name=name, bytes=len(frame.data))


COPY = "copy"
_AT_ONCE = 4
"""Number of files that one worker copies at once."""
_CHANGED = "the file is not the one that was ingested"


def iter_published_files(
    segment: ClipSegment, split: str, *, in_place: bool
) -> Iterator[tuple[str, FileToPublish]]:
    """Yield the files of a segment with their published names: clip, cleaned copy and first frame."""
    for clip in (segment.clip, segment.cleaned):
        if clip is not None:
            size_bytes = clip.facts.size_bytes
            file = FileToPublish(sha256=clip.id, location=clip.location, size_bytes=size_bytes)
            name = get_manifest_file_name(clip, in_place=in_place)
            yield name if in_place else f"{split}/{name}", file
    picture = segment.first_frame
    if picture is not None:
        yield (
            picture.location if in_place else f"{split}/{build_first_frame_path(segment)}",
            picture,
        )


@dataclass(frozen=True, slots=True)
class BenchmarkMedia:
    """Media files to publish with a benchmark, read from disk in the order of their published names."""

    folder: OutputDirectory
    runs: tuple[str, ...]

    def __iter__(self) -> Iterator[tuple[str, FileToPublish]]:
        before = None
        for name, sha256, location, size_bytes in merge_sorted_runs(self.folder, self.runs):
            if name != before:
                yield name, FileToPublish(sha256=sha256, location=location, size_bytes=size_bytes)
            before = name

    def strays(self, names: Iterator[str]) -> Iterator[str]:
        """Yield those of the sorted file names `names` that are not media of this benchmark."""
        published = (name for name, _ in self)
        current = next(published, None)
        for name in names:
            while current is not None and current < name:
                current = next(published, None)
            if name != current:
                yield name


def copy_benchmark_media(
    media: BenchmarkMedia, location: StorageLocation, context: CurationContext
) -> None:
    """Let workers copy all media files of the benchmark to `location`; existing files are skipped."""
    rows = (
        {
            "key": name,
            "attempt": 1,
            "location": file.location,
            "clip": file.sha256,
            "size_bytes": file.size_bytes,
        }
        for name, file in media
    )

    def require_copied(row: Row) -> None:
        if is_failed_row(row):
            problem, remedy = row["failure_detail"], "Restore it, or run again"
            if row["failure_reason"] != FailureReason.CLIP_CHANGED:
                problem = f"cannot be copied: {problem.rstrip('.')}"
                remedy = "Fix that, and run again"
            raise UnreadableSourceError(row["location"], problem, remedy)

    context.put_through(COPY, rows, FileCopyStage(location, context.access), require_copied)


class FileCopyStage(Stage):
    """Stage that verifies the hash of a row's file and copies the file to the name in the row's key."""

    resources = WorkerResources(in_flight=_AT_ONCE)

    def __init__(self, location: StorageLocation, access: ClipAccessSettings) -> None:
        self._target, self._access = location, access

    def __call__(self, row: Row) -> Row:
        name = row["key"]
        if self._target.size(name) == row["size_bytes"]:
            return row  # writes are atomic, and names contain the clip's hash
        with provide_local_clip_file(row["location"], self._access) as file:
            if not file.is_file() or compute_clip_id(file) != row["clip"]:
                return convert_to_failed_row(row, Failure(FailureReason.CLIP_CHANGED, _CHANGED))
            self._target.put(name, file, published=True)
        return row
