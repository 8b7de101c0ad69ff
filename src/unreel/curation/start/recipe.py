"""Template of a recipe: the chosen settings, and every other key as a comment with its default."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from unreel.curation.recipe_docs import describe_recipe
from unreel.recipes.documentation import DescribedKey, DescribedSection, write_toml

_EXAMPLES: Final = {
    "source.layout": '"files"',
    "source.label": '"real"',
    "source.licence": '"CC BY 4.0"',
    "source.limit": "100",
    "screen.decisions": '"decisions.jsonl"',
    "inject.categories": '["sudden-blurring", "object-splitting"]',
    "describe.model": '"openai/gpt-5"',
    "freeze.citation.authors": '["Family, Given"]',
    "freeze.citation.year": "2026",
    "freeze.citation.url": '"https://example.org/dataset"',
}
"""Example values of keys with an empty default."""
_UNTOLD: Final = frozenset({"screen.screens"})
"""Its sections are shown in its place."""
_REPEATED: Final = frozenset({"source.label", "source.creator", "source.licence"})
"""What differs from source to source."""
_PLAIN: Final = frozenset(
    {"text", "true or false", "table", "list: text", "number", "whole number"}
)
_WIDTH: Final = 44


def write_recipe(values: Mapping[str, Any], *, head: str) -> str:
    """Return `values` as TOML below the comment `head`; unused sections are commented out."""
    blocks = [[f"# {line}".rstrip() for line in head.splitlines()]]
    for section in describe_recipe():
        held = _find_value(section.name, values)
        several = held if isinstance(held, list) else [held]
        told = replace(section, many=len(several) > 1)
        blocks += [
            list(_iter_section_lines(told, one, is_first=not n)) for n, one in enumerate(several)
        ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _find_value(name: str, values: Mapping[str, Any]) -> Any:
    """Return the value under a dotted name in `values`; None if the section is unused."""
    found: Any = values
    for part in filter(None, name.split(".")):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _iter_section_lines(
    section: DescribedSection, held: Mapping[str, Any] | None, *, is_first: bool
) -> Iterator[str]:
    if section.name:
        heading = f"[[{section.name}]]" if section.many else f"[{section.name}]"
        yield _format_line(heading, section.about if is_first else "", taken=held is not None)
    given = held or {}
    for key in section.keys:
        place = f"{section.name}.{key.key}".lstrip(".")
        shown = _EXAMPLES.get(place) or key.default
        comment = _format_key_note(key) if is_first else ""
        if place in _UNTOLD:
            continue
        if key.key in given:
            yield _format_line(f"{key.key} = {write_toml(given[key.key])}", comment, taken=True)
        elif shown and (is_first or place in _REPEATED):
            yield _format_line(f"{key.key} = {shown}", comment, taken=False)


def _format_line(text: str, comment: str, *, taken: bool) -> str:
    line = text if taken else f"# {text}"
    return f"{line + '  ':{_WIDTH}}# {comment}" if comment else line


def _format_key_note(key: DescribedKey) -> str:
    """Return the note that explains the value."""
    kind = "" if key.kind in _PLAIN else key.kind
    unit = f"({key.unit})" if key.unit else ""
    told = " ".join(filter(None, (kind, unit)))
    return f"{told}: {key.meaning}" if told else key.meaning
