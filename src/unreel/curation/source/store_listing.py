"""Listing of the objects under a store prefix, cached with the curation."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from obstore.exceptions import BaseError
from pydantic import TypeAdapter, ValidationError

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.identity import digest
from unreel.core.small_documents import parse_object
from unreel.engine.location import StorageLocation


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object: its path below the prefix, and its version marker."""

    path: str
    size_bytes: int
    tag: str


_OBJECT: Final = TypeAdapter(StoredObject)


def list_once(prefix: StorageLocation, *, keep_in: StorageLocation) -> Iterator[StoredObject]:
    """Return the objects under `prefix`, sorted by path; the listing is cached.

    The cache is below `keep_in` under `listings/`: delete it to list again.

    Raises:
        UnreadableSourceError: The store cannot be reached.
    """
    name = f"listings/{digest('listing', prefix.uri)[:32]}.jsonl"
    try:
        text = keep_in.read(name)
    except FileNotFoundError:
        found = sorted(_iter_objects(prefix), key=lambda item: item.path)
        text = b"".join(json.dumps(asdict(item)).encode() + b"\n" for item in found)
        keep_in.put(name, text)
    for line in text.split(b"\n"):
        if line:
            yield _read_line(line, source=(keep_in / name).uri)


def _read_line(line: bytes, *, source: str) -> StoredObject:
    try:
        return _OBJECT.validate_python(parse_object(line))
    except (InvalidValueError, ValidationError) as error:
        problem, remedy = "no listing of a store", "Take it away: the store is listed again"
        raise UnreadableSourceError(source, problem, remedy) from error


def _iter_objects(prefix: StorageLocation) -> Iterator[StoredObject]:
    try:
        for chunk in prefix.objects().list():
            for item in chunk:
                yield StoredObject(item["path"], item["size"], item["e_tag"] or "")
    except BaseError as error:
        remedy = "Check its address, bucket and keys"
        raise UnreadableSourceError(prefix.uri, f"cannot list it: {error}", remedy) from error
