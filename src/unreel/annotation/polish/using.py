"""Confirmed texts in the place of the words that they were merged from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.consensus.rule import ConsensusRule
from unreel.annotation.judgements import AnyValue, RatingAnswer
from unreel.annotation.ledger.notices import LedgerNotice
from unreel.annotation.polish.confirming import PolishState, polished_texts
from unreel.annotation.polish.originals import originals_of
from unreel.annotation.reading import CampaignRecords

_PARTS: Final = re.compile(
    r"problem description\W*?:(?P<problem>.*?)standard adherence\W*?:(?P<adherence>.*?)"
    r"(?:conclusion\W*?:.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_MARKS: Final = " \t\r\n-*#:"
"""Of lists and headings, which models put around the parts."""


@dataclass(frozen=True, slots=True)
class PolishedRationale:
    """A rationale that a language model merged and a person confirmed."""

    problem: str
    adherence: str

    def reworded(self, value: AnyValue) -> AnyValue:
        """`value` with these words instead of one annotator's; all else of it stays."""
        if not isinstance(value, RatingAnswer) or value.rating is None:
            return value
        said = replace(value.rating, problem=self.problem, adherence=self.adherence)
        return RatingAnswer(rating=said)


def confirmed_words(
    records: CampaignRecords, rule: ConsensusRule, notices: Sequence[LedgerNotice]
) -> dict[str, PolishedRationale]:
    """Return the confirmed texts for consensus scores, by the task's id.

    A text is valid while score and rationales are unchanged; otherwise it must be polished and
    confirmed again. A text without both parts is for readers only.
    """
    if records.campaign.interface is not AnnotationInterface.REALISM:
        return {}
    texts = polished_texts(notices)
    found: dict[str, PolishedRationale] = {}
    for original in originals_of(records, rule):
        text = texts.get(original.task)
        if text is None or (text.standing, text.original) != (PolishState.CONFIRMED, original.key):
            continue
        if (words := read_words(text.text)) is not None:
            found[original.task] = words
    return found


def read_words(text: str) -> PolishedRationale | None:
    """Problem description and standard adherence of a polished text; `None` where one is missing."""
    if (found := _PARTS.search(text)) is None:
        return None
    problem, adherence = (found[part].strip(_MARKS) for part in ("problem", "adherence"))
    return PolishedRationale(problem, adherence) if problem and adherence else None
