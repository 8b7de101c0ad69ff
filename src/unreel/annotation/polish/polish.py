"""Asks a language model for polished rationales, through the way that every question takes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from unreel.annotation.polish.inputs import OriginalRationales, ask_for
from unreel.annotation.polish.meaning_check import PolishCheck, check
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.question import Condition, Instrument
from unreel.protocols.text import strip_thinking
from unreel.reviewers.contract import Reviewer, ReviewRequest
from unreel.reviewers.factory import ReviewerFactory
from unreel.reviewers.sentence_embeddings import SentenceEncoder

_INSTRUMENT: Final = Instrument("polish", 1)
_MOST_LETTERS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishResult:
    """Polished text of one clip's rationales, with the result of its check."""

    original: OriginalRationales
    model: str
    text: str
    checked: PolishCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class PolishFailure:
    """A clip of which the model gave no text, and why."""

    original: OriginalRationales
    failure: Failure


def polish_all(
    originals: Sequence[OriginalRationales],
    opener: ReviewerFactory,
    *,
    in_flight: int,
    encoder: SentenceEncoder | None,
) -> list[PolishResult | PolishFailure]:
    """Polish all rationales; return one result for each, in order, with failures as `PolishFailure`."""
    replies = asyncio.run(_ask_all_originals(originals, opener, in_flight))
    return [
        PolishFailure(original=original, failure=reply)
        if isinstance(reply, Failure)
        else PolishResult(
            original=original,
            model=opener.name,
            text=reply,
            checked=check(original, reply, encoder=encoder),
        )
        for original, reply in zip(originals, replies, strict=True)
    ]


async def _ask_all_originals(
    originals: Sequence[OriginalRationales], opener: ReviewerFactory, in_flight: int
) -> list[str | Failure]:
    reviewer = opener.open().reviewer
    gate = asyncio.Semaphore(in_flight)

    async def one(original: OriginalRationales) -> str | Failure:
        async with gate:
            return await _ask_reviewer(original, reviewer)

    try:
        return list(await asyncio.gather(*(one(original) for original in originals)))
    finally:
        await reviewer.close()


async def _ask_reviewer(original: OriginalRationales, reviewer: Reviewer) -> str | Failure:
    sheet = ReviewRequest(
        key=digest("polish", reviewer.name, original.key),
        instrument=_INSTRUMENT,
        prompt=ask_for(original),
        exhibits=(),
        condition=Condition(),
    )
    outcome = await reviewer.answer(sheet)
    if isinstance(outcome, Failure):
        return outcome
    text = strip_thinking(outcome.text).strip()[:_MOST_LETTERS]
    return text or Failure(FailureReason.EMPTY_REPLY, "the model polished nothing")
