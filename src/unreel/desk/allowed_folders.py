"""Folders of this machine from which `desk.toml` allows clips to be added, and their clips."""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Final

from unreel.benchmarks.folder_layout import walk_videos
from unreel.core.errors import InvalidValueError, UnreelError, UnsafeTargetError
from unreel.core.output_files import OutputDirectory
from unreel.webapp.refusals import RequestRefusedError

_MOST_FOLDERS: Final = 200
_LISTED_S: Final = 10.0
"""Time for which a list of folders is used again: every view of the start page shows it."""


def list_clip_folders(roots: Sequence[Path]) -> list[str]:
    """Return the paths of all folders below `roots` that contain clips; links are not followed."""
    return _list_clip_folders(tuple(roots), time.monotonic() // _LISTED_S)


@lru_cache(maxsize=1)
def _list_clip_folders(roots: tuple[Path, ...], _period: float) -> list[str]:
    found: dict[str, None] = {}
    for root in roots:
        try:
            for name in walk_videos(root):
                if isinstance(name, str):
                    found[str(root / PurePosixPath(name).parent)] = None
        except UnreelError:
            continue  # a root that is gone, or too large to list
    return sorted(found)[:_MOST_FOLDERS]


def iter_folder_clips(
    roots: Sequence[Path], folder: str, *, most: int
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the open file of each clip below `folder`, at most `most` clips.

    An empty `folder` yields nothing.

    Raises:
        RequestRefusedError: `folder` is not one of the folders below `roots`.
    """
    if not folder:
        return
    if folder not in list_clip_folders(roots):
        raise RequestRefusedError(422, "invalid", "Choose a folder of the page")
    chosen = Path(folder)
    names = (name for name in walk_videos(chosen) if isinstance(name, str))
    for name in islice(names, most):
        try:
            yield PurePosixPath(name).name, OutputDirectory(chosen).read(name)
        except (InvalidValueError, UnsafeTargetError, OSError):
            continue  # it went away, or became a link
