"""Clips seen before: an index of fingerprints, its search, and packs of fingerprints for others."""

import base64
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated

from unreel.api.shared_settings import TrustSettings
from unreel.core.command_options import FILE, NEW_FILE, Option
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import require_extra
from unreel.core.settings import read_environment_settings
from unreel.core.span import convert_to_microseconds

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader
    from unreel.media.seen_index import SeenIndex, SeenMatch

PACK_FORMAT = "unreel seen pack 1"
_MAX_PACK_BYTES = 2 << 30
_MAX_LINE_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True)
class SeenIndexSettings(TrustSettings):
    """Settings of the functions that use an index."""

    index: Annotated[Path | None, NEW_FILE] = None
    """File of the index.  [default: seen.sqlite in UNREEL_STATE, which `unreel review` searches]"""

    @property
    def file(self) -> Path:
        """Return the file of the index."""
        return self.index or read_environment_settings().seen_index


@dataclass(frozen=True, kw_only=True)
class SeenAddSettings(SeenIndexSettings):
    """Settings of `add_seen_clips`."""

    clips: Annotated[tuple[Path, ...], Option(is_argument=True, is_required=True, kind="existing")]
    source: Annotated[str, Option(metavar="NAME")] = ""
    """Name of the collection, which a match shows.  [default: name of the folder or pack]"""
    signers: Annotated[Path | None, FILE] = None
    """Allowed signers of packs, as ssh-keygen reads them. Without it, a pack's signature is checked but not whose it is."""


@dataclass(frozen=True, kw_only=True)
class SeenFindSettings(SeenIndexSettings):
    """Settings of `find_seen_clips`."""

    clips: Annotated[tuple[Path, ...], Option(is_argument=True, is_required=True, kind="clip")]


@dataclass(frozen=True, kw_only=True)
class SeenExportSettings(SeenIndexSettings):
    """Settings of `export_seen_pack`."""

    pack: Annotated[Path, Option(is_argument=True, kind="new file")]
    source: Annotated[str | None, Option(metavar="NAME")] = None
    """Export only the clips of this collection.  [default: all]"""
    sign: Annotated[Path | None, FILE] = None
    """Private SSH key that signs the pack; the signature is written beside it as PACK.sig."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenAddResult:
    """Result of one file or pack that `add_seen_clips` reads."""

    file: str
    n_added: int
    n_known: int
    failure: Failure | None = None
    note: str = ""
    """Result of the check of a pack's signature."""


def add_seen_clips(
    settings: SeenAddSettings, on_files: Callable[[int], None] = lambda _n: None
) -> Iterator[SeenAddResult]:
    """Add the fingerprints of video files, of all videos in folders, and of packs; yield each result.

    A clip whose bytes are in the index is not read again, so the same call continues an interrupted one.
    `on_files` gets the number of video files before the first is read.
    """
    from unreel.benchmarks.folder_layout import walk_videos
    from unreel.media.access import open_media_reader
    from unreel.media.seen_index import SeenIndex

    require_extra(("pdqhash",), "review")
    packs = [path for path in settings.clips if path.name.endswith(".jsonl.gz")]
    files: list[tuple[Path, str]] = []
    for path in settings.clips:
        if path.is_dir():
            videos = (video for video in walk_videos(path) if isinstance(video, str))
            files += [(path / video, settings.source or path.resolve().name) for video in videos]
        elif path not in packs:
            files.append((path, settings.source or path.resolve().parent.name))
    on_files(len(files))
    settings.file.parent.mkdir(parents=True, exist_ok=True)
    environment = read_environment_settings()
    with SeenIndex(settings.file) as index:
        for pack in packs:
            yield _add_pack(pack, index, settings)
        if not files:
            return
        reading = open_media_reader(
            environment, trusted=settings.trusted, at_once=("probe", "frames")
        )
        with reading as reader:
            for file, source in files:
                yield _add_file(file, source, index, reader)


def _add_file(file: Path, source: str, index: "SeenIndex", reader: "MediaReader") -> SeenAddResult:
    from unreel.evaluation.review import probe_clip_file
    from unreel.media.seen_index import hash_clip

    clip = probe_clip_file(file, reader)
    if not isinstance(clip, Failure):
        if clip.id in index:
            return SeenAddResult(file=str(file), n_added=0, n_known=1)
        frames = hash_clip(file, reader)
        if not isinstance(frames, Failure):
            duration_us = convert_to_microseconds(clip.facts.video.duration_s)
            index.add(
                clip.id,
                frames,
                place=str(file.resolve()),
                source=source,
                duration_us=duration_us,
                added_at=datetime.now(UTC),
            )
            return SeenAddResult(file=str(file), n_added=1, n_known=0)
        clip = frames
    return SeenAddResult(file=str(file), n_added=0, n_known=0, failure=clip)


def _add_pack(pack: Path, index: "SeenIndex", settings: SeenAddSettings) -> SeenAddResult:
    """Add the rows of a pack; raise `UnreadableSourceError` for a damaged one, before anything is added."""
    from unreel.core.safe_names import read_clip_id
    from unreel.core.safe_text import sanitise_line
    from unreel.desk.signature import check_signature
    from unreel.media.seen_index import parse_frames

    note = "The pack is not signed."
    signature = pack.with_name(pack.name + ".sig")
    rows = []
    try:
        data = read_limited_bytes(pack, most=_MAX_PACK_BYTES)
        if signature.is_file():
            note = check_signature(
                data, read_limited_bytes(signature, most=1 << 16), settings.signers
            )
        elif settings.signers is not None:
            raise InvalidValueError("it has no signature, and --signers is given")
        with gzip.open(io.BytesIO(data)) as lines:
            head = parse_json_object(lines.readline(_MAX_LINE_BYTES))
            if head.get("format") != PACK_FORMAT:
                raise InvalidValueError(f"its format is not {PACK_FORMAT!r}")
            while line := lines.readline(_MAX_LINE_BYTES):
                row = parse_json_object(line)
                frames = parse_frames(base64.b64decode(row["frames"], validate=True))
                duration_us = row["duration_us"]
                if not isinstance(duration_us, int) or duration_us < 1:
                    raise InvalidValueError(
                        f"duration_us {duration_us!r} is not a positive integer"
                    )
                rows.append((read_clip_id(row["id"], str(pack)), frames, row["name"], duration_us))
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise UnreadableSourceError(
            str(pack), str(error), "Name a file that `unreel seen export` wrote"
        ) from error
    source, n_before = settings.source or pack.name.removesuffix(".jsonl.gz"), len(index)
    for clip_id, frames, name, duration_us in rows:
        index.add(
            clip_id,
            frames,
            place=sanitise_line(str(name)),
            source=source,
            duration_us=duration_us,
            added_at=datetime.now(UTC),
        )
    n_added = len(index) - n_before
    return SeenAddResult(file=str(pack), n_added=n_added, n_known=len(rows) - n_added, note=note)


def find_seen_clips(
    settings: SeenFindSettings,
) -> "Iterator[tuple[Path, Sequence[SeenMatch] | Failure]]":
    """Yield for each video file the clips of the index that it repeats, or the failure to read it."""
    from unreel.evaluation.review import probe_clip_file
    from unreel.media.access import open_media_reader
    from unreel.media.seen_index import SeenIndex

    require_extra(("pdqhash",), "review")
    require_index(settings.file)
    environment = read_environment_settings()
    reading = open_media_reader(environment, trusted=settings.trusted, at_once=("probe", "frames"))
    with SeenIndex(settings.file) as index, reading as reader:
        for file in settings.clips:
            clip = probe_clip_file(file, reader)
            yield file, clip if isinstance(clip, Failure) else index.find(file, clip.id, reader)


def require_index(file: Path) -> None:
    """Raise `InvalidSettingError` if there is no index at `file`."""
    if not file.is_file():
        raise InvalidSettingError(
            "--index", f"{file} does not exist", "Make it: unreel seen add FOLDER"
        )


def export_seen_pack(settings: SeenExportSettings) -> int:
    """Write the fingerprints of an index to a pack, without pictures and folders; return their number."""
    from unreel.desk.signature import sign_manifest
    from unreel.media.seen_index import SeenIndex

    if not settings.pack.name.endswith(".jsonl.gz"):
        raise InvalidSettingError(
            "PACK", f"{settings.pack.name} does not end with .jsonl.gz", "Name it NAME.jsonl.gz"
        )
    require_index(settings.file)
    n_clips = 0
    buffer = io.BytesIO()
    with (
        SeenIndex(settings.file) as index,
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file,
    ):
        file.write(json.dumps({"format": PACK_FORMAT}).encode() + b"\n")
        for clip, frames in index.iter_rows():
            if settings.source not in {None, clip.source}:
                continue
            row = {
                "id": clip.id,
                "name": PurePath(clip.place).name,
                "duration_us": clip.duration_us,
                "frames": base64.b64encode(frames.tobytes()).decode(),
            }
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            n_clips += 1
    output = OutputDirectory(settings.pack.parent, published=True)
    data = buffer.getvalue()
    if settings.sign is not None:
        output.write(settings.pack.name + ".sig", sign_manifest(data, settings.sign))
    output.write(settings.pack.name, data)
    return n_clips
