"""The settings of `[freeze]`."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from unreel.core.errors import InvalidSettingError
from unreel.recipes.section import Section, Text

SPLITS: Final = ("train", "val", "test")
Share = Annotated[int, Field(ge=0, le=1_000_000)]


class FreezeSection(Section):
    """`[freeze]`: what is published."""

    version: Text = "0.1.0"
    shares: tuple[Share, Share, Share] = (8, 1, 1)
    """Parts of train, val and test."""
    first_frames: bool = False
    """Publish the first frame of each clip as a picture too."""
    about: Text = ""
    """A paragraph for the data card."""

    @model_validator(mode="after")
    def _something_is_shared(self) -> "FreezeSection":
        if not sum(self.shares):
            setting, problem = "freeze.shares", "no split gets anything"
            raise InvalidSettingError(setting, problem, "Give parts such as [8, 1, 1]")
        return self
