"""`open_benchmark` and `open_media`: what is judged, and its frames, from Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from unreel.benchmarks import opening
from unreel.benchmarks.opening import Benchmark
from unreel.core.settings import read_settings
from unreel.media.access import media_reader, require_protection
from unreel.media.reader import MediaReader


def open_benchmark(
    path: str | Path, layout: str | None = None, *, mapping: Mapping[str, str] | None = None
) -> Benchmark:
    """The benchmark at `path`, a folder or a table: iterate over it for its entries.

    `layout` names how it lies on disk, where that is not found by itself; `mapping` names the columns
    of a table that has names of its own.

    Raises:
        UnreadableSourceError: No layout fits, or several do and none is named.
    """
    return opening.open_benchmark(Path(path), layout, mapping=mapping)


@contextmanager
def open_media(*, trusted: bool = False) -> Iterator[MediaReader]:
    """A reader of video files: facts, frames at exact instants, sound.

    `trusted` opens files in this process; by default a confined child does.
    """
    settings = read_settings()
    require_protection(settings, trusted=trusted)
    with media_reader(settings, trusted=trusted, at_once=True) as reader:
        yield reader
