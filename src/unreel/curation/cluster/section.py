"""The settings of `[cluster]`: none so far."""

from unreel.recipes.section import RecipeSection


class ClusterSection(RecipeSection):
    """`[cluster]`: stories are grouped by meaning, and the same number is kept of each group."""
