"""Seal of each stored row: a hash over its other values, which reveals later changes.

Lance has no checksums for its pages, so a flipped bit in a text would be read as the reviewer's
answer. The seal reveals accidental changes, not an attacker who writes a new seal.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Final

COLUMN: Final = "seal"
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), default=repr)
_QUOTE: Final = json.encoder.encode_basestring_ascii


def compute_row_seal(row: Mapping[str, Any]) -> int:
    """Return the hash (seal) of the values of `row`; empty columns are ignored."""
    values = [(name, row[name]) for name in sorted(row) if row[name] is not None and name != COLUMN]
    state = hashlib.blake2b(_ENCODER.encode(values).encode(), digest_size=8)
    return int.from_bytes(state.digest(), "big", signed=True)


def has_wrong_seal(row: Mapping[str, Any]) -> bool:
    """Return whether the seal of a stored row does not match its values; old rows have no seal."""
    seal = row.get(COLUMN)
    return seal is not None and seal != compute_row_seal(row)


def compute_row_seals(columns: Mapping[str, Sequence[Any]]) -> list[int]:
    """Return the seal of each row of equally long `columns`; several times faster than row by row."""
    spelled = [
        _format_json_cells(name, columns[name]) for name in sorted(columns) if name != COLUMN
    ]
    return [
        int.from_bytes(
            hashlib.blake2b(f"[{','.join(filter(None, cells))}]".encode(), digest_size=8).digest(),
            "big",
            signed=True,
        )
        for cells in zip(*spelled, strict=True)
    ]


def _format_json_cells(name: str, values: Sequence[Any]) -> Sequence[str]:
    """Return the JSON of the name and each value; "" for an empty cell."""
    before = f"[{_QUOTE(name)},"
    kinds = {*map(type, values)}
    if kinds <= {str, NoneType}:
        texts = {text: f"{before}{_QUOTE(text)}]" for text in {*values} - {None}}
        return [texts.get(text, "") for text in values]
    if kinds == {int}:
        return [f"{before}{number}]" for number in values]
    encode = _ENCODER.encode
    return ["" if value is None else f"{before}{encode(value)}]" for value in values]
