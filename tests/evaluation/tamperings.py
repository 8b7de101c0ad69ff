"""What may have happened to a JSON document between two machines: one wrong thing at a time."""

import copy
import json
from collections.abc import Iterator
from typing import Any

WRONG: dict[str, str] = {
    "null": "null",
    "a number": "7",
    "a negative": "-1",
    "a number beyond all measure": "9" * 400,
    "a number of a megabyte": "9" * 200_000,
    "nan": "NaN",
    "infinity": "Infinity",
    "true": "true",
    "empty": '""',
    "half a surrogate": '"\\ud800"',
    "a zero byte": '"a\\u0000b"',
    "an escape": '"\\u001b[2J"',
    "a long text": json.dumps("x" * 100_000),
    "a list": "[]",
    "a list of lists": "[[[]]]",
    "an object": "{}",
    "deep": "[" * 5_000 + "]" * 5_000,
}


def tamperings(document: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Names and texts: every key of every level missing, added or of each wrong kind; and no JSON."""
    for path in _paths(document):
        shown = ".".join(map(str, path))
        yield f"{shown} missing", json.dumps(_without(document, path)).encode()
        for kind, text in WRONG.items():
            changed = json.dumps(_with(document, path, "@@"))
            yield f"{shown} is {kind}", changed.replace('"@@"', text).encode()
    for kind, text in WRONG.items():
        yield f"the document is {kind}", text.encode()
    whole = json.dumps(document)
    yield "an extra key", json.dumps(document | {"more": 1}).encode()
    yield "no JSON", whole[:-5].encode()
    yield "nothing", b""
    yield "no UTF-8", whole.encode() + b"\xff"
    yield "UTF-16", whole.encode("utf-16")
    yield "a megabyte of blanks", whole.encode() + b" " * (1 << 20)
    yield "twice", (whole + whole).encode()


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*above, key)
        yield from _paths(inner, (*above, key))


def _parent(document: Any, path: tuple[Any, ...]) -> tuple[Any, Any]:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    return changed, place


def _without(document: Any, path: tuple[Any, ...]) -> Any:
    changed, place = _parent(document, path)
    del place[path[-1]]
    return changed


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed, place = _parent(document, path)
    place[path[-1]] = value
    return changed
