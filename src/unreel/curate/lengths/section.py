"""The settings of `[lengths]`: none so far."""

from unreel.recipes.section import Section


class LengthsSection(Section):
    """`[lengths]`: real clips are trimmed until they last as generated ones do."""
