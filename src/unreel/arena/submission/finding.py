"""Finding of a check: a reason to reject an entry, or a note for its team."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_SHOWN: Final = 5


class FindingSeverity(StrEnum):
    """Consequence of a finding."""

    REFUSES = "refuses"
    WARNS = "warns"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFinding:
    """One thing that is wrong, and the clips that it is wrong with."""

    check: str
    weight: FindingSeverity
    words: str
    """A sentence that ends with what to do."""
    clips: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = len(self.clips) - _SHOWN
        named = ", ".join(self.clips[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"{self.check}: {self.words}" + (f" ({named})" if named else "")


def gather(found: Iterable[EntryFinding]) -> tuple[EntryFinding, ...]:
    """Merge equal findings into one with all their clips; findings that refuse the entry come first."""
    clips: dict[tuple[str, FindingSeverity, str], list[str]] = {}
    for each in found:
        clips.setdefault((each.check, each.weight, each.words), []).extend(each.clips)
    gathered = [
        EntryFinding(check=check, weight=weight, words=words, clips=tuple(names))
        for (check, weight, words), names in clips.items()
    ]
    return tuple(sorted(gathered, key=lambda each: each.weight is not FindingSeverity.REFUSES))
