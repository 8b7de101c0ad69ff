"""Media files of a frozen benchmark: published names, parallel copies, and first frames as JPEG."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import ClipId
from unreel.core.content_ids import compute_bytes_clip_id, compute_clip_id
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import read_clip_id
from unreel.curation.freeze.manifest import build_first_frame_path, get_manifest_file_name
from unreel.curation.recipe import FreezeRecipeSection
from unreel.curation.segment import ClipSegment, FileToPublish, build_hashed_path, filter_segments
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import CurationContext, Given, VersionedCurationStep
from unreel.curation.working_table import merge_sorted_runs
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row, Stage, WorkerResources, convert_to_failed_row, is_failed_row
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.reader import MediaReader, SampledFrame

FIRST_FRAME: Final = "first_frame"
FIRST_FRAME_PLAN: Final = "fps-1/86400"
"""Sampling of one frame per day, which is the first frame of any clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFirstFrame:
    """Stored first frame of a clip: hash, file name and size in bytes."""

    sha256: ClipId
    name: str
    bytes: int


def run_first_frames_step(
    _section: FreezeRecipeSection, work: CurationJob, state: CurationState
) -> CurationState:
    """Store the first frame of every segment as a full-size JPEG, and add it to the segment."""
    step = VersionedCurationStep(name=FIRST_FRAME, version=1, finds=TypeAdapter(StoredFirstFrame))
    media = work.bench.media
    look = partial(_store_first_frame, media=media)
    frames = work.bench.ask(step, state.pieces.subjects(), look)
    pictured = filter_segments(
        FIRST_FRAME, state.pieces, frames, partial(_add_first_frame, media=media)
    )
    return state.after(work.shelf.sift(FIRST_FRAME, pictured))


def read_first_frame(reader: MediaReader, path: Path) -> SampledFrame | Failure:
    """Return the first frame of the clip as a full-size JPEG."""
    sampled = reader.frames(path, sampling=FIRST_FRAME_PLAN)
    return sampled if isinstance(sampled, Failure) else sampled.frames[0]


def _store_first_frame(
    reader: MediaReader, file: Path, _given: Given, *, media: StorageLocation
) -> StoredFirstFrame | Failure:
    frame = read_first_frame(reader, file)
    if isinstance(frame, Failure):
        return frame
    sha256 = compute_bytes_clip_id(frame.data)
    name = build_hashed_path(sha256, ".jpg")
    media.put(name, frame.data)
    return StoredFirstFrame(sha256=sha256, name=name, bytes=len(frame.data))


def _add_first_frame(
    piece: ClipSegment, picture: StoredFirstFrame, *, media: StorageLocation
) -> ClipSegment:
    sha256 = read_clip_id(picture.sha256, FIRST_FRAME)
    location = (media / build_hashed_path(sha256, ".jpg")).uri
    file = FileToPublish(sha256=sha256, location=location, size_bytes=picture.bytes)
    return replace(piece, first_frame=file)


COPY: Final = "copy"
_AT_ONCE: Final = 4
"""Number of files that one worker copies at once."""
_CHANGED: Final = "the file is not the one that was ingested"


def iter_published_files(
    piece: ClipSegment, split: str, *, in_place: bool
) -> Iterator[tuple[str, FileToPublish]]:
    """Yield the files of a segment with their published names: clip, cleaned copy and first frame."""
    for clip in (piece.clip, piece.cleaned):
        if clip is not None:
            size_bytes = clip.facts.size_bytes
            file = FileToPublish(sha256=clip.id, location=clip.location, size_bytes=size_bytes)
            name = get_manifest_file_name(clip, in_place=in_place)
            yield name if in_place else f"{split}/{name}", file
    picture = piece.first_frame
    if picture is not None:
        yield picture.location if in_place else f"{split}/{build_first_frame_path(piece)}", picture


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
    media: BenchmarkMedia, target: StorageLocation, context: CurationContext
) -> None:
    """Let workers copy all media files of the benchmark to `target`; existing files are skipped.

    Raises:
        UnreadableSourceError: A file cannot be copied, or differs from the ingested file; later
            files are not copied.
    """
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
    context.put_through(COPY, rows, FileCopyStage(target, context.access), _require_file_copied)


def _require_file_copied(row: Row) -> None:
    if not is_failed_row(row):
        return
    problem, remedy = row["failure_detail"], "Restore it, or run again"
    if row["failure_reason"] != FailureReason.CLIP_CHANGED:
        problem, remedy = f"cannot be copied: {problem.rstrip('.')}", "Fix that, and run again"
    raise UnreadableSourceError(row["location"], problem, remedy)


class FileCopyStage(Stage):
    """Stage that verifies the hash of a row's file and copies the file to the name in the row's key."""

    resources = WorkerResources(in_flight=_AT_ONCE)

    def __init__(self, target: StorageLocation, access: ClipAccessSettings) -> None:
        self._target, self._access = target, access

    def __call__(self, row: Row) -> Row:
        name = row["key"]
        if self._target.size(name) == row["size_bytes"]:
            return row  # writes are atomic, and names contain the clip's hash
        with provide_local_clip_file(row["location"], self._access) as file:
            if not file.is_file() or compute_clip_id(file) != row["clip"]:
                return convert_to_failed_row(row, Failure(FailureReason.CLIP_CHANGED, _CHANGED))
            self._target.put(name, file, published=True)
        return row
