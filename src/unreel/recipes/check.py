"""The one reader of recipes: values become sections, or the first thing that is wrong with them is said."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from unreel.core.errors import InvalidSettingError, UnreelError, known_names
from unreel.recipes.section import RecipeSection

Checked = TypeVar("Checked", bound=RecipeSection)


def check_sections(
    shape: type[Checked], values: object, *, typed: Callable[[str], str] | None = None
) -> Checked:
    """Validate `values` against `shape`. `typed` formats a missing key as the user would type it.

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
                known = _section_at(shape, first["loc"]).known_keys()
                problem, remedy = "no such setting", known_names(str(first["loc"][-1]), known)
            case "missing":
                type_it = "" if typed is None else f", or type {typed(key)}"
                problem, remedy = "not given", f"Write {key} = ... in the recipe{type_it}"
            case _:
                words = first["msg"]
                problem, remedy = words[:1].lower() + words[1:], "Give a value that it takes"
        raise InvalidSettingError(key or "recipe", problem, remedy) from error


def given(keys: Mapping[str, Any]) -> dict[str, Any]:
    """`keys` as a recipe holds them; what is None was not given."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in keys.items()
        if value is not None
    }


def _section_at(shape: type[RecipeSection], place: tuple[int | str, ...]) -> type[RecipeSection]:
    """The section that the key at `place` of `shape` lies in."""
    for part in place[:-1]:
        field = shape.model_fields.get(str(part))
        shape = shape if field is None else next(iter(_sections_of(field.annotation)), shape)
    return shape


def _sections_of(annotation: Any) -> list[type[RecipeSection]]:
    if isinstance(annotation, type) and issubclass(annotation, RecipeSection):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [section for part in parts for section in _sections_of(part)]
