"""Names of the files that converted videos are written to."""

import itertools
from collections.abc import Iterable, Iterator

from unreel.annotation.formats.document import ForeignVideo
from unreel.core.names import plain_name


def file_names(videos: Iterable[ForeignVideo], suffix: str) -> Iterator[tuple[ForeignVideo, str]]:
    """Each video with the name of its own file: two videos of one name get two files."""
    taken: set[str] = set()
    for video in videos:
        stem = plain_name(video.name)
        # Some file systems take capitals and small letters for the same.
        names = (stem if n == 1 else f"{stem}-{n}" for n in itertools.count(1))
        name = next(name for name in names if name.casefold() not in taken)
        taken.add(name.casefold())
        yield video, f"{name}.{suffix}"
