"""Access of workers to the bytes of clips: a local file, or an object in a store."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidValueError, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings, read_storage_options

if TYPE_CHECKING:
    from unreel.engine.downloads import DownloadPolicy

_N_CONNECTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipAccessSettings:
    """Settings with which a worker opens clips; they are pickled to workers and never stored."""

    settings: EnvironmentSettings
    trusted: bool = False
    outside: bool = False
    """Whether tables may name files outside their folder."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the object store that holds clips: see `unreel.engine.location.StorageLocation`."""
    named: tuple[str, ...] = ()
    """Stores from which the job itself reads, in addition to those of the setting `fetch_from`."""

    @property
    def reach(self) -> "DownloadPolicy":
        """Return the locations from which clips may be downloaded, and the limits of downloads."""
        from unreel.engine.allowed_locations import parse_allowed_locations
        from unreel.engine.downloads import DownloadPolicy

        settings = self.settings
        return DownloadPolicy(
            named=(*parse_allowed_locations(settings.fetch_from), *self.named),
            max_bytes=settings.fetch_mb << 20,
            seconds=settings.fetch_seconds,
        )


def compute_file_identity(location: str) -> str:
    """Return a hash of location, size and modification time; of the location only if URL or missing."""
    try:
        stat = os.stat(location)  # noqa: PTH116  a URL is no path and has no such facts
    except OSError:
        return digest("file", location)
    return digest("file", location, str(stat.st_size), str(stat.st_mtime_ns))


def compute_file_name_key(location: str) -> str:
    """Return the table key of a clip file from its name in the benchmark, independent of the folder."""
    return digest("file of a benchmark", location)


def read_size_and_mtime(path: str) -> str:
    """Return a file's size and modification time, which change if it is replaced; "" if missing."""
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):
        return ""
    return f"{stat.st_size} {stat.st_mtime_ns}"


def read_object_tags(locations: Sequence[str], access: ClipAccessSettings) -> dict[str, str]:
    """Return the size and ETag of each object, which change if it is replaced; "" if it is missing.

    Objects behind `http://` and `https://`, and those in locations that are not allowed, are not
    queried and get "". Raise `MachineError` if the store does not answer.
    """
    from unreel.engine.allowed_locations import require_allowed_location
    from unreel.engine.location import StorageLocation, read_object_tag

    named = access.reach.named

    def ask(location: str) -> str:
        if not location.startswith("s3://"):
            return ""
        try:
            require_allowed_location(location, named)
        except InvalidValueError:
            return ""
        return read_object_tag(StorageLocation(location, access.storage))

    with ThreadPoolExecutor(_N_CONNECTIONS) as pool:
        return dict(zip(locations, pool.map(ask, locations), strict=True))


def find_clip_change(clip: str, file: Path) -> Failure | None:
    """Return a failure if the bytes at `file` differ from those of `clip`, else `None`; call after use."""
    try:
        same = file.is_file() and compute_clip_id(file) == clip
    except OSError as error:
        raise_if_machine_error(error)
        same = False
    if same:
        return None
    return Failure(FailureReason.CLIP_CHANGED, "the bytes are not those that were surveyed")


@contextmanager
def provide_local_clip_file(location: str, access: ClipAccessSettings) -> Iterator[Path]:
    """Yield the path of the clip as a local file: the clip itself, or a temporary copy from its object store.

    Raise `MediaError` if the location is not allowed, or the clip cannot be fetched.
    """
    if "://" not in location:
        yield Path(location)
        return
    from unreel.engine.downloads import download_file

    with NamedTemporaryFile(prefix="unreel-") as copy:
        download_file(location, copy.file, policy=access.reach, storage=access.storage)
        yield Path(copy.name)


def build_clip_access_settings(
    settings: EnvironmentSettings, *, trusted: bool = False, outside: bool = False
) -> ClipAccessSettings:
    """Return the settings to open clips; options of the object store come from environment variables."""
    storage = read_storage_options(settings)
    return ClipAccessSettings(settings=settings, trusted=trusted, outside=outside, storage=storage)
