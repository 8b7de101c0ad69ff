"""Where runs are kept: a folder of this machine, or a prefix of an object store."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from unicodedata import category

from obstore.exceptions import BaseError

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.identity import digest
from unreel.core.settings import Settings, read_storage
from unreel.engine.access import Access
from unreel.engine.place import Place
from unreel.evaluate.job import Run, open_run
from unreel.evaluate.stored_recipe import RECIPE_FILE

S3: Final = "s3://"
_TABLE: Final = ".lance"
_TABLES: Final = ("clips.lance", "answers.lance")
"""A frozen benchmark has a recipe too, and neither of them."""


def find_place(text: str, storage: Mapping[str, str]) -> Place:
    """The place that a person named: a folder, or `s3://bucket/prefix`."""
    if "://" not in text:
        _require_writable_name(text)
        return Place(text)
    bucket = text.removeprefix(S3).partition("/")[0]
    if not text.startswith(S3) or not bucket:
        setting, problem = "run", f"cannot use {text!r}"
        raise InvalidSettingError(setting, problem, "Name a folder, or s3://bucket/prefix")
    return Place(text.rstrip("/"), storage)


def _require_writable_name(text: str) -> None:
    """Refuse a folder that tables cannot be opened in, because of how it is called."""
    if any(category(one) in {"Cc", "Cs"} for one in str(Path(text).absolute())):
        setting, problem = "run", f"cannot use the folder {text!a}"
        remedy = "Name one without control characters, in UTF-8"
        raise InvalidSettingError(setting, problem, remedy)


def local_folder(place: Place, settings: Settings) -> Path:
    """The folder of this machine for what a run must not keep in a store, such as its ledgers.

    The same place gives the same folder each time, so that the next try finds them again.
    """
    if place.is_local:
        return place.path
    return settings.state_folder / "runs" / digest("place", place.uri)[:16]


def open_access(settings: Settings, *, trusted: bool = False) -> Access:
    """How clips are opened, in the store that the environment names too."""
    return Access(settings=settings, trusted=trusted, storage=read_storage(settings))


def open_named_run(text: str, settings: Settings) -> Run:
    """The run that `unreel eval --out` wrote to the folder or prefix `text`."""
    place = find_place(text, read_storage(settings))
    return open_run(place, open_access(settings), ledgers=local_folder(place, settings))


def find_runs(text: str, settings: Settings) -> Iterator[str]:
    """The runs at or below the folder or prefix `text`, sorted; what lies inside a run is not read."""
    place = find_place(text, read_storage(settings))
    if place.is_local:
        for path in sorted(place.path.glob(f"**/{RECIPE_FILE}")):
            if any((path.parent / table).is_dir() for table in _TABLES):
                yield str(path.parent)
        return
    try:
        yield from (place.uri + below for below in _below(place, ""))
    except BaseError as error:
        remedy = "Check its address, bucket and keys, or try `unreel doctor --store`"
        raise UnreadableSourceError(place.uri, f"cannot list it: {error}", remedy) from error


def _below(place: Place, prefix: str) -> Iterator[str]:
    listed = place.objects().list_with_delimiter(prefix or None)
    names = {entry["path"].rpartition("/")[2] for entry in listed["objects"]}
    folders = [folder.rstrip("/") for folder in sorted(listed["common_prefixes"])]
    if RECIPE_FILE in names:
        if {folder.rpartition("/")[2] for folder in folders} & {*_TABLES}:
            yield f"/{prefix}".rstrip("/")
        return
    for folder in folders:
        if not folder.endswith(_TABLE):
            yield from _below(place, folder)
