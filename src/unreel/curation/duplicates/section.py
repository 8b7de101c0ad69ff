"""The settings of `[duplicates]`."""

from typing import Literal

from unreel.recipes.section import RecipeSection


class DuplicatesSection(RecipeSection):
    """`[duplicates]`: clips that show the same, however they were encoded, scaled or stamped."""

    near: Literal["drop", "keep"] = "drop"
    """`drop` keeps the largest of those with one label; `keep` keeps all, in one split."""
