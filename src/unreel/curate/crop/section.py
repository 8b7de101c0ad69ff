"""The settings of `[crop]`: none so far."""

from unreel.recipes.section import Section


class CropSection(Section):
    """`[crop]`: filled borders go."""
