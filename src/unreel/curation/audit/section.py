"""The settings of `[audit]`."""

from unreel.recipes.section import RecipeSection


class AuditSection(RecipeSection):
    """`[audit]`: tests whether file properties reveal the labels; a leak prevents the freeze."""

    texts: bool = True
    """Read texts on clips whose marks no earlier step looked for."""
