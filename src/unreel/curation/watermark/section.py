"""The settings of `[watermark]`."""

from unreel.recipes.section import RecipeSection


class WatermarkSection(RecipeSection):
    """`[watermark]`: overlaid texts and logos are found and written down."""

    texts: bool = True
    """Read texts; costs about a second of one core for each of several frames."""
    clean: bool = False
    """Give every clip a copy without its marks, for `unreel eval --condition watermark=removed`."""
