"""Files that the index of a model's weights may name: safetensors in the same folder."""

from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.small_documents import parse_object, read_bytes

INDEX_FILES: Final = "*.safetensors.index.json"
_INDEX_BYTES: Final = 64 << 20
_SUFFIX: Final = ".safetensors"


def is_weight_file(name: object) -> bool:
    """Return whether `name` is a safetensors file without a folder before it."""
    return isinstance(name, str) and name.endswith(_SUFFIX) and not {*name} & {*"/\\\0"}


def require_safe_index(index: Path) -> None:
    """Raise for an index that names anything but safetensors in its own folder.

    A loader opens any other file by its ending, as a pickle, which can hold code.

    Raises:
        UnreadableSourceError: It does, or cannot be read.
    """
    remedy = "Write the checkpoint again with safetensors next to its index"
    try:
        files = parse_object(read_bytes(index, most=_INDEX_BYTES)).get("weight_map")
    except InvalidValueError as error:
        raise UnreadableSourceError(str(index), f"no index of weights: {error}", remedy) from error
    if not isinstance(files, dict):
        raise UnreadableSourceError(str(index), "no index of weights: no weight_map", remedy)
    for name in files.values():
        if not is_weight_file(name):
            problem = f"names {str(name)[:200]!a} as weights, no safetensors file of its folder"
            raise UnreadableSourceError(str(index), problem, remedy)
