"""The settings of `[crop]`: none so far."""

from unreel.recipes.section import RecipeSection


class CropSection(RecipeSection):
    """`[crop]`: filled borders go."""
