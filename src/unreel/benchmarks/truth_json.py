"""Conversion of ground truths to JSON and back, by the type that each protocol declares for them."""

from functools import cache
from types import GenericAlias
from typing import Any

from pydantic import TypeAdapter

from unreel.protocols.protocol import get_protocol


def format_truths_json(name: str, truths: tuple[Any, ...]) -> str:
    """Return the ground truths of one question of the protocol `name` as a JSON list."""
    return _build_truths_adapter(name).dump_json(truths).decode()


def parse_truths_json(name: str, text: str) -> tuple[Any, ...]:
    """Parse the JSON list of `format_truths_json` into ground truths of the protocol `name`."""
    truths: tuple[Any, ...] = _build_truths_adapter(name).validate_json(text)
    return truths


@cache
def _build_truths_adapter(name: str) -> TypeAdapter[Any]:
    many: Any = GenericAlias(tuple, (get_protocol(name).truths.kind, ...))
    return TypeAdapter(many)
