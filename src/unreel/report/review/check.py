"""One thing that was looked for in a file before any model was asked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MARKS: Final = "Visible marks"


class Found(StrEnum):
    """Result of inspecting the file."""

    SOMETHING = "something"
    NOTHING = "nothing"
    NOT_LOOKED = "not-looked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Searched property, and its result."""

    name: str
    found: Found
    says: str
    """Sentences that say no more than what was found means."""
    claim: str = ""
    """The same in one sentence where the file itself says that it was generated; else empty."""


def marks_not_looked_for(why: str) -> Check:
    """That nobody looked for visible marks; `why` ends the sentence."""
    return Check(name=MARKS, found=Found.NOT_LOOKED, says=f"Not searched: {why}")
