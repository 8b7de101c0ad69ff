"""Result of one check of a file, made before any model is asked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MARKS: Final = "Visible marks"


class FileCheckResult(StrEnum):
    """Result of inspecting the file."""

    SOMETHING = "something"
    NOTHING = "nothing"
    NOT_LOOKED = "not-looked"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """Searched property, and its result."""

    name: str
    found: FileCheckResult
    says: str
    """Sentences about the finding, without exaggeration."""
    claim: str = ""
    """The same in one sentence where the file itself says that it was generated; else empty."""


def build_unchecked_marks(reason: str) -> FileCheck:
    """Return the check for skipped visible marks; `why` ends the sentence."""
    return FileCheck(name=MARKS, found=FileCheckResult.NOT_LOOKED, says=f"Not searched: {reason}")
