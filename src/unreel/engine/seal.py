"""A short hash in each row over its other values: what changed after it was written is noticed.

Lance keeps no checksums of its pages, so a flipped bit inside a text would otherwise be read as what the
reviewer said. It guards against accidents, not against somebody who writes a new seal too.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

COLUMN: Final = "seal"
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), default=repr)


def seal_of(row: Mapping[str, Any]) -> int:
    """The seal that belongs to the values of `row`; an empty column counts as none."""
    values = [(name, row[name]) for name in sorted(row) if row[name] is not None and name != COLUMN]
    state = hashlib.blake2b(_ENCODER.encode(values).encode(), digest_size=8)
    return int.from_bytes(state.digest(), "big", signed=True)


def is_broken(row: Mapping[str, Any]) -> bool:
    """Whether a whole stored row differs from what was written; rows of before seals have none."""
    seal = row.get(COLUMN)
    return seal is not None and seal != seal_of(row)
