"""Annotation formats: their readers and writers, detection of a file's format, and conversion."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from unreel.annotation.formats.annotated_video import AnnotatedVideo, Found, VideoPropertyDefaults
from unreel.annotation.formats.untrusted_input import get_first_nonblank_byte
from unreel.benchmarks.entry import Rejected
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory, open_regular_user_file
from unreel.core.registry import LazyImport

_HEAD: Final = 1 << 20
_SEEN: Final = 200
"""Maximum number of rejected items in the result; all are counted."""

Reader = Callable[[Path, VideoPropertyDefaults], Iterator[Found]]
Writer = Callable[[Iterable[AnnotatedVideo], OutputDirectory], Iterator[Rejected]]


class AnnotationFormat(StrEnum):
    """File format of video annotations, named after its tool."""

    CVAT = "cvat"
    LABELBOX = "labelbox"
    LABEL_STUDIO = "label-studio"
    UNREEL = "unreel"


_HERE: Final = "unreel.annotation.formats"
READERS: Final[Mapping[AnnotationFormat, LazyImport]] = {
    AnnotationFormat.CVAT: LazyImport(f"{_HERE}.cvat:read_cvat"),
    AnnotationFormat.LABELBOX: LazyImport(f"{_HERE}.labelbox:read_labelbox"),
    AnnotationFormat.LABEL_STUDIO: LazyImport(f"{_HERE}.label_studio:read_label_studio"),
    AnnotationFormat.UNREEL: LazyImport(f"{_HERE}.benchmark_metadata:read_trace_metadata"),
}
WRITERS: Final[Mapping[AnnotationFormat, LazyImport]] = {
    AnnotationFormat.CVAT: LazyImport(f"{_HERE}.cvat:write_cvat"),
    AnnotationFormat.LABELBOX: LazyImport(f"{_HERE}.labelbox:write_labelbox"),
    AnnotationFormat.LABEL_STUDIO: LazyImport(f"{_HERE}.label_studio:write_label_studio"),
    AnnotationFormat.UNREEL: LazyImport(f"{_HERE}.benchmark_metadata:write_trace_metadata"),
}
_SIGNS: Final = (
    (b'"data_row"', AnnotationFormat.LABELBOX),
    (b'"annotations"', AnnotationFormat.LABEL_STUDIO),
    (b'"file_name"', AnnotationFormat.UNREEL),
    (b'"traces"', AnnotationFormat.UNREEL),
)
"""Strings near the beginning of a file that identify its format, the most reliable first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatConversionResult:
    """Result of converting an annotation file: formats, output folder, counts and rejected items."""

    read_as: AnnotationFormat
    written_as: AnnotationFormat
    folder: Path
    n_videos: int
    n_tracks: int
    n_rejected: int
    rejected: tuple[Rejected, ...]
    """First rejected items, at most `_SEEN`."""


def detect_annotation_format(path: Path) -> AnnotationFormat:
    """Return the annotation format of the file at `path`, detected from its content.

    Raises:
        UnreadableSourceError: The file cannot be read, is a ZIP archive, or has an unknown format.
    """
    try:
        with open_regular_user_file(path) as file:
            head = file.read(_HEAD)
    except OSError as error:
        problem = error.strerror or "unreadable"
        raise UnreadableSourceError(str(path), problem, "Name a file that you may read") from error
    if head.startswith(b"PK"):
        problem = "a ZIP archive"
        raise UnreadableSourceError(str(path), problem, "Unpack it and name the file in it")
    letter = get_first_nonblank_byte(head)
    if letter == b"<":
        return AnnotationFormat.CVAT
    if letter in (b"[", b"{"):
        for sign, format_ in _SIGNS:
            if sign in head:
                return format_
    known = ", ".join(known_format.value for known_format in AnnotationFormat)
    raise UnreadableSourceError(str(path), "in no format that is known", f"Say --from: {known}")


def convert_annotation_file(
    path: Path,
    *,
    read_as: AnnotationFormat | None,
    written_as: AnnotationFormat,
    folder: OutputDirectory,
    defaults: VideoPropertyDefaults,
) -> FormatConversionResult:
    """Convert the annotation file at `path` to another format, and write the result into `folder`.

    Args:
        path: Annotation file.
        read_as: Format of the file; None detects it.
        written_as: Format of the result.
        folder: Empty output folder.
        defaults: Values for properties that the file does not contain.

    Raises:
        UnreadableSourceError: The file cannot be read, or its format is unknown.
        InvalidSettingError: The output folder is not empty.
    """
    source = read_as or detect_annotation_format(path)
    if not path.is_file():
        raise UnreadableSourceError(str(path), "no file", "Name a file that you may read")
    if any(folder.root.glob("*")):
        setting, problem = "--out", f"{folder.root} is not empty"
        raise InvalidSettingError(setting, problem, "Name a new folder")
    counts: Counter[str] = Counter()
    rejected: list[Rejected] = []

    def reject(row: Rejected) -> None:
        counts["rejected"] += 1
        if len(rejected) < _SEEN:
            rejected.append(row)

    def videos() -> Iterator[AnnotatedVideo]:
        for video in READERS[source].load()(path, defaults):
            if isinstance(video, Rejected):
                reject(video)
                continue
            counts["videos"] += 1
            counts["tracks"] += len(video.tracks)
            yield video

    for row in WRITERS[written_as].load()(videos(), folder):
        reject(row)
    return FormatConversionResult(
        read_as=source,
        written_as=written_as,
        folder=folder.root,
        n_videos=counts["videos"],
        n_tracks=counts["tracks"],
        n_rejected=counts["rejected"],
        rejected=tuple(rejected),
    )
