"""Description of a clip by a vision model, from 8 frames."""

from typing import Final

from unreel.core.clip import Clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.question import Condition, Instrument, Question
from unreel.protocols.framing import on_one_line
from unreel.protocols.reality.prompts import STORYBOARD
from unreel.protocols.text import after_thinking
from unreel.reviewers.asking import ReviewDispatcher
from unreel.reviewers.opening import OpenReviewer

CONDITION: Final = Condition(
    sampling="uniform-8", prompt=f"storyboard-{digest(STORYBOARD.text)[:12]}"
)
"""The prompt's hash is part of every key: a changed word is another question."""
_INSTRUMENT: Final = Instrument("storyboard", 1)


async def tell_story(clip: Clip, teller: OpenReviewer, *, desk: ReviewDispatcher) -> str | Failure:
    """One paragraph on the clip, which is a file of this machine."""
    question = Question(subject=clip.id, instrument=_INSTRUMENT, condition=CONDITION)
    asked = await desk.ask(question, [clip], teller, prompt=STORYBOARD.text)
    if isinstance(asked.outcome, Failure):
        return asked.outcome
    text = " ".join(on_one_line(after_thinking(asked.outcome.text)).split())
    return text or Failure(FailureReason.EMPTY_REPLY, "the model returned no description")
