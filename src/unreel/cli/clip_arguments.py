"""Arguments of commands that name clips: a click parameter type, and the clips to review."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import click

from unreel.core.errors import UnreadableSourceError
from unreel.core.safe_names import make_safe_file_name


class ClipPathParamType(click.Path):
    """Click type of a clip's path; it rejects URLs and accepts missing files, which commands report."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" in str(value):
            raise UnreadableSourceError(
                str(value),
                "is a URL, not a file, and only local clips are opened",
                _format_download_advice(str(value)),
            )
        return super().convert(value, param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipBatch:
    """Clips that one call of `unreel review` reviews."""

    files: tuple[Path, ...]
    n_skipped_links: int = 0
    """Number of symbolic links in folders, which are not followed."""
    has_index: bool = False
    """Whether an index page is written: for several clips, or for a folder."""


def collect_clip_batch(typed: Sequence[Path], *, out: Path | None) -> ClipBatch:
    """Return the clips to review: the files in `typed`, and all videos in each folder in `typed`.

    Videos in the output folder `out` are excluded, because an earlier review wrote them.

    Raises:
        UnreadableSourceError: A folder in `typed` contains no video.
    """
    from unreel.benchmarks.entry import Rejected
    from unreel.benchmarks.folder_layout import walk_videos

    written = None if out is None else out.resolve()
    files: dict[Path, None] = {}
    n_links = 0
    for path in typed:
        if not path.is_dir():
            files[path] = None
            continue
        rows = list(walk_videos(path))
        n_links += sum(isinstance(row, Rejected) for row in rows)
        videos = [path / row for row in rows if isinstance(row, str)]
        inputs = [v for v in videos if written is None or written not in v.resolve().parents]
        if not inputs:
            raise UnreadableSourceError(
                str(path),
                f"no video is in this folder, and {len(rows)} symbolic links are not followed",
                "Name a folder with video files, or the files themselves",
            )
        files.update(dict.fromkeys(inputs))
    has_index = len(files) > 1 or any(path.is_dir() for path in typed)
    return ClipBatch(files=tuple(files), n_skipped_links=n_links, has_index=has_index)


def _format_download_advice(address: str) -> str:
    from unreel.benchmarks.folder_layout import VIDEO_SUFFIXES

    scheme, _, path, _, _ = urlsplit(address)
    name, source = make_safe_file_name(PurePosixPath(path).name).lstrip("-"), shlex.quote(address)
    if not name.lower().endswith(VIDEO_SUFFIXES):
        return (
            "Download it first: save the video that the page shows as a file, then name that file"
        )
    fetch = "aws s3 cp {source} {file}" if scheme == "s3" else "curl -L -o {file} {source}"
    return f"Download it first: {fetch.format(source=source, file=name)}, then name {name}"
