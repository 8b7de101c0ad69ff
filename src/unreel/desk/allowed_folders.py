"""Folders on this machine from which `desk.toml` allows clips to be added, and their clips."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

from unreel.benchmarks.folder_layout import walk_videos
from unreel.core.errors import InvalidValueError, UnreelError, UnsafeTargetError
from unreel.core.output_files import OutputDirectory
from unreel.webapp.refusals import InvalidRequestError

_MAX_FOLDERS = 200
_REUSED_S = 1.0
"""Time for which a list of folders is reused, so that many views of the start page need one search."""


def list_clip_folders(roots: Sequence[Path]) -> list[str]:
    """Return the paths of all folders below `roots` that contain clips; links are not followed."""
    return _list_clip_folders(tuple(roots), time.monotonic() // _REUSED_S)


@lru_cache(maxsize=1)
def _list_clip_folders(roots: tuple[Path, ...], _period: float) -> list[str]:
    paths: set[str] = set()
    for root in roots:
        with suppress(UnreelError, OSError):  # a root that is missing, unreadable or too large
            paths.update(str((root / name).parent) for name in _iter_clip_names(root))
    return sorted(paths)[:_MAX_FOLDERS]


def iter_folder_clips(
    roots: Sequence[Path], folder: str, *, limit: int
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the open file of each clip below `folder`, at most `limit` clips.

    An empty `folder` yields nothing.

    Raises:
        RequestRefusedError: `folder` is not one of the folders below `roots`.
    """
    if not folder:
        return
    if folder not in list_clip_folders(roots):
        raise InvalidRequestError("Choose a folder of the page")
    for name in islice(_iter_clip_names(Path(folder)), limit):
        with suppress(InvalidValueError, UnsafeTargetError, OSError):  # removed, or now a link
            file = OutputDirectory(Path(folder)).read(name)
            yield PurePosixPath(name).name, file


def _iter_clip_names(folder: Path) -> Iterator[str]:
    return (name for name in walk_videos(folder) if isinstance(name, str))
