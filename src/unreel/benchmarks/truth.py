"""Ground truths as JSON: the codec of each protocol follows from its declared type."""

from functools import cache
from types import GenericAlias
from typing import Any

from pydantic import TypeAdapter

from unreel.protocols.protocol import get_protocol


def write_truths(name: str, truths: tuple[Any, ...]) -> str:
    """Return the ground truths of one question of the protocol `name` as a JSON list."""
    return _build_truths_adapter(name).dump_json(truths).decode()


def read_truths(name: str, text: str) -> tuple[Any, ...]:
    """Read the output of `write_truths` for the protocol's scorer."""
    truths: tuple[Any, ...] = _build_truths_adapter(name).validate_json(text)
    return truths


@cache
def _build_truths_adapter(name: str) -> TypeAdapter[Any]:
    many: Any = GenericAlias(tuple, (get_protocol(name).truths.kind, ...))
    return TypeAdapter(many)
