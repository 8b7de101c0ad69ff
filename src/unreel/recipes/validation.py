"""Validation of recipes: values become sections, or the first error is raised with a remedy."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from unreel.core.errors import InvalidSettingError, UnreelError, suggest_names
from unreel.core.input_files import RECIPE_BYTES
from unreel.recipes.section import RecipeSection


def apply_recipe_change(change: str, values: dict[str, Any]) -> None:
    """Apply `change`, a text such as `SECTION.KEY=VALUE`, to the recipe `values` in place.

    If a section occurs several times, its index from 0 is part of the path (`data.1.weight=2`); a
    section that occurs once needs none.
    """
    path, equals, text = change.partition("=")
    *sections, key = path.strip().split(".")
    if not equals or not key:
        setting, problem = "--set", f"cannot use {change!r}"
        raise InvalidSettingError(setting, problem, "Write SECTION.KEY=VALUE")
    place: Any = values
    for section in sections:
        place = _find_subsection(place, section)
    place = _unwrap_single_item(place)
    if not isinstance(place, dict):
        setting, problem = path, "is no section with keys"
        remedy = "Change it in the file, or name the section's number, as in data.0.weight=2"
        raise InvalidSettingError(setting, problem, remedy)
    place[key] = _parse_toml_value(text)


def _find_subsection(place: Any, section: str) -> Any:
    if isinstance(place, list) and section.isdecimal():
        return place[int(section)] if int(section) < len(place) else None
    place = _unwrap_single_item(place)
    return place.setdefault(section, {}) if isinstance(place, dict) else None


def _unwrap_single_item(place: Any) -> Any:
    return place[0] if isinstance(place, list) and len(place) == 1 else place


def _parse_toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text[:RECIPE_BYTES]}")["value"]
    except (ValueError, RecursionError):
        return text.strip()  # a plain word needs no quotes on a command line


Checked = TypeVar("Checked", bound=RecipeSection)


def validate_recipe_sections(
    shape: type[Checked], values: object, *, typed: Callable[[str], str] | None = None
) -> Checked:
    """Return `values` as the section `shape`; `typed` formats a missing key as the user would type it.

    Raises:
        InvalidSettingError: A key is unknown or missing, or a value cannot be used.
    """
    if not isinstance(values, Mapping):
        setting, problem = "recipe", "holds no sections"
        raise InvalidSettingError(setting, problem, "Write keys and sections")
    try:
        return shape.model_validate(dict(values))
    except ValidationError as error:
        # A misspelt key is missing under its own name too: the spelling is what to mend.
        first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, UnreelError):
            raise cause from error
        key = ".".join(map(str, first["loc"]))
        match first["type"]:
            case "extra_forbidden":
                known = _get_section_at(shape, first["loc"]).known_keys()
                problem, remedy = "no such setting", suggest_names(str(first["loc"][-1]), known)
            case "missing":
                type_it = "" if typed is None else f", or type {typed(key)}"
                problem, remedy = "not given", f"Write {key} = ... in the recipe{type_it}"
            case _:
                words = first["msg"]
                problem, remedy = words[:1].lower() + words[1:], "Give a value that it takes"
        raise InvalidSettingError(key or "recipe", problem, remedy) from error


def drop_unset_keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe keys without those that are `None`; paths become text."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in keys.items()
        if value is not None
    }


def _get_section_at(
    shape: type[RecipeSection], place: tuple[int | str, ...]
) -> type[RecipeSection]:
    """Return the section class that contains the key at the path `place` of `shape`."""
    for part in place[:-1]:
        field = shape.model_fields.get(str(part))
        shape = (
            shape
            if field is None
            else next(iter(_list_annotated_sections(field.annotation)), shape)
        )
    return shape


def _list_annotated_sections(annotation: Any) -> list[type[RecipeSection]]:
    if isinstance(annotation, type) and issubclass(annotation, RecipeSection):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [section for part in parts for section in _list_annotated_sections(part)]
