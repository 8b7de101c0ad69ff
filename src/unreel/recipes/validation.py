"""Validation of recipes: values become sections, or the first error is raised with a remedy."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from unreel.core.errors import InvalidSettingError, UnreelError, suggest_names
from unreel.core.input_files import RECIPE_BYTES

LONGEST_TEXT = 4096
MAX_PARTS = 256
"""Maximum number of conditions, sources or columns in a recipe, which is written by hand."""
_LONGEST_NUMBER = 40
LARGEST = 10**12


@dataclass(frozen=True, slots=True)
class RecipeNumberUnit:
    """Unit of a number in a recipe, for its documentation."""

    name: str


class RecipeSection(BaseModel):
    """Base class of recipe sections: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def known_keys(cls) -> list[str]:
        """Return the keys that are allowed in this section."""
        return list(cls.model_fields)


def _parse_exact_number(value: object) -> Fraction:
    """Parse a number exactly as written in a recipe: 0.1 is a tenth, 30000/1001 is a fraction."""
    text = str(value) if isinstance(value, int | float | str | Fraction) else ""
    # With an exponent, a short text could represent a number of a gigabyte.
    if isinstance(value, bool) or len(text) > _LONGEST_NUMBER or "e" in text.lower():
        raise ValueError("is not a plain number")
    try:
        return Fraction(text)
    except ZeroDivisionError as error:
        raise ValueError("divides by zero") from error


def _require_single_line(text: str, info: ValidationInfo) -> str:
    if not text.isprintable() or text != text.strip():
        setting = info.field_name or "name"
        raise InvalidSettingError(
            setting, f"{text!a} does not fit on a line", "Write a name without breaks or margins"
        )
    return text


Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Line = Annotated[Text, Field(min_length=1), AfterValidator(_require_single_line)]
"""Name on one line, as displayed on boards and in tables."""
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
MaxTokens = Annotated[int, Field(ge=1, le=10_000_000), RecipeNumberUnit("tokens")]
Connections = Annotated[int, Field(ge=1, le=1024)]
Deadline = Annotated[
    float, Field(gt=0, le=86_400, allow_inf_nan=False), RecipeNumberUnit("seconds")
]
Exact = Annotated[Fraction, BeforeValidator(_parse_exact_number)]
Seconds = Annotated[Exact, Field(ge=0, le=LARGEST), RecipeNumberUnit("seconds")]


def apply_recipe_change(change: str, values: dict[str, Any]) -> None:
    """Apply `change`, a text such as `SECTION.KEY=VALUE`, to the recipe `values` in place.

    If a section occurs several times, its index from 0 is part of the path (`data.1.weight=2`); a
    section that occurs once needs none.
    """
    path, equals, text = change.partition("=")
    *sections, key = path.strip().split(".")
    if not equals or not key:
        raise InvalidSettingError("--set", f"cannot use {change!r}", "Write SECTION.KEY=VALUE")
    node: Any = values
    for section in sections:
        node = _find_subsection(node, section)
    node = _unwrap_single_item(node)
    if not isinstance(node, dict):
        setting = path
        raise InvalidSettingError(
            setting,
            "is not a section with keys",
            "Change it in the file, or name the section's number, as in data.0.weight=2",
        )
    node[key] = _parse_toml_value(text)


def _find_subsection(node: Any, section: str) -> Any:
    if isinstance(node, list) and section.isdecimal():
        return node[int(section)] if int(section) < len(node) else None
    node = _unwrap_single_item(node)
    return node.setdefault(section, {}) if isinstance(node, dict) else None


def _unwrap_single_item(node: Any) -> Any:
    return node[0] if isinstance(node, list) and len(node) == 1 else node


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

    Raise `InvalidSettingError` if a key is unknown or missing, or a value cannot be used.
    """
    if not isinstance(values, Mapping):
        raise InvalidSettingError("recipe", "holds no sections", "Write keys and sections")
    try:
        return shape.model_validate(dict(values))
    except ValidationError as error:
        # A misspelt key may also be reported as missing: report the unknown key first.
        first = min(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
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
                message = first["msg"]
                problem, remedy = message[:1].lower() + message[1:], "Give a value that it takes"
        raise InvalidSettingError(key or "recipe", problem, remedy) from error


def drop_unset_keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe keys without those that are `None`; paths become text."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in keys.items()
        if value is not None
    }


def _get_section_at(shape: type[RecipeSection], path: tuple[int | str, ...]) -> type[RecipeSection]:
    for part in path[:-1]:
        if field := shape.model_fields.get(str(part)):
            shape = next(iter(list_annotated_sections(field.annotation)), shape)
    return shape


def list_annotated_sections(annotation: Any) -> list[type[RecipeSection]]:
    """Return the sections that a type contains, such as `S` of `tuple[S, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, RecipeSection):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [section for part in parts for section in list_annotated_sections(part)]
