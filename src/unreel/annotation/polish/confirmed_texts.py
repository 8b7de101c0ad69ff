"""Storage of polished rationales and of people's confirmations, as ledger notices.

The original rationales are kept.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.campaign_state import CampaignRecords
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.judgements import AnyValue, LedgerNotice, RatingAnswer
from unreel.annotation.polish.rationale_polishing import (
    RationalePolishResult,
    iter_original_rationales,
)

if TYPE_CHECKING:
    from unreel.annotation.ledger.ledger import Ledger


POLISH: Final = "polish"
CONFIRMATION: Final = "confirmation"


class PolishedTextState(StrEnum):
    """State of a polished text: waiting for a person's decision, confirmed or rejected."""

    WAITING = "waiting"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishedText:
    """Newest polished text of the rationales of a task, and a person's decision about it."""

    task: str
    seq: int
    model: str
    original: str
    """Key of the original rationales."""
    text: str
    flags: tuple[str, ...]
    similarity: float | None
    standing: PolishedTextState
    by: str = ""
    """Name of the person who confirmed or rejected the text."""


def store_polished_texts(
    ledger: "Ledger", campaign: str, polished: Iterable[RationalePolishResult], *, at_us: int
) -> None:
    """Store polished rationales in the ledger, one decision notice for each."""
    for result in polished:
        content = {
            "original": result.original.key,
            "text": result.text,
            "flags": result.checked.flags,
            "similarity": result.checked.similarity,
            "checked_by": result.checked.by,
        }
        text = json.dumps(content, sort_keys=True)
        ledger.notice(campaign, POLISH, result.original.task, result.model, text, at_us)


def read_polished_texts(notices: Sequence[LedgerNotice]) -> dict[str, PolishedText]:
    """Return each task's newest polished text, with its own confirmation or rejection only."""
    texts: dict[str, PolishedText] = {}
    for notice in notices:
        if notice.kind == POLISH:
            texts[notice.subject] = _parse_polished_text(notice)
    for notice in notices:
        decision = _parse_notice_json(notice) if notice.kind == CONFIRMATION else {}
        text = texts.get(notice.subject)
        if text is not None and decision.get("polish") == text.seq:
            standing = (
                PolishedTextState.CONFIRMED
                if decision.get("accepted") is True
                else PolishedTextState.REJECTED
            )
            texts[notice.subject] = replace(text, standing=standing, by=notice.by)
    return texts


def store_polish_confirmation(
    ledger: "Ledger", campaign: str, text: PolishedText, *, by: str, accepted: bool, at_us: int
) -> None:
    """Store a person's decision to accept or reject the polished `text`; earlier decisions are kept."""
    content = json.dumps({"polish": text.seq, "accepted": accepted}, sort_keys=True)
    ledger.notice(campaign, CONFIRMATION, text.task, by, content, at_us)


def _parse_polished_text(notice: LedgerNotice) -> PolishedText:
    content = _parse_notice_json(notice)
    return PolishedText(
        task=notice.subject,
        seq=notice.seq,
        model=notice.by,
        original=str(content.get("original", "")),
        text=str(content.get("text", "")),
        flags=tuple(map(str, content.get("flags", ()))),
        similarity=content.get("similarity"),
        standing=PolishedTextState.WAITING,
    )


def _parse_notice_json(notice: LedgerNotice) -> dict[str, Any]:
    try:
        content = json.loads(notice.said)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


_PARTS: Final = re.compile(
    r"problem description\W*?:(?P<problem>.*?)standard adherence\W*?:(?P<adherence>.*?)"
    r"(?:conclusion\W*?:.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_MARKS: Final = " \t\r\n-*#:"
"""Whitespace and markup of lists and headings, which models add around the parts."""


@dataclass(frozen=True, slots=True)
class PolishedRationale:
    """Rationale of a score that a language model merged from several, and that a person confirmed."""

    problem: str
    adherence: str

    def reworded(self, value: AnyValue) -> AnyValue:
        """Return `value` with the polished rationale instead of the annotator's; nothing else changes."""
        if not isinstance(value, RatingAnswer) or value.rating is None:
            return value
        rating = replace(value.rating, problem=self.problem, adherence=self.adherence)
        return RatingAnswer(rating=rating)


def read_confirmed_rationales(
    records: CampaignRecords, rule: ConsensusRule, notices: Sequence[LedgerNotice]
) -> dict[str, PolishedRationale]:
    """Return the confirmed polished rationales by task id, for tasks with a consensus score.

    A confirmation is valid while the score and the original rationales are unchanged. Texts without
    both parts, problem description and standard adherence, are omitted.
    """
    if records.campaign.interface is not AnnotationInterface.REALISM:
        return {}
    texts = read_polished_texts(notices)
    rationales: dict[str, PolishedRationale] = {}
    for original in iter_original_rationales(records, rule):
        text = texts.get(original.task)
        if text is None or (text.standing, text.original) != (
            PolishedTextState.CONFIRMED,
            original.key,
        ):
            continue
        if (rationale := parse_polished_rationale(text.text)) is not None:
            rationales[original.task] = rationale
    return rationales


def parse_polished_rationale(text: str) -> PolishedRationale | None:
    """Parse problem description and standard adherence of a polished text; `None` if one is missing."""
    if (match := _PARTS.search(text)) is None:
        return None
    problem, adherence = (match[part].strip(_MARKS) for part in ("problem", "adherence"))
    return PolishedRationale(problem, adherence) if problem and adherence else None
