"""Storage locations from a user's text: a local folder, or an S3-compatible store whose errors become messages."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unicodedata import category

import obstore.store
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from unreel.core.content_ids import digest
from unreel.core.errors import (
    GO_ON,
    InvalidSettingError,
    MachineError,
    UnreadableSourceError,
    format_library_error,
)
from unreel.core.input_files import build_too_large_error
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import require_relative_path
from unreel.core.settings import EnvironmentSettings

_REMEDY = f"Check that it runs, its keys and this machine's clock. {GO_ON}"


@contextmanager
def translate_store_errors() -> Iterator[None]:
    """Raise `UnreadableSourceError` for a failed operation of the store within the `with` block."""
    try:
        yield
    except BaseError as error:
        raise UnreadableSourceError("the store", format_library_error(error), _REMEDY) from error


def raise_if_store_unavailable(error: BaseError, uri: str) -> None:
    """Raise if `error` means that the object store itself failed, so that all reads would fail.

    Raise `MachineError` if the error is not one of missing permission or of invalid keys.
    """
    if not isinstance(error, PermissionDeniedError | UnauthenticatedError):
        raise MachineError(f"cannot read {uri}: {format_library_error(error)}", _REMEDY) from error


_RETRY_TIMEOUT_S = 60
"""Seconds for which a store may be unavailable before a run stops; longer than a server needs to restart."""
_TRIES = 1_000
"""Maximum number of retries; delays are random and ten may pass within a second, so the timeout decides."""
_PROBES = 3
_FIRST_RETRY_TIMEOUT_S = 5
"""Timeout in seconds before a run starts, which is shorter because an address may be misspelt."""
_CLIENT_OPTIONS = ("allow_http", "timeout", "connect_timeout")
_NOBODY = {
    "aws_access_key_id": "anonymous",
    "aws_secret_access_key": "anonymous",
    "aws_skip_signature": "true",
}
"""Options for unsigned requests; without any keys, Lance requests some from the machine's metadata service."""
_REGION = "us-east-1"
"""Default region; without a region, Lance also queries the metadata service."""


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """A folder path or an `s3://bucket/prefix`, with the options that open it.

    `options` are Lance's `storage_options`: `aws_endpoint`, `aws_access_key_id`,
    `aws_secret_access_key`, `aws_region`, `allow_http`. They are never stored nor printed. Without
    keys nothing is signed; `aws_skip_signature` = `false` lets the client look for a role of the
    machine instead.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    root: str = field(default="", repr=False, compare=False)
    """URI of the location that the user named, if this one is below it; "" for the named location itself."""

    @property
    def is_local(self) -> bool:
        """Return whether this is a local folder."""
        return "://" not in self.uri

    @property
    def path(self) -> Path:
        """Return the local directory; valid only if `is_local`."""
        return Path(self.uri)

    def __truediv__(self, name: str) -> "StorageLocation":
        below = f"{self.uri.rstrip('/')}/{require_relative_path(name)}"
        return StorageLocation(below, self.options, self.root or self.uri)

    def inside(self, name: str = "") -> tuple[OutputDirectory, str]:
        """Return the folder that the user named, through which all is written, and `name` in it; if `is_local`."""
        above = self.uri.removeprefix(self.root.rstrip("/")).strip("/") if self.root else ""
        return OutputDirectory(Path(self.root or self.uri)), "/".join(filter(None, (above, name)))

    def sibling_file(self, ending: str) -> tuple[OutputDirectory, str]:
        """Return folder and path of the file next to this location, its name plus `ending`; if `is_local`."""
        folder, below = self.inside()
        if below:
            return folder, below + ending
        return OutputDirectory(self.path.parent), self.path.name + ending

    def require_plain(self, *, whole: bool = False) -> None:
        """Raise for a symbolic link from the named folder to here, in it or, with `whole`, at any depth."""
        if self.is_local:
            folder, below = self.inside()
            folder.require_plain(below, whole=whole)

    def put(self, name: str, data: bytes | Path, *, published: bool = False) -> None:
        """Store `data`, bytes or the content of a file, atomically under `name` in this location."""
        if not self.is_local:
            self.objects().put(name, data)
            return
        folder, below = self.inside(name)
        folder = replace(folder, published=published)
        if isinstance(data, Path):
            folder.copy(data, below)
        else:
            folder.write(below, data)

    def read(self, name: str, *, most: int | None = None) -> bytes:
        """Return the bytes of the file `name` in this location.

        Raise `FileNotFoundError` if `name` is missing, or `UnreadableSourceError` if there are more
        than `most` bytes, or the store cannot be read.
        """
        source = f"{self.uri.rstrip('/')}/{name}"
        if self.is_local:
            folder, below = self.inside(name)
            with folder.read(below) as file:
                data = file.read() if most is None else file.read(most + 1)
        else:
            try:
                result = self.objects().get(name)
                if most is not None and result.meta["size"] > most:
                    raise build_too_large_error(source, most)
                data = bytes(result.bytes())
            except BaseError as error:
                raise UnreadableSourceError(
                    source, f"cannot be read: {error}", "Check its address, bucket and keys"
                ) from error
        if most is not None and len(data) > most:
            raise build_too_large_error(source, most)
        return data

    def names(self) -> list[str]:
        """Return the names of all files below this location; a link is included, its target is not."""
        if not self.is_local:
            return [entry["path"] for chunk in self.objects().list() for entry in chunk]
        folder, below = self.inside()
        return folder.files(below)

    def size(self, name: str) -> int | None:
        """Return the number of bytes of the file `name` in this location; `None` if it is missing."""
        if self.is_local:
            folder, below = self.inside(name)
            return folder.size(below)
        try:
            return int(self.objects().head(name)["size"])
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Delete the file or folder `name` in this location."""
        if self.is_local:
            folder, below = self.inside(name)
            folder.remove(below)
        else:
            self.objects().delete(name)

    @property
    def storage_options(self) -> dict[str, str]:
        """Return the options to open a table: `options`, the client's defaults and timeouts."""
        retry_options = {
            "client_max_retries": str(_TRIES),
            "client_retry_timeout": str(_RETRY_TIMEOUT_S),
        }
        return retry_options | self._signed

    @property
    def _signed(self) -> dict[str, str]:
        options = dict(self.options)
        if options.get("aws_skip_signature") == "false":
            return options
        keys = {} if "aws_access_key_id" in options else _NOBODY
        return {"aws_region": _REGION} | options | keys

    def objects(self, *, retry_timeout_s: float = _RETRY_TIMEOUT_S) -> Any:
        """Return the object store at this location, to read and write objects by relative path."""
        if self.is_local:
            return obstore.store.LocalStore(self.path, mkdir=True)
        options = self._signed
        config = {name: text for name, text in options.items() if name not in _CLIENT_OPTIONS}
        client: Any = {name: text for name, text in options.items() if name in _CLIENT_OPTIONS}
        client["allow_http"] = client.get("allow_http", "false") == "true"
        retry_options = {
            "max_retries": _TRIES,
            "retry_timeout": timedelta(seconds=retry_timeout_s),
            "backoff": {"max_backoff": timedelta(seconds=5)},
        }
        # `obstore.store.from_url` would also open local files, and stores with other credentials.
        open_store: Any = obstore.store.S3Store.from_url
        return open_store(
            self.uri, config=config, client_options=client, retry_config=retry_options
        )


def read_object_tag(location: StorageLocation) -> str:
    """Return size and ETag of the object at `location`, which identify its bytes; "" if it is missing.

    Raise `MachineError` if the store does not answer.
    """
    folder, _, name = location.uri.rpartition("/")
    try:
        meta = StorageLocation(folder, location.options).objects().head(name)
    except FileNotFoundError:
        return ""
    except BaseError as error:
        raise_if_store_unavailable(error, location.uri)
        return ""
    return f"{meta['size']} {meta['e_tag']}"


def require_conditional_puts(location: StorageLocation) -> None:
    """Raise for a store without conditional puts, where concurrent Lance writers can lose rows.

    Raises:
        UnreadableSourceError: The store ignores `If-None-Match` or `If-Match`, or is unreachable.
    """
    if location.is_local:
        return  # Lance commits local tables by an exclusive hard link, which is atomic.
    store = location.objects(retry_timeout_s=_FIRST_RETRY_TIMEOUT_S)
    last_s = time.monotonic() + _FIRST_RETRY_TIMEOUT_S
    for tries_left in range(_PROBES)[::-1]:
        try:
            enforced = _enforces_conditional_writes(store)
            break
        except BaseError as error:
            # A broken reply says nothing about the store; after a timeout no time is left.
            if tries_left and time.monotonic() < last_s:
                continue
            raise UnreadableSourceError(
                location.uri,
                f"cannot use it: {format_library_error(error)}",
                "Check its address, bucket, keys and that you may write there",
            ) from error
    if not enforced:
        raise UnreadableSourceError(
            location.uri,
            "this store does not enforce conditional puts, so two writers could lose rows",
            "Use a store that does (AWS S3, MinIO, SeaweedFS, Ceph, R2), or a local folder",
        )


def _enforces_conditional_writes(store: Any) -> bool:
    name = f".unreel-probe-{uuid.uuid4().hex}"
    first = {"e_tag": store.put(name, b"1", mode="create")["e_tag"]}
    try:
        if not _rejects_write(store, name, "create"):
            return False
        store.put(name, b"3", mode=first)
        return _rejects_write(store, name, first)
    finally:
        store.delete(name)


def _rejects_write(store: Any, name: str, mode: Any) -> bool:
    try:
        store.put(name, b"2", mode=mode)
    except (AlreadyExistsError, PreconditionError):
        return True
    return False


S3 = "s3://"


def resolve_location(text: str, storage: Mapping[str, str]) -> StorageLocation:
    """Return the storage location for a user's text: a directory, or `s3://bucket/prefix`."""
    if "://" not in text:
        if any(category(letter) in {"Cc", "Cs"} for letter in str(Path(text).absolute())):
            raise InvalidSettingError(
                "run",
                f"cannot use the folder {text!a}",
                "Name one without control characters, in UTF-8",
            )
        return StorageLocation(text)
    bucket = text.removeprefix(S3).partition("/")[0]
    if not text.startswith(S3) or not bucket:
        raise InvalidSettingError(
            "run", f"cannot use {text!r}", "Name a folder, or s3://bucket/prefix"
        )
    return StorageLocation(text.rstrip("/"), storage)


def get_local_state_folder(location: StorageLocation, settings: EnvironmentSettings) -> Path:
    """Return the local folder, always the same for a location, for files not in a store, such as ledgers."""
    if location.is_local:
        return location.path
    return settings.state_folder / "runs" / digest("place", location.uri)[:16]
