"""How workers come to a clip's bytes: a file of this machine, or an object of a store."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a worker needs to open clips; it travels to workers and is never stored."""

    settings: Settings
    trusted: bool = False
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the object store that holds clips: see `unreel.engine.place.Place`."""


def file_mark(location: str) -> str:
    """Identity of the file as it lies there now: another size or time of change is another mark."""
    try:
        found = os.stat(location)  # noqa: PTH116  a URL is no path and has no such facts
    except OSError:
        return digest("file", location)
    return digest("file", location, str(found.st_size), str(found.st_mtime_ns))


@contextmanager
def local_copy(location: str, access: Access) -> Iterator[Path]:
    """The clip as a file: itself, or a copy from its store for as long as it is needed.

    Raises:
        MediaError: The store has no such object, or cannot be reached.
    """
    if "://" not in location:
        yield Path(location)
        return
    from unreel.engine.place import Place, fetch

    with NamedTemporaryFile(prefix="unreel-") as copy:
        try:
            fetch(Place(location, access.storage), into=Path(copy.name))
        except OSError as error:
            raise MediaError(Failure(FailureReason.NOT_A_FILE, str(error))) from error
        yield Path(copy.name)
