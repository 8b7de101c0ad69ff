"""Input files within limits: sizes of chunks, small untrusted documents, and indexes of model weights."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unreel.core.errors import InvalidValueError, UnreadableSourceError

RECIPE_BYTES = 256 << 10
"""Maximum size of recipes and price tables, which are written by hand."""
JSON_VALUES = 4_000_000
"""Maximum number of values in a JSON document: a list of `[]` needs twenty times its size once parsed."""
_MAX_DOTS = 200
"""Maximum number of dots in a TOML key: parsing a key of a hundred thousand parts takes minutes."""
_OPENERS = (b",", b"[", b"{")


def read_limited_bytes(
    path: Path, *, most: int, remedy: str = "Check the path and that you may read it"
) -> bytes:
    """Read the bytes of the file at `path`.

    Raise `UnreadableSourceError` if the file cannot be read, or is larger than `most` bytes.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "unreadable"
        raise UnreadableSourceError(str(path), reason, remedy) from error
    if len(data) > most:
        raise build_too_large_error(str(path), most)
    return data


def build_too_large_error(source: str, most: int) -> UnreadableSourceError:
    """Build the error for a document larger than `most` bytes."""
    return UnreadableSourceError(source, f"larger than {most} bytes", "Split it, or take parts out")


def parse_json(data: bytes) -> Any:
    """Parse the JSON value in `data`, UTF-8 with or without a byte order mark.

    Raise `InvalidValueError` if the data is not JSON, is nested too deeply, or has too many values.
    """
    if sum(map(data.count, _OPENERS)) > JSON_VALUES:
        raise InvalidValueError(f"more than {JSON_VALUES} values in one document")
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidValueError(f"not JSON: {reason[:200]}") from error


def parse_json_object(data: bytes) -> Mapping[str, Any]:
    """Parse the JSON object in `data`; raise `InvalidValueError` for anything else."""
    value = parse_json(data)
    if not isinstance(value, dict):
        raise InvalidValueError("not an object in JSON")
    return value


def read_toml_file(
    path: Path, what: str, *, remedy: str = "Write TOML", parse_float: Any = float
) -> dict[str, Any]:
    """Read the TOML file at `path`; `what` names the expected content (`recipe`, for example).

    Raise `UnreadableSourceError` if the file cannot be read, is too large, or is not TOML.
    """
    data = read_limited_bytes(path, most=RECIPE_BYTES)
    if any(line.partition(b"=")[0].count(b".") > _MAX_DOTS for line in data.split(b"\n")):
        raise UnreadableSourceError(
            str(path),
            f"no {what} (a key of more than {_MAX_DOTS} parts)",
            "Write shorter keys or lines",
        )
    try:
        return tomllib.loads(data.decode(), parse_float=parse_float)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UnreadableSourceError(str(path), f"no {what} ({reason})", remedy) from error


INDEX_FILES = "*.safetensors.index.json"
_INDEX_BYTES = 64 << 20
_SUFFIX = ".safetensors"


def is_safetensors_name(name: object) -> bool:
    """Return whether `name` is a safetensors file without a folder before it."""
    return isinstance(name, str) and name.endswith(_SUFFIX) and not {*name} & {*"/\\\0"}


def require_safe_weight_index(index: Path) -> None:
    """Raise for a weight index that names anything but safetensors files in its own folder.

    A loader opens any other file by its ending, as a pickle, which can contain code. Raise
    `UnreadableSourceError` if the index names another file, or cannot be read.
    """
    remedy = "Write the checkpoint again with safetensors next to its index"
    try:
        files = parse_json_object(read_limited_bytes(index, most=_INDEX_BYTES)).get("weight_map")
    except InvalidValueError as error:
        raise UnreadableSourceError(str(index), f"no index of weights: {error}", remedy) from error
    if not isinstance(files, dict):
        raise UnreadableSourceError(str(index), "no index of weights: no weight_map", remedy)
    for name in files.values():
        if not is_safetensors_name(name):
            raise UnreadableSourceError(
                str(index),
                f"names {str(name)[:200]!a} as weights, no safetensors file of its folder",
                remedy,
            )
