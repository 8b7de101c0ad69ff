"""The settings of `[audit]`."""

from unreel.recipes.section import RecipeSection


class AuditSection(RecipeSection):
    """`[audit]`: whether the labels can be told without looking; a leak forbids the freeze."""

    texts: bool = True
    """Read texts on clips whose marks no earlier step looked for."""
