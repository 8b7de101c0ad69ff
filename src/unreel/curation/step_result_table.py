"""Table with the results of a curation step: columns, check of a row, and keys of the requests."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.chunks import LOOKUP_ROWS
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row
from unreel.engine.table_check import WRONG_CLIP, WRONG_KEY, TableCheckRule, is_sha256_hex

_BYTES: Final = 32
_LENGTH: Final = (2 * _BYTES).to_bytes(8, "big")
_HASHED: Final = 1 << 14


class CurationRequestKeys:
    """Keys of a curation step's requests as packed bytes, in the order of the requests."""

    def __init__(self, keys: Iterable[str]) -> None:
        packed = bytearray()
        for key in keys:
            packed += bytes.fromhex(key)
        self.packed = np.frombuffer(packed, f"S{_BYTES}")

    def __len__(self) -> int:
        return len(self.packed)

    def chunks(self) -> Iterator[list[str]]:
        """Yield all keys as hexadecimal texts, in chunks of the size of one table lookup."""
        for start in range(0, len(self), LOOKUP_ROWS):
            yield _format_hex_keys(self.packed[start : start + LOOKUP_ROWS])

    def order(self) -> NDArray[np.intp]:
        """Return the index of the first occurrence of each distinct key, in key order."""
        return np.unique(self.packed, return_index=True)[1]

    def digest(self, order: NDArray[np.intp]) -> str:
        """Return `core.identity.digest` of the keys at the indices `order`, without building their list."""
        state = hashlib.sha256()
        for start in range(0, len(order), _HASHED):
            keys = _format_hex_keys(self.packed[order[start : start + _HASHED]])
            state.update(b"".join(_LENGTH + key.encode() for key in keys))
        return state.hexdigest()


def _format_hex_keys(packed: NDArray[np.bytes_]) -> list[str]:
    rows = np.ascontiguousarray(packed).view(np.uint8).reshape(-1, _BYTES)
    return [row.tobytes().hex() for row in rows]


FINDINGS: Final = TableSchema(
    name="findings",
    version=1,
    columns={
        "name": "string",
        "location": "string",
        "clip": "string",
        "found": "string",
    },
)
"""Schema of the results of a step, one row for each clip; `found` is JSON."""


def find_step_table_row_fault(row: Row) -> str | None:
    """Return the fault of a row (key or clip id is no hash; "" is a valid id); `None` if valid."""
    if not is_sha256_hex(row["key"]):
        return WRONG_KEY
    return None if not row["clip"] or is_sha256_hex(row["clip"]) else WRONG_CLIP


STEPS: Final = TableCheckRule(FINDINGS, find_step_table_row_fault)
