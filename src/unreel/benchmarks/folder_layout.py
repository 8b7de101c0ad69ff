"""Reader of benchmarks in two folders: `real/` and `generated/<creator>/`."""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from unreel.benchmarks import cells
from unreel.benchmarks.cells import FOLDER_DEPTH
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.layout import LayoutReader
from unreel.benchmarks.table_entries import UNKNOWN_CREATOR
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.settings import read_environment_settings

REAL = "real"
GENERATED = "generated"
VIDEO_SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".ts", ".gif", ".m4v")
LINKED = "a symbolic link, which is not followed. Put the file or folder itself there"
LEADS_OUT = (
    "behind a symbolic link that leads out of the benchmark's folder. Put the file itself there"
)
_MAX_FOLDERS = 10_000
_HUB_REPOSITORY = re.compile(r"(datasets|models)--[^/]+--[^/]+")
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})


def read_folder_benchmark(root: Path) -> Iterator[Row]:
    """Yield one entry per video below `real/`, then `generated/`, in the order of the paths.

    `generated/Veo/x.mp4` has the creator `Veo`, and `generated/Veo/text/x.mp4` the creator `Veo`
    with the setting `text`. A video directly below `generated/` has an unknown creator. Files of
    other types are skipped. Raise `UnreadableSourceError` if both directories are missing.
    """
    if not ((root / REAL).is_dir() or (root / GENERATED).is_dir()):
        raise UnreadableSourceError(
            str(root),
            f"no folder {REAL}/ or {GENERATED}/",
            f"Put filmed clips below {REAL}/ and others below {GENERATED}/CREATOR/",
        )
    for folder in (REAL, GENERATED):
        for video in walk_videos(root, folder):
            if isinstance(video, Rejected):
                yield video
                continue
            try:
                path = cells.require_printable_path(video)
            except InvalidValueError as error:
                yield Rejected(cells.format_untrusted_name(video), str(error))
                continue
            # real/..., generated/..., generated/CREATOR/... or generated/CREATOR/SETTING/...
            top, *between = PurePosixPath(path).parts[:-1]
            creator, *setting = between or [UNKNOWN_CREATOR]
            generated = Generated(creator=creator, setting="/".join(setting))
            yield Entry(name=path, location=path, origin=Real() if top == REAL else generated)


def walk_videos(root: Path, below: str = "") -> Iterator[str | Rejected]:
    """Yield the paths of the videos below `root` or its folder `below`, sorted within each folder.

    Paths are relative to `root`. Hidden files are skipped. A symbolic link is rejected and never
    followed, because its target may be any file; except the links of the hub's cache to its blobs. Raise `UnreadableSourceError` if there are too
    many files, or too deep folders.
    """
    max_files = read_environment_settings().table_rows
    for number, path in enumerate(_iter_video_paths(root, below, 0), start=1):
        if number > max_files:
            raise UnreadableSourceError(
                str(root / below),
                f"more than {max_files} files",
                "Split it, or raise UNREEL_TABLE_ROWS",
            )
        if path is not None:
            yield path


def _iter_video_paths(root: Path, below: str, depth: int) -> Iterator[str | Rejected | None]:
    """Yield videos as `walk_videos` does, and `None` per skipped file, which counts towards the limit."""
    folder = root / below
    if below and folder.is_symlink():
        yield Rejected(below, LINKED)
        return
    if not folder.is_dir():
        return
    if depth > FOLDER_DEPTH:
        raise UnreadableSourceError(
            str(root),
            f"more than {FOLDER_DEPTH} folders inside each other",
            "Name a folder further down",
        )
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.name.startswith(".") or entry.name == "__MACOSX":
            yield None
        elif entry.is_dir(follow_symlinks=False) or (
            entry.is_symlink() and Path(entry.path).is_dir()
        ):
            yield from _iter_video_paths(root, path, depth + 1)
        elif not path.lower().endswith(VIDEO_SUFFIXES):
            yield None
        elif entry.is_symlink():
            is_blob = _find_hub_blobs(root.resolve()) and is_path_inside(Path(entry.path), root)
            yield path if is_blob else Rejected(path, LINKED)
        else:
            yield path


def reject_outside_links(rows: Iterable[Row], root: Path) -> Iterator[Row]:
    """Yield `rows`; an entry whose file is behind a link that leads out of `root` is rejected."""
    inside = _InsideRootChecker(root)
    for row in rows:
        if isinstance(row, Rejected):
            yield row
            continue
        locations = [row.location] if row.cleaned is None else [row.location, row.cleaned]
        out = next((location for location in locations if not inside(location)), None)
        yield (
            row
            if out is None
            else Rejected(row.name, f"{cells.format_untrusted_cell(out)} is {LEADS_OUT}")
        )


def is_path_inside(path: Path, root: Path) -> bool:
    """Return whether `path`, with all links followed, is `root` or inside it; False for endless links.

    In a snapshot of the cache of the Hugging Face hub, whose files are links, the blobs of the same
    repository are inside.
    """
    try:
        target, folder = path.resolve(), root.resolve()
    except (OSError, RuntimeError):  # the name is too long, or links form a loop
        return False
    blobs = _find_hub_blobs(folder)
    return target.is_relative_to(folder) or (blobs is not None and target.parent == blobs)


def _find_hub_blobs(folder: Path) -> Path | None:
    """Return the folder of the blobs if `folder` is in a snapshot of the hub's cache; else `None`."""
    for snapshot in (folder, *folder.parents):
        repository = snapshot.parent.parent
        if snapshot.parent.name == "snapshots" and _HUB_REPOSITORY.match(repository.name):
            blobs = repository / "blobs"
            return None if blobs.is_symlink() else blobs
    return None


def find_file_inside_folder(root: Path, name: str) -> Path | None:
    """Return the path of the file `name` in the folder `root`; `None` if it is missing.

    Raise `UnreadableSourceError` if the file is a link that leads out of the folder.
    """
    path = root / name
    if not path.is_file():
        return None
    if not is_path_inside(path, root):
        raise UnreadableSourceError(
            str(path), "a symbolic link that leads out of its folder", "Name the table itself"
        )
    return path


class _InsideRootChecker:
    """Callable that returns whether a file location is inside the folder `root`; it caches folders."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._prefix = str(self._root / "x").removesuffix("x")
        self._folders: dict[str, bool] = {}

    def __call__(self, location: str) -> bool:
        if cells.is_url(location):
            return True
        folder = location.rpartition("/")[0]
        known = self._folders.get(folder)
        if known is None:
            if len(self._folders) > _MAX_FOLDERS:
                self._folders.clear()
            known = self._folders[folder] = is_path_inside(self._root / folder, self._root)
        path = f"{self._prefix}{location}"
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except OSError as error:
            is_link = error.errno not in _NO_FILE
        except ValueError:  # the path is invalid, for example with a null character
            is_link = False
        return known and (not is_link or is_path_inside(Path(path), self._root))


LAYOUT = LayoutReader(
    matches=lambda path, _mapping: (path / REAL).is_dir() and (path / GENERATED).is_dir(),
    read=lambda path, _mapping, _outside: read_folder_benchmark(path),
    tables=(),
)
