"""Asks a vision model to tell what happens in a clip, from 8 frames."""

from pathlib import Path
from typing import Final, Protocol

from unreel.core.answer import Reply
from unreel.core.clip import Clip, ClipId
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.question import Condition, Instrument, Question
from unreel.media.reader import MediaReader
from unreel.protocols.framing import on_one_line
from unreel.protocols.reality.prompts import STORYBOARD
from unreel.protocols.showing import LONGEST_SIDE
from unreel.protocols.text import after_thinking
from unreel.reviewers.contract import Exhibit, Sheet, ShownFrame

CONDITION: Final = Condition(
    sampling="uniform-8", prompt=f"storyboard-{digest(STORYBOARD.text)[:12]}"
)
"""The prompt's hash is part of every key: a changed word is another question."""
_INSTRUMENT: Final = Instrument("storyboard", 1)


class Teller(Protocol):
    """Answers sheets, many at a time within one event loop: any reviewer behind an endpoint."""

    @property
    def name(self) -> str:
        """Stable identity: the same name means the same weights and decoding."""
        ...

    async def answer(self, sheet: Sheet) -> Reply | Failure:
        """Answer `sheet` once; a failure is an answer."""
        ...


async def tell_story(clip: Clip, teller: Teller, *, reader: MediaReader) -> str | Failure:
    """One paragraph on the clip, which is a file of this machine."""
    sampled = reader.frames(
        Path(clip.location), sampling=CONDITION.sampling, longest_side=LONGEST_SIDE
    )
    if isinstance(sampled, Failure):
        return sampled
    frames = tuple(
        ShownFrame(index=f.index, at_s=f.at_s, width=f.width, height=f.height, jpeg=f.data)
        for f in sampled.frames
    )
    reply = await teller.answer(
        Sheet(
            key=_key(clip.id, teller.name),
            instrument=_INSTRUMENT,
            prompt=STORYBOARD.text,
            exhibits=(Exhibit(clip=clip, frames=frames),),
            condition=CONDITION,
        )
    )
    if isinstance(reply, Failure):
        return reply
    text = " ".join(on_one_line(after_thinking(reply.text)).split())
    return text or Failure(FailureReason.EMPTY_REPLY, "the model told no story")


def _key(clip: ClipId, teller: str) -> str:
    return Question(subject=clip, instrument=_INSTRUMENT, condition=CONDITION).key(teller)
