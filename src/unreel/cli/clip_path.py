"""A clip as it is typed: a file of this machine. An address is refused with what to do instead."""

import shlex
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import click

from unreel.core.errors import UnreadableSourceError
from unreel.core.names import plain_name


class ClipPath(click.Path):
    """Takes paths, there or not: a file that cannot be read is a failure of its own, beside the others."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" in str(value):
            problem = "is an address, not a file, and clips are opened from this machine alone"
            raise UnreadableSourceError(str(value), problem, _download(str(value)))
        return super().convert(value, param, ctx)


def _download(address: str) -> str:
    from unreel.benchmarks.folders import VIDEO_SUFFIXES

    scheme, _, place, _, _ = urlsplit(address)
    name, source = plain_name(PurePosixPath(place).name).lstrip("-"), shlex.quote(address)
    if not name.lower().endswith(VIDEO_SUFFIXES):
        return (
            "Download it first: save the video that the page shows as a file, then name that file"
        )
    fetch = "aws s3 cp {source} {file}" if scheme == "s3" else "curl -L -o {file} {source}"
    return f"Download it first: {fetch.format(source=source, file=name)}, then name {name}"
