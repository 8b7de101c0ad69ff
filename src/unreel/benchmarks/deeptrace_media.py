"""DeepTraceReward's video files: in folders, or in `videos.zip.001..004` and `real_videos.zip`."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import ZipInfo

from unreel.benchmarks import cells
from unreel.benchmarks.archives import extract_member, find_parts, is_junk, open_archive
from unreel.benchmarks.deeptrace import load_rows
from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.folders import walk_videos
from unreel.core.errors import InvalidValueError, UnsafeTargetError
from unreel.core.writing import OutputDirectory

FOLDERS: Final[Mapping[str, str]] = {"videos": "videos.zip", "real_videos": "real_videos.zip"}
MEMBER_BYTES: Final = 1 << 30
"""No clip of the benchmark comes near one GiB."""
TOTAL_BYTES: Final = 64 << 30
"""Three times the size of the whole benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaReport:
    """Match between the files and the rows of the benchmark."""

    n_present: int
    """Files that rows name and that are there, in a folder or in an archive."""
    missing: tuple[str, ...]
    """Files that rows name and that are nowhere."""
    unnamed: tuple[str, ...]
    """Videos that no row names."""
    refused: tuple[Rejected, ...]
    """Links, and members of archives that cannot lie where they say."""
    n_junk: int
    """Members that are no media: folders, and what macOS leaves behind."""


def compare_media(root: Path) -> MediaReport:
    """Hold the files below `root` against the rows of `all_data.json`; nothing is unpacked."""
    named = named_locations(root)
    found: set[str] = set()
    refused: list[Rejected] = []
    n_junk = 0
    for folder, archive in FOLDERS.items():
        for video in walk_videos(root, folder):
            if isinstance(video, Rejected):
                refused.append(video)
            else:
                found.add(video)
        index = _index(root, archive=archive, folder=folder)
        found.update(index.members)
        refused.extend(index.refused)
        n_junk += index.n_junk
    return MediaReport(
        n_present=len(named & found),
        missing=tuple(sorted(named - found)),
        unnamed=tuple(sorted(found - named)),
        refused=tuple(refused),
        n_junk=n_junk,
    )


def extract_media(
    root: Path,
    *,
    into: Path,
    locations: Collection[str] | None = None,
    max_member_bytes: int = MEMBER_BYTES,
    max_total_bytes: int = TOTAL_BYTES,
) -> Iterator[Path | Rejected]:
    """Extract the archives of `root`, one file at a time, to `into/<location>`.

    Only files named by a row are extracted, or those of them in `locations`. Existing files are not
    changed. A file that cannot be extracted is a `Rejected`.
    """
    wanted = named_locations(root) if locations is None else set(locations) & named_locations(root)
    left, folder_into = max_total_bytes, OutputDirectory(into)
    for folder, name in FOLDERS.items():
        index = _index(root, archive=name, folder=folder)
        members = {place: index.members[place] for place in index.members if place in wanted}
        if not members:
            continue
        with open_archive(index.parts) as archive:
            for place, member in members.items():
                limit = min(max_member_bytes, left)
                try:
                    if folder_into.size(place) is not None:
                        continue
                    target = extract_member(
                        archive, member, into=folder_into, name=place, max_bytes=limit
                    )
                except (InvalidValueError, UnsafeTargetError) as error:
                    yield Rejected(place, str(error))
                    continue
                left -= target.stat().st_size
                yield target


def named_locations(root: Path) -> set[str]:
    """Every path that a row names, sound or not in its other fields."""
    found = set()
    for row in load_rows(root):
        if isinstance(row, Mapping):
            try:
                found.add(cells.location(row.get("video_path"), "video_path"))
            except InvalidValueError:
                continue  # The reader of rows reports it.
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArchiveIndex:
    """Members of one archive."""

    parts: tuple[Path, ...]
    members: Mapping[str, ZipInfo]
    refused: tuple[Rejected, ...]
    n_junk: int


def _index(root: Path, *, archive: str, folder: str) -> _ArchiveIndex:
    members: dict[str, ZipInfo] = {}
    folders: set[str] = set()
    refused: list[Rejected] = []
    n_junk = 0
    parts = find_parts(root, archive)
    if parts:
        with open_archive(parts) as opened:
            for member in opened.infolist():
                if is_junk(member.filename):
                    n_junk += 1
                    continue
                try:
                    place = _place(member.filename, folder)
                    _require_room(place, members, folders)
                except InvalidValueError as error:
                    refused.append(Rejected(cells.show_cell(member.filename), str(error)))
                    continue
                members[place] = member
    return _ArchiveIndex(parts=parts, members=members, refused=tuple(refused), n_junk=n_junk)


def _require_room(place: str, members: Mapping[str, ZipInfo], folders: set[str]) -> None:
    """Refuse a second file in one place, and a file where another member needs a folder."""
    above = [str(folder) for folder in PurePosixPath(place).parents]
    if place in members:
        msg = "the archive has another member of this name. Fetch it again"
        raise InvalidValueError(msg)
    if place in folders or any(folder in members for folder in above):
        msg = "the archive has a file where another member needs a folder. Fetch it again"
        raise InvalidValueError(msg)
    folders.update(above)


def _place(member: str, folder: str) -> str:
    """Return the path of `member` below the benchmark's folder, whether or not the archive contains it."""
    parts = PurePosixPath(cells.location(member, "member")).parts
    below = parts[parts.index(folder) + 1 :] if folder in parts[:-1] else parts
    return "/".join((folder, *below))
