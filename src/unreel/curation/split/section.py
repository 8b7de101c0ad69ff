"""The settings of `[split]`."""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from unreel.recipes.section import RecipeSection, Seconds


class SplitSection(RecipeSection):
    """`[split]`: single-theme pieces, cut where the colours of two frames differ too much."""

    detector: Literal["colour", "transnetv2"] = "colour"
    """What finds cuts; `transnetv2` needs `unreel[transnet]`."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Of `colour`: Bhattacharyya distance of two frames' histograms."""
    shortest_s: Seconds = Fraction(1)
    """Shorter pieces are left out."""
