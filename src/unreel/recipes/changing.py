"""Changes to a recipe that a person types: `section.key=VALUE`, with a value in TOML's spelling."""

import tomllib
from typing import Any

from unreel.core.document import RECIPE_BYTES
from unreel.core.errors import InvalidSettingError


def apply_change(change: str, values: dict[str, Any]) -> None:
    """Write `change` into `values`.

    Of sections that stand several times, the only one is meant, or the one whose number is named, counted
    from 0: `data.1.weight=2`.
    """
    path, equals, text = change.partition("=")
    *sections, key = path.strip().split(".")
    if not equals or not key:
        setting, problem = "--set", f"cannot use {change!r}"
        raise InvalidSettingError(setting, problem, "Write SECTION.KEY=VALUE")
    place: Any = values
    for section in sections:
        place = _below(place, section)
    place = _only(place)
    if not isinstance(place, dict):
        setting, problem = path, "is no section with keys"
        remedy = "Change it in the file, or name the section's number, as in data.0.weight=2"
        raise InvalidSettingError(setting, problem, remedy)
    place[key] = _toml_value(text)


def _below(place: Any, section: str) -> Any:
    if isinstance(place, list) and section.isdecimal():
        return place[int(section)] if int(section) < len(place) else None
    place = _only(place)
    return place.setdefault(section, {}) if isinstance(place, dict) else None


def _only(place: Any) -> Any:
    return place[0] if isinstance(place, list) and len(place) == 1 else place


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text[:RECIPE_BYTES]}")["value"]
    except (ValueError, RecursionError):
        return text.strip()  # a plain word needs no quotes on a command line
