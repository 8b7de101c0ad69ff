"""The settings of `[lengths]`: none so far."""

from unreel.recipes.section import RecipeSection


class LengthsSection(RecipeSection):
    """`[lengths]`: real clips are trimmed until they last as generated ones do."""
