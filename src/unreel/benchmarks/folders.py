"""Benchmarks that are two folders: `real/` and `generated/<creator>/`."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.records import UNKNOWN_CREATOR
from unreel.core.clip import Generated, Origin, Real
from unreel.core.errors import InvalidValueError

REAL: Final = "real"
GENERATED: Final = "generated"
VIDEO_SUFFIXES: Final = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".ts", ".gif", ".m4v")


def read_folders(root: Path) -> Iterator[Row]:
    """One entry for each video below `real/`, then `generated/`, in the order of their paths.

    `generated/Veo/x.mp4` was made by `Veo`, `generated/Veo/text/x.mp4` in its setting `text`; a
    video directly below `generated/` has an unknown creator. Files of other kinds are passed over.
    """
    for side in (REAL, GENERATED):
        for path in walk_videos(root / side):
            relative = path.relative_to(root).as_posix()
            try:
                place = cells.location(relative, "path")
            except InvalidValueError as error:
                yield Rejected(cells.show_cell(relative).strip("'\""), str(error))
                continue
            yield Entry(name=place, location=place, origin=_origin(place))


def walk_videos(folder: Path) -> Iterator[Path]:
    """The videos below `folder`, folder by folder and sorted; hidden files are passed over."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        if path.is_dir():
            yield from walk_videos(path)
        elif path.suffix.lower() in VIDEO_SUFFIXES:
            yield path


def _origin(place: str) -> Origin:
    side, *between = PurePosixPath(place).parts[:-1]
    if side == REAL:
        return Real()
    creator, *setting = between or [UNKNOWN_CREATOR]
    return Generated(creator=creator, setting="/".join(setting))
