"""The settings of `[freeze]`."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.judgement import Label
from unreel.recipes.section import MOST_PARTS, NumberUnit, RecipeSection, Text

SPLITS: Final = ("train", "val", "test")
Share = Annotated[int, Field(ge=0, le=1_000_000)]
Year = Annotated[int, Field(ge=1900, le=9999)]


class CitationSection(RecipeSection):
    """`[freeze.citation]`: citation of the benchmark; the card lists missing fields."""

    authors: Annotated[tuple[Text, ...], Field(max_length=MOST_PARTS)] = ()
    """Each as "Family, Given", or the name of a group."""
    year: Year | None = None
    """In which it is published."""
    url: Text = ""
    """Where it is published."""
    doi: Text = ""
    """Its DOI, such as 10.5281/zenodo.1."""
    bibtex: Text = ""
    """A whole entry, in place of the one that is made from the other keys."""


class FreezeSection(RecipeSection):
    """`[freeze]`: content of the frozen benchmark."""

    version: Text = "0.1.0"
    """Of the benchmark."""
    shares: Annotated[tuple[Share, Share, Share], NumberUnit("parts")] = (8, 1, 1)
    """Parts of train, val and test; a split with 0 is not made."""
    labels: Annotated[tuple[Label, ...], Field(max_length=len(Label))] = tuple(Label)
    """What every split must hold; a set of one label says so here."""
    first_frames: bool = False
    """Publish the first frame of each clip as a picture too."""
    media: Literal["copy", "in_place"] = "copy"
    """`in_place` copies nothing: the manifest names where the files lie, for sets too large to hold twice."""
    about: Text = ""
    """A paragraph for the data card."""
    citation: CitationSection | None = None
    """How it is to be cited."""

    @property
    def in_place(self) -> bool:
        """Return whether media stay at their location."""
        return self.media == "in_place"

    @model_validator(mode="after")
    def _something_is_shared(self) -> "FreezeSection":
        if not sum(self.shares):
            setting, problem = "freeze.shares", "no split gets anything"
            raise InvalidSettingError(setting, problem, "Give parts such as [8, 1, 1]")
        return self
