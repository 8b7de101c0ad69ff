"""Every setting of a curation's recipe, told from the recipe's own sections."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

from unreel.core.errors import UnknownNameError
from unreel.curate.recipe import CurateRecipe
from unreel.curate.screen.screens import SCREENS
from unreel.recipes.telling import ToldSection, read_notes, tell_key, tell_sections, write_toml


def tell_recipe() -> Iterator[ToldSection]:
    """Yield the settings above all sections, then each section, with the screens after `[screen]`."""
    for section in tell_sections(CurateRecipe):
        yield section
        if section.name == "screen":
            yield from map(_tell_screen, sorted(SCREENS.entries))


def find_sections(name: str | None) -> list[ToldSection]:
    """All sections, or the one of that name with those inside it.

    Raises:
        UnknownNameError: There is none.
    """
    told = list(tell_recipe())
    if name is None:
        return told
    wanted = name.strip("[]")
    found = [one for one in told if f"{one.name}.".startswith(f"{wanted}.")]
    if not found:
        kind = "section of a recipe"
        raise UnknownNameError(kind, name, [one.name for one in told if one.name])
    return found


def _tell_screen(name: str) -> ToldSection:
    screen: Any = SCREENS.load(name)
    kinds, notes = get_type_hints(screen, include_extras=True), read_notes(screen)
    keys = tuple(
        tell_key(
            own.name,
            kinds[own.name],
            default=write_toml(own.default),
            meaning=notes.get(own.name, ""),
        )
        for own in fields(screen)
        if own.name != "name"
    )
    about = (screen.__doc__ or "").partition("\n")[0]
    return ToldSection(name=f"screen.screens.{name}", about=about, keys=keys)
