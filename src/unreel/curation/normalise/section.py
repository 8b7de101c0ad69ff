"""The settings of `[normalise]`."""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import model_validator

from unreel.media.normalise import NormalForm
from unreel.recipes.section import Exact, NumberUnit, RecipeSection


class NormaliseSection(RecipeSection):
    """`[normalise]`: one format for every clip, so that the encoding does not reveal its origin."""

    width: Annotated[int, NumberUnit("pixels")] = 1280
    """Even; the picture is fitted inside and centred on black."""
    height: Annotated[int, NumberUnit("pixels")] = 720
    """Even."""
    rate: Annotated[Exact, NumberUnit("frames a second")] = Fraction(24)
    """Such as 24 or "30000/1001"."""
    crf: int = 18
    """Quality of x264, 0 (best) to 51."""
    sound: Literal["dropped", "kept"] = "dropped"
    """`kept` gives every clip a track, silent where the clip was mute."""

    @model_validator(mode="after")
    def _form_can_be_encoded(self) -> "NormaliseSection":
        _ = self.form
        return self

    @property
    def form(self) -> NormalForm:
        """The form as `media` knows it."""
        return NormalForm(
            width=self.width,
            height=self.height,
            rate=self.rate,
            crf=self.crf,
            sound=self.sound,
        )
