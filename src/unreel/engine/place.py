"""Where tables live: a folder of this machine, or an S3-compatible store that keeps its promises."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore.store
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from unreel.core.errors import UnreadableSourceError

_CLIENT_OPTIONS = ("allow_http", "timeout", "connect_timeout")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder path or an `s3://bucket/prefix`, with the options that open it.

    `options` are Lance's `storage_options`: `aws_endpoint`, `aws_access_key_id`,
    `aws_secret_access_key`, `aws_region`, `allow_http`. They are never stored nor printed.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether this is a folder of this machine."""
        return "://" not in self.uri

    @property
    def path(self) -> Path:
        """The folder; only where `is_local`."""
        return Path(self.uri)

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self.uri.rstrip('/')}/{name}", self.options)

    def objects(self) -> Any:
        """The store of objects under this place, for reading and writing them by relative path."""
        if self.is_local:
            return obstore.store.LocalStore(self.path, mkdir=True)
        config = {name: text for name, text in self.options.items() if name not in _CLIENT_OPTIONS}
        client: Any = {name: text for name, text in self.options.items() if name in _CLIENT_OPTIONS}
        client["allow_http"] = client.get("allow_http", "false") == "true"
        open_store: Any = obstore.store.from_url
        return open_store(self.uri, config=config, client_options=client)


def fetch(place: Place, *, into: Path) -> None:
    """Copy the object at `place` to the file `into`, piece by piece.

    Raises:
        OSError: There is no such object, or its store cannot be reached.
    """
    folder, _, name = place.uri.rpartition("/")
    try:
        stream = Place(folder, place.options).objects().get(name).stream()
        with into.open("wb") as file:
            for piece in stream:
                file.write(piece)
    except BaseError as error:
        msg = f"cannot fetch {place.uri}: {error}"
        raise OSError(msg) from error


def require_conditional_puts(place: Place) -> None:
    """Refuse a store that lets two writers both win: on it, Lance loses rows without a word.

    Raises:
        UnreadableSourceError: The store ignores `If-None-Match` or `If-Match`, or cannot be reached.
    """
    if place.is_local:
        return  # Lance commits there by an exclusive link, which the kernel decides.
    store, name = place.objects(), f".unreel-probe-{uuid.uuid4().hex}"
    try:
        first = store.put(name, b"1", mode="create")
        try:
            enforced = _refuses(store, name, "create") and _refuses_stale(store, name, first)
        finally:
            store.delete(name)
    except BaseError as error:
        remedy = "Check its address, bucket, keys and that you may write there"
        raise UnreadableSourceError(place.uri, f"cannot use it: {error}", remedy) from error
    if not enforced:
        problem = "this store does not enforce conditional puts, so two writers could lose rows"
        remedy = "Use a store that does (AWS S3, MinIO, SeaweedFS, Ceph, R2), or a local folder"
        raise UnreadableSourceError(place.uri, problem, remedy)


def _refuses(store: Any, name: str, mode: Any) -> bool:
    try:
        store.put(name, b"2", mode=mode)
    except (AlreadyExistsError, PreconditionError):
        return True
    return False


def _refuses_stale(store: Any, name: str, first: Any) -> bool:
    store.put(name, b"3", mode={"e_tag": first["e_tag"]})
    return _refuses(store, name, {"e_tag": first["e_tag"]})
