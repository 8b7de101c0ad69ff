"""Locations of a job's tables from the user's text: a local folder, or an object store prefix."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from unicodedata import category

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import EnvironmentSettings, read_storage_options
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings

S3: Final = "s3://"


def resolve_location(text: str, storage: Mapping[str, str]) -> StorageLocation:
    """Return the storage location for a user's text: a directory, or `s3://bucket/prefix`."""
    if "://" not in text:
        _require_usable_folder_name(text)
        return StorageLocation(text)
    bucket = text.removeprefix(S3).partition("/")[0]
    if not text.startswith(S3) or not bucket:
        setting, problem = "run", f"cannot use {text!r}"
        raise InvalidSettingError(setting, problem, "Name a folder, or s3://bucket/prefix")
    return StorageLocation(text.rstrip("/"), storage)


def _require_usable_folder_name(text: str) -> None:
    """Raise for a folder path with control characters or invalid UTF-8, which Lance cannot open."""
    if any(category(letter) in {"Cc", "Cs"} for letter in str(Path(text).absolute())):
        setting, problem = "run", f"cannot use the folder {text!a}"
        remedy = "Name one without control characters, in UTF-8"
        raise InvalidSettingError(setting, problem, remedy)


def get_local_state_folder(location: StorageLocation, settings: EnvironmentSettings) -> Path:
    """Return the local directory for files of a run that must not be in an object store, such as ledgers.

    The same location always gives the same directory, so that a retry finds the files.
    """
    if location.is_local:
        return location.path
    return settings.state_folder / "runs" / digest("place", location.uri)[:16]


def build_clip_access_settings(
    settings: EnvironmentSettings, *, trusted: bool = False, outside: bool = False
) -> ClipAccessSettings:
    """Return the settings to open clips, with the object store from the environment."""
    storage = read_storage_options(settings)
    return ClipAccessSettings(settings=settings, trusted=trusted, outside=outside, storage=storage)
