"""Writes docs/reference/curate.md from the sections of a curation's recipe, and the example from the sample.

    python docs/reference/make_curate.py

A test compares both with what this writes.
"""

from pathlib import Path
from typing import Final

from unreel.curation.recipe_template import SAMPLE_RECIPE_HEAD as EXAMPLE_HEAD
from unreel.curation.recipe_template import VALUES, describe_recipe_sections, format_recipe_template
from unreel.recipes.documentation import RecipeKeyDescription, RecipeSectionDescription

PAGE: Final = Path(__file__).with_name("curate.md")
EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "curate.toml"
HEAD: Final = """# Settings of a curation

Every key of a recipe of `unreel curate`, from the recipe's own sections; [the page on curating](../curate.md) tells what the steps do.
`unreel curate settings [SECTION]` prints the same, `unreel curate init FOLDER` writes it as a recipe to start with, and
`python docs/reference/make_curate.py` writes this page.
"""


def write_page() -> str:
    """The whole page, one table for each section."""
    return "\n\n".join([HEAD.strip(), *map(write_section, describe_recipe_sections())]) + "\n"


def write_example() -> str:
    """The recipe of the sample."""
    return format_recipe_template(VALUES, head=EXAMPLE_HEAD)


def write_section(section: RecipeSectionDescription) -> str:
    """A section: what it is for, and its keys."""
    heading = f"`[[{section.name}]]`" if section.many else f"`[{section.name}]`"
    parts = [f"## {heading if section.name else 'Above all sections'}", section.about]
    if not section.keys:
        return "\n\n".join([*parts, "It has no settings."])
    lines = ["| key | type | unit | default | meaning |", "|---|---|---|---|---|"]
    return "\n\n".join([*parts, "\n".join([*lines, *map(write_row, section.keys)])])


def write_row(key: RecipeKeyDescription) -> str:
    """One key as a row."""
    default = "needed" if key.default is None else f"`{key.default}`" if key.default else "none"
    cells = (f"`{key.key}`", key.kind, key.unit, default, key.meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
    EXAMPLE.write_text(write_example(), encoding="utf-8")
