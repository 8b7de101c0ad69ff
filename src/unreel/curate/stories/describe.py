"""Asks a vision model to tell what happens in each clip, from 8 frames, and keeps what it said."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pydantic import TypeAdapter, ValidationError

from unreel.core.answer import Reply
from unreel.core.clip import Clip, ClipId
from unreel.core.errors import UnreadableSourceError
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.question import Condition, Instrument, Question
from unreel.core.writing import Folder
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
_IN_FLIGHT: Final = 32
"""Clips whose frames are held at once; the model's own pace decides how many are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A clip to tell a story of."""

    clip: ClipId
    path: Path
    facts: ClipFacts


@dataclass(frozen=True, slots=True)
class Story:
    """One paragraph on a clip, and who told it."""

    text: str
    teller: str


class Teller(Protocol):
    """Answers sheets, many at a time within one event loop: any reviewer behind an endpoint."""

    @property
    def name(self) -> str:
        """Stable identity: the same name means the same weights and decoding."""
        ...

    async def answer(self, sheet: Sheet) -> Reply | Failure:
        """Answer `sheet` once; a failure is an answer."""
        ...

    async def close(self) -> None:
        """Let go of connections; harmless when called twice."""
        ...


def describe_all(
    clips: Sequence[Described],
    build: Callable[[], Teller],
    *,
    reader: MediaReader,
    cache: Path,
) -> Mapping[ClipId, Story | Failure]:
    """A story, or why there is none, of every clip; what `cache` holds is not asked again.

    A failure is not kept, so that a later call asks again. `build` makes the teller inside the event
    loop; it is closed here. Call from outside of any loop.
    """
    return asyncio.run(_describe_all(clips, build, reader, cache))


async def describe(clip: Described, teller: Teller, *, reader: MediaReader) -> Story | Failure:
    """The story of one clip."""
    sampled = reader.frames(clip.path, sampling=CONDITION.sampling, longest_side=LONGEST_SIDE)
    if isinstance(sampled, Failure):
        return sampled
    frames = tuple(
        ShownFrame(index=f.index, at_s=f.at_s, width=f.width, height=f.height, jpeg=f.data)
        for f in sampled.frames
    )
    named = Clip(id=clip.clip, location=str(clip.path), facts=clip.facts)
    shown = Exhibit(clip=named, frames=frames)
    reply = await teller.answer(
        Sheet(
            key=_key(clip.clip, teller.name),
            instrument=_INSTRUMENT,
            prompt=STORYBOARD.text,
            exhibits=(shown,),
            condition=CONDITION,
        )
    )
    if isinstance(reply, Failure):
        return reply
    text = " ".join(on_one_line(after_thinking(reply.text)).split())
    if not text:
        return Failure(FailureReason.EMPTY_REPLY, "the model told no story")
    return Story(text, teller.name)


async def _describe_all(
    clips: Sequence[Described], build: Callable[[], Teller], reader: MediaReader, cache: Path
) -> dict[ClipId, Story | Failure]:
    teller = build()
    try:
        kept = dict(_read_cache(cache))
        keys = {clip.clip: _key(clip.clip, teller.name) for clip in clips}
        stories: dict[ClipId, Story | Failure] = {
            clip: Story(kept[key], teller.name) for clip, key in keys.items() if key in kept
        }
        missing = {clip.clip: clip for clip in clips if clip.clip not in stories}
        waiting = iter(missing.values())
        with Folder(cache.parent).append(cache.name) as file:
            file.write(b"\n")  # a kill may have cut the last line

            async def work() -> None:
                for clip in waiting:
                    story = await describe(clip, teller, reader=reader)
                    stories[clip.clip] = story
                    if isinstance(story, Story):
                        line = _Line(key=keys[clip.clip], text=story.text)
                        file.write(_LINE.dump_json(line) + b"\n")
                        file.flush()

            async with asyncio.TaskGroup() as workers:
                for _ in range(min(len(missing), _IN_FLIGHT)):
                    workers.create_task(work())
    except OSError as error:
        remedy = "Name a file that you may read and write, or one that is not there yet"
        raise UnreadableSourceError(str(cache), f"no cache of stories ({error})", remedy) from error
    finally:
        await teller.close()
    return {clip.clip: stories[clip.clip] for clip in clips}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    key: str
    text: str


_LINE: Final = TypeAdapter(_Line)


def _read_cache(path: Path) -> Iterator[tuple[str, str]]:
    """All whole lines; one that a kill cut short was never answered."""
    try:
        found = Folder(path.parent).read(path.name)
    except FileNotFoundError:
        return
    with found as file:
        for line in file:
            try:
                read = _LINE.validate_json(line)
            except ValidationError:
                continue
            yield read.key, read.text


def _key(clip: ClipId, teller: str) -> str:
    return Question(subject=clip, instrument=_INSTRUMENT, condition=CONDITION).key(teller)
