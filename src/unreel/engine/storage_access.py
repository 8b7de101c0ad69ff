"""Access of workers to a clip's bytes: a local file, or an object in a store."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Final

from unreel.core.errors import InvalidValueError, raise_refusal
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import clip_id, digest
from unreel.core.settings import EnvironmentSettings

if TYPE_CHECKING:
    from unreel.engine.downloads import FetchPolicy

_ASKED_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAccess:
    """Settings with which a worker opens clips; pickled to workers and never stored."""

    settings: EnvironmentSettings
    trusted: bool = False
    outside: bool = False
    """Whether tables may name files outside their folder."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the object store that holds clips: see `unreel.engine.location.StorageLocation`."""
    named: tuple[str, ...] = ()
    """Stores that the job itself reads from, besides those of the setting `fetch_from`."""

    @property
    def reach(self) -> "FetchPolicy":
        """Return the fetch policy."""
        from unreel.engine.allowed_locations import read_places
        from unreel.engine.downloads import FetchPolicy

        settings = self.settings
        return FetchPolicy(
            named=(*read_places(settings.fetch_from), *self.named),
            max_bytes=settings.fetch_mb << 20,
            seconds=settings.fetch_seconds,
        )


def compute_file_mark(location: str) -> str:
    """Return the identity of the present file: another size or modification time is another mark."""
    try:
        found = os.stat(location)  # noqa: PTH116  a URL is no path and has no such facts
    except OSError:
        return digest("file", location)
    return digest("file", location, str(found.st_size), str(found.st_mtime_ns))


def file_key(location: str) -> str:
    """Return the identity of a file by its name in the benchmark, independent of the location."""
    return digest("file of a benchmark", location)


def read_file_state(path: str) -> str:
    """Return a mark that changes if the file is replaced: size and modification time; "" for no file."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"


def read_object_marks(locations: Sequence[str], access: StorageAccess) -> dict[str, str]:
    """Return a mark of each object that changes if it is replaced: size and tag; "" for no object.

    Stores that are not allowed are not queried.

    Raises:
        MachineError: The store does not answer.
    """
    from unreel.engine.allowed_locations import require_named
    from unreel.engine.location import StorageLocation, read_tag

    named = access.reach.named

    def ask(location: str) -> str:
        try:
            require_named(location, named)
        except InvalidValueError:
            return ""
        return read_tag(StorageLocation(location, access.storage))

    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        return dict(zip(locations, pool.map(ask, locations), strict=True))


def find_change(clip: str, file: Path) -> Failure | None:
    """Return the failure of a clip whose bytes at `file` changed since its id was computed.

    Call it after the file was used: then the result belongs to the clip, or this failure replaces
    it.
    """
    try:
        same = file.is_file() and clip_id(file) == clip
    except OSError as error:
        raise_refusal(error)
        same = False
    if same:
        return None
    return Failure(FailureReason.CLIP_CHANGED, "its bytes are not those that were surveyed")


@contextmanager
def local_copy(location: str, access: StorageAccess) -> Iterator[Path]:
    """Provide the clip as a local file: the file itself, or a temporary copy from its object store.

    Raises:
        MediaError: The location is not allowed, or the clip cannot be fetched.
    """
    if "://" not in location:
        yield Path(location)
        return
    from unreel.engine.downloads import fetch

    with NamedTemporaryFile(prefix="unreel-") as copy:
        fetch(location, copy.file, reach=access.reach, storage=access.storage)
        yield Path(copy.name)
