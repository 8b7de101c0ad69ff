"""Asks a language model for polished rationales, through the way that every question takes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from unreel.annotate.polish.checking import Checked, check
from unreel.annotate.polish.originals import Original, ask_for
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.question import Condition, Instrument
from unreel.protocols.text import after_thinking
from unreel.reviewers.contract import Reviewer, Sheet
from unreel.reviewers.opening import Opener
from unreel.reviewers.sentences import Encoder

_INSTRUMENT: Final = Instrument("polish", 1)
_MOST_LETTERS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Polished:
    """Polished text of one clip's rationales, with the result of its check."""

    original: Original
    model: str
    text: str
    checked: Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpolished:
    """A clip of which the model gave no text, and why."""

    original: Original
    failure: Failure


def polish_all(
    originals: Sequence[Original], opener: Opener, *, in_flight: int, encoder: Encoder | None
) -> list[Polished | Unpolished]:
    """One answer for each, in order; a question that fails is an answer too."""
    replies = asyncio.run(_ask(originals, opener, in_flight))
    return [
        Unpolished(original=original, failure=reply)
        if isinstance(reply, Failure)
        else Polished(
            original=original,
            model=opener.name,
            text=reply,
            checked=check(original, reply, encoder=encoder),
        )
        for original, reply in zip(originals, replies, strict=True)
    ]


async def _ask(
    originals: Sequence[Original], opener: Opener, in_flight: int
) -> list[str | Failure]:
    reviewer = opener.open().reviewer
    gate = asyncio.Semaphore(in_flight)

    async def one(original: Original) -> str | Failure:
        async with gate:
            return await _put(original, reviewer)

    try:
        return list(await asyncio.gather(*(one(original) for original in originals)))
    finally:
        await reviewer.close()


async def _put(original: Original, reviewer: Reviewer) -> str | Failure:
    sheet = Sheet(
        key=digest("polish", reviewer.name, original.key),
        instrument=_INSTRUMENT,
        prompt=ask_for(original),
        exhibits=(),
        condition=Condition(),
    )
    outcome = await reviewer.answer(sheet)
    if isinstance(outcome, Failure):
        return outcome
    text = after_thinking(outcome.text).strip()[:_MOST_LETTERS]
    return text or Failure(FailureReason.EMPTY_REPLY, "the model polished nothing")
