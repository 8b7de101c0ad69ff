"""Media of a frozen benchmark: the list of files, their names, and the workers that copy them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import clip_id
from unreel.core.output_files import OutputDirectory
from unreel.curation.freeze.manifest import picture_name, published_name
from unreel.curation.piece import ClipSegment, MadeFile
from unreel.curation.sorted_runs import read_runs
from unreel.curation.step import CurationContext
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row, Stage, WorkerResources, has_failed, to_failed_row
from unreel.engine.storage_access import StorageAccess, local_copy

COPY: Final = "copy"
_AT_ONCE: Final = 4
"""Files that one worker copies at once."""
_CHANGED: Final = "the file is not the one that was ingested"


def iter_clip_files(
    piece: ClipSegment, split: str, *, in_place: bool
) -> Iterator[tuple[str, MadeFile]]:
    """Yield a clip, its cleaned copy and its first frame, each with its published name."""
    for clip in (piece.clip, piece.cleaned):
        if clip is not None:
            size_bytes = clip.facts.size_bytes
            made = MadeFile(sha256=clip.id, location=clip.location, size_bytes=size_bytes)
            name = published_name(clip, in_place=in_place)
            yield name if in_place else f"{split}/{name}", made
    picture = piece.first_frame
    if picture is not None:
        yield picture.location if in_place else f"{split}/{picture_name(piece)}", picture


@dataclass(frozen=True, slots=True)
class BenchmarkMedia:
    """All media of a benchmark in the order of their names, however many there are."""

    folder: OutputDirectory
    runs: tuple[str, ...]

    def __iter__(self) -> Iterator[tuple[str, MadeFile]]:
        before = None
        for name, sha256, location, size_bytes in read_runs(self.folder, self.runs):
            if name != before:
                yield name, MadeFile(sha256=sha256, location=location, size_bytes=size_bytes)
            before = name

    def strays(self, names: Iterator[str]) -> Iterator[str]:
        """Yield the names in the sorted `names` that are not media of this benchmark."""
        own = (name for name, _ in self)
        mine = next(own, None)
        for name in names:
            while mine is not None and mine < name:
                mine = next(own, None)
            if name != mine:
                yield name


def copy_media(media: BenchmarkMedia, target: StorageLocation, bench: CurationContext) -> None:
    """Let workers copy all media to the published location; existing files are skipped.

    Raises:
        UnreadableSourceError: A file cannot be copied, or differs from the ingested one; later
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
    bench.put_through(COPY, rows, CopyStage(target, bench.access), _require_copied)


def _require_copied(row: Row) -> None:
    if not has_failed(row):
        return
    problem, remedy = row["failure_detail"], "Put it back, or run again"
    if row["failure_reason"] != FailureReason.CLIP_CHANGED:
        problem, remedy = f"cannot be copied: {problem.rstrip('.')}", "Fix that, and run again"
    raise UnreadableSourceError(row["location"], problem, remedy)


class CopyStage(Stage):
    """Copies a file under the name that its row has for a key."""

    resources = WorkerResources(in_flight=_AT_ONCE)

    def __init__(self, target: StorageLocation, access: StorageAccess) -> None:
        self._target, self._access = target, access

    def __call__(self, row: Row) -> Row:
        name = row["key"]
        if self._target.size(name) == row["size_bytes"]:
            return row  # a put is whole or not there, and its name is its content
        with local_copy(row["location"], self._access) as file:
            if not file.is_file() or clip_id(file) != row["clip"]:
                return to_failed_row(row, Failure(FailureReason.CLIP_CHANGED, _CHANGED))
            self._target.put(name, file, published=True)
        return row
