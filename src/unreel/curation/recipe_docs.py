"""Documentation of every setting of a curation's recipe, from the recipe's own sections."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

from unreel.core.errors import UnknownNameError
from unreel.curation.recipe import CurateRecipe
from unreel.curation.screen import SCREENS
from unreel.recipes.documentation import (
    DescribedSection,
    describe_key,
    describe_sections,
    read_notes,
    write_toml,
)


def describe_recipe() -> Iterator[DescribedSection]:
    """Yield the settings above all sections, then each section, with the screens after `[screen]`."""
    for section in describe_sections(CurateRecipe):
        yield section
        if section.name == "screen":
            yield from map(_describe_screen, sorted(SCREENS.entries))


def find_sections(name: str | None) -> list[DescribedSection]:
    """Return all sections, or the section `name` with its subsections.

    Raises:
        UnknownNameError: No section has this name.
    """
    told = list(describe_recipe())
    if name is None:
        return told
    wanted = name.strip("[]")
    found = [one for one in told if f"{one.name}.".startswith(f"{wanted}.")]
    if not found:
        kind = "section of a recipe"
        raise UnknownNameError(kind, name, [one.name for one in told if one.name])
    return found


def _describe_screen(name: str) -> DescribedSection:
    screen: Any = SCREENS.load(name)
    kinds, notes = get_type_hints(screen, include_extras=True), read_notes(screen)
    keys = tuple(
        describe_key(
            own.name,
            kinds[own.name],
            default=write_toml(own.default),
            meaning=notes.get(own.name, ""),
        )
        for own in fields(screen)
        if own.name != "name"
    )
    about = (screen.__doc__ or "").partition("\n")[0]
    return DescribedSection(name=f"screen.screens.{name}", about=about, keys=keys)
