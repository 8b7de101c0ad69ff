"""Documentation of recipes from their sections: type, unit, default and meaning of every key."""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args, get_origin

from unreel.core.command_options import read_field_docstrings
from unreel.recipes.validation import (
    LARGEST,
    RecipeNumberUnit,
    RecipeSection,
    list_annotated_sections,
)

_KINDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    Decimal: "number",
    Fraction: "number or fraction",
    str: "text",
}
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeKeyDescription:
    """Description of one recipe key: type, unit, default and meaning."""

    key: str
    kind: str
    unit: str
    """Unit of the number; "" if it has none."""
    default: str | None
    """Default value as TOML; "" if nothing is set by default, `None` if the key is required."""
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSectionDescription:
    """Description of one recipe section with all its keys."""

    name: str
    """Dotted name, as in the heading; "" for the top level."""
    about: str
    keys: tuple[RecipeKeyDescription, ...]
    many: bool = False
    """Whether the section may occur several times, as `[[name]]`."""


def iter_recipe_section_descriptions(
    shape: type[RecipeSection], name: str = ""
) -> Iterator[RecipeSectionDescription]:
    """Yield the description of the section `shape`, then of its nested sections, in field order."""
    notes = read_field_docstrings(shape)
    inner = {
        key: sub
        for key, field in shape.model_fields.items()
        if (sub := next(iter(list_annotated_sections(field.annotation)), None))
    }
    keys = tuple(
        build_recipe_key_description(
            key,
            (Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation),
            default=(
                None
                if field.is_required()
                else format_toml_value(field.get_default(call_default_factory=True))
            ),
            meaning=notes.get(key, ""),
        )
        for key, field in shape.model_fields.items()
        if key not in inner
    )
    yield RecipeSectionDescription(name=name, about=_format_section_summary(shape), keys=keys)
    for key, sub in inner.items():
        below = f"{name}.{key}" if name else key
        first, *nested = iter_recipe_section_descriptions(sub, below)
        yield replace(first, many=get_origin(shape.model_fields[key].annotation) is tuple)
        yield from nested


def build_recipe_key_description(
    key: str, annotation: Any, *, default: str | None, meaning: str
) -> RecipeKeyDescription:
    """Build the description of one recipe key from its declared type, default and meaning."""
    return RecipeKeyDescription(
        key=key,
        kind=_format_allowed_values(annotation),
        unit=next(
            iter(
                part.name
                for part in _iter_annotation_parts(annotation)
                if isinstance(part, RecipeNumberUnit)
            ),
            "",
        ),
        default=default,
        meaning=" ".join(meaning.split()),
    )


def format_toml_value(value: object) -> str:
    """Return `value` as the TOML text that follows `key =`."""
    match value:
        case Mapping():
            inside = ", ".join(f"{key} = {format_toml_value(item)}" for key, item in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case Sequence() if not isinstance(value, str):
            return f"[{', '.join(map(format_toml_value, value))}]"
        case Fraction() if value.denominator > 1:
            return json.dumps(str(value))
        case bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return "" if value is None else str(value)


def _format_section_summary(shape: type[RecipeSection]) -> str:
    """Return the first paragraph of the docstring of `shape`, without its leading section heading."""
    first = " ".join((inspect.getdoc(shape) or "").partition("\n\n")[0].split())
    summary = first.partition(": ")[2] if first.startswith("`[") else first
    return summary[:1].upper() + summary[1:]


def _iter_annotation_parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _iter_annotation_parts(part)


def _format_allowed_values(annotation: Any) -> str:
    args = get_args(annotation)
    match get_origin(annotation):
        case None if annotation in _KINDS:
            texts = [_KINDS[annotation]]
        case None:
            texts = list(map(format_toml_value, annotation))
        case origin if origin is Annotated:
            texts = [
                " ".join(filter(None, (_format_allowed_values(args[0]), _format_bounds(args[1:]))))
            ]
        case origin if origin is Literal:
            texts = list(map(format_toml_value, args))
        case origin if origin is dict:
            texts = ["table"]
        case origin if origin is tuple:
            count = "" if args[-1] is Ellipsis else f" of {len(args)}"
            texts = [f"list{count}: {_format_allowed_values(args[0])}"]
        case _:
            texts = [_format_allowed_values(part) for part in args if part is not type(None)]
    return " or ".join(texts)


def _format_bounds(metadata: Sequence[Any]) -> str:
    parts = [part for item in metadata for part in getattr(item, "metadata", None) or (item,)]
    limits = {
        name: limit for name in _BOUNDS for part in parts if (limit := _format_limit(part, name))
    }
    return ", ".join(f"{_BOUNDS[name]} {limit}" for name, limit in limits.items())


def _format_limit(bound: object, name: str) -> str:
    limit = getattr(bound, name, None)
    return "" if limit is None or abs(limit) >= LARGEST else str(limit)
