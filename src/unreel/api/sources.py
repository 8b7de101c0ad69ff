"""`open_benchmark` and `open_media`: benchmarks and frames from Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from unreel.benchmarks import loader
from unreel.benchmarks.loader import Benchmark
from unreel.core.settings import read_environment_settings
from unreel.media.access import open_media_reader
from unreel.media.reader import MediaReader


def open_benchmark(
    path: str | Path,
    *,
    layout: str | None = None,
    mapping: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> Benchmark:
    """Return the benchmark at `path`, a folder or a table: iterate over it for its entries.

    An unusable row is a `Rejected` with its reason.

    Args:
        path: Folder, or table of clips with their ground truth.
        layout: Layout, if several fit: `list`, `folders`, `deeptrace`, ...
        mapping: Columns of a table by field, for example `{"label": "is_fake"}`.
        allow_outside: Let a table name files outside its folder; only for your own tables.

    Raises:
        UnreadableSourceError: No layout fits, or several do and none is named.
        UnknownNameError: No layout has that name.
    """
    return loader.open_benchmark(Path(path), layout, mapping=mapping, outside=allow_outside)


@contextmanager
def open_media(*, trusted: bool = False) -> Iterator[MediaReader]:
    """Open a reader of video files as a context manager: properties, frames at exact timestamps, sound.

    An unreadable part of a file is a `Failure` with its reason, not an error.

    Args:
        trusted: Open files in this process; by default a confined child does.
    """
    with open_media_reader(
        read_environment_settings(), trusted=trusted, at_once=("probe", "frames")
    ) as reader:
        yield reader
