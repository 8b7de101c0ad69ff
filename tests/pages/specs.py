"""Checks what a page carries for its player against the typed spec."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from unreel.pages.player import PlayerSpec

_SPEC = TypeAdapter(PlayerSpec)


def read_spec(found: Mapping[str, Any]) -> PlayerSpec:
    """The spec in JSON as it was found: no field missing, none more, none of another kind."""
    spec = _SPEC.validate_json(json.dumps(found), strict=True)
    assert _SPEC.dump_python(spec, mode="json") == found, "a field that the spec does not know"
    return spec
