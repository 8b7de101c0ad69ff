"""Decisions of people about a campaign: exclusion, review, confirmation."""

from dataclasses import dataclass
from typing import Final

EXCLUSION: Final = "exclusion"
"""An annotator's judgements count no longer."""
INCLUSION: Final = "inclusion"
"""They count again."""
REVIEW: Final = "review"
"""Review of a task's consensus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerNotice:
    """One recorded decision; a later decision about the same subject is a new notice."""

    seq: int
    """In order of arrival."""
    campaign: str
    kind: str
    subject: str
    """What it is about: an annotator's name, a task's id."""
    by: str
    said: str
    at_us: int
