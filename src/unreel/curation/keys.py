"""Keys of a step's requests for a whole set of clips: 32 bytes each, for any kind of subject."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.chunks import LOOKUP_ROWS

_BYTES: Final = 32
_LENGTH: Final = (2 * _BYTES).to_bytes(8, "big")
_HASHED: Final = 1 << 14


class SubjectKeys:
    """Keys in the order of their subjects."""

    def __init__(self, keys: Iterable[str]) -> None:
        packed = bytearray()
        for key in keys:
            packed += bytes.fromhex(key)
        self.packed = np.frombuffer(packed, f"S{_BYTES}")

    def __len__(self) -> int:
        return len(self.packed)

    def chunks(self) -> Iterator[list[str]]:
        """Yield all keys in chunks, each as large as one table lookup."""
        for start in range(0, len(self), LOOKUP_ROWS):
            yield _format_hex_keys(self.packed[start : start + LOOKUP_ROWS])

    def order(self) -> NDArray[np.intp]:
        """Return the index of the first occurrence of each distinct key, in key order."""
        return np.unique(self.packed, return_index=True)[1]

    def digest(self, order: NDArray[np.intp]) -> str:
        """Return `core.identity.digest` of the keys at `order`, without a list of them."""
        state = hashlib.sha256()
        for start in range(0, len(order), _HASHED):
            keys = _format_hex_keys(self.packed[order[start : start + _HASHED]])
            state.update(b"".join(_LENGTH + key.encode() for key in keys))
        return state.hexdigest()


def _format_hex_keys(packed: NDArray[np.bytes_]) -> list[str]:
    rows = np.ascontiguousarray(packed).view(np.uint8).reshape(-1, _BYTES)
    return [row.tobytes().hex() for row in rows]
