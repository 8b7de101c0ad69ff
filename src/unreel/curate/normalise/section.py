"""The settings of `[normalise]`."""

from fractions import Fraction
from typing import Literal

from unreel.media.normalise import NormalForm
from unreel.recipes.section import Exact, Section


class NormaliseSection(Section):
    """`[normalise]`: one form for every clip, so that the encoding tells nothing of its origin."""

    width: int = 1280
    height: int = 720
    rate: Exact = Fraction(24)
    crf: int = 18
    sound: Literal["dropped", "kept"] = "dropped"

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
