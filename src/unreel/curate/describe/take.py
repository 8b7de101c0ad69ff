"""Real clips are told by a vision model and sorted into easy and hard."""

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.core.clip import Clip
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.curate.describe.difficulty import Difficulty, Diversity, measure_diversity
from unreel.curate.describe.section import DescribeSection
from unreel.curate.describe.story import CONDITION, tell_story
from unreel.curate.piece import FACTS, Piece, sift
from unreel.curate.state import State, Work
from unreel.curate.step import StepName, to_json
from unreel.engine.access import Access, local_copy
from unreel.engine.stage import Resources, Row, Stage, failed
from unreel.media.access import media_reader
from unreel.reviewers.endpoint.keys import Contact, contact
from unreel.reviewers.endpoint.retrying import Patience
from unreel.reviewers.endpoint.reviewer import EndpointReviewer, Limits, Manner, endpoint_name

DESCRIBE: Final = "describe"
_SMALL_PIXELS: Final = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One paragraph on a clip, who told it, and how diverse the clip is."""

    story: str
    teller: str
    diversity: Diversity
    difficulty: Difficulty


_STORY: Final = TypeAdapter(Story)


def take(section: DescribeSection, work: Work, state: State) -> State:
    """Real pieces with their story and difficulty; a story stands in where a clip has no prompt."""
    settings = {
        "teller": endpoint_name(section.model, _manner(section)),
        "condition": str(CONDITION),
    }
    step = StepName(name=DESCRIBE, version=1, settings=settings, finds=_STORY)
    real = [piece for piece in state.pieces if piece.entry.label is Label.REAL]
    subjects = [
        piece.subject(facts=FACTS.dump_python(piece.clip.facts, mode="json")) for piece in real
    ]
    found = work.bench.ask_stage(step, subjects, DescribeStage(section, work.bench.access))
    stories = dict(zip((piece.id for piece in real), found, strict=True))
    own = [stories.get(piece.id) for piece in state.pieces]
    return state.after(sift(DESCRIBE, state.pieces, own, _described))


def _described(piece: Piece, story: Story) -> Piece:
    entry = replace(
        piece.entry,
        prompt=piece.entry.prompt or story.story,
        difficulty=piece.entry.difficulty or story.difficulty.value,
    )
    return replace(piece, entry=entry, notes={**piece.notes, DESCRIBE: story})


class DescribeStage(Stage):
    """Tells the story of each clip from eight frames, and measures how diverse it is."""

    def __init__(self, section: DescribeSection, access: Access) -> None:
        self.resources = Resources(in_flight=section.max_connections)
        self._section, self._access = section, access
        self._asked = contact(section.model, key_hosts=access.settings.key_hosts)
        self._open = ExitStack()

    def setup(self) -> None:
        self._open = ExitStack()
        access = self._access
        self._reader = self._open.enter_context(
            media_reader(access.settings, trusted=access.trusted)
        )
        self._teller = _build(self._section, self._asked)

    async def __call__(self, row: Row) -> Row:
        facts = FACTS.validate_python(json.loads(row["_given"])["facts"])
        with local_copy(row["location"], self._access) as file:
            clip = Clip(id=row["clip"], location=str(file), facts=facts)
            found = await self._describe(clip, file)
        if isinstance(found, Failure):
            return failed(row, found)
        return row | {"found": to_json(_STORY.dump_python(found, mode="json"))}

    async def _describe(self, clip: Clip, file: Path) -> Story | Failure:
        story = await tell_story(clip, self._teller, reader=self._reader)
        if isinstance(story, Failure):
            return story
        frames = self._reader.frames(
            file, sampling=CONDITION.sampling, encoding="rgb24", longest_side=_SMALL_PIXELS
        )
        if isinstance(frames, Failure):
            return frames
        pictures = [frame.rgb() for frame in frames.frames]
        diversity = measure_diversity(story, pictures, length_s=clip.facts.video.duration_s)
        return Story(
            story=story,
            teller=self._teller.name,
            diversity=diversity,
            difficulty=diversity.difficulty,
        )

    async def close(self) -> None:
        await self._teller.close()
        self._open.close()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "resources": self.resources,
            "_section": self._section,
            "_access": self._access,
            "_asked": self._asked,
        }


def _manner(section: DescribeSection) -> Manner:
    return Manner(max_tokens=section.max_tokens)


def _build(section: DescribeSection, asked: Contact) -> EndpointReviewer:
    half_s = section.deadline_s / 2
    return EndpointReviewer(
        section.model,
        api_key=asked.read_key(),
        manner=_manner(section),
        limits=Limits(
            max_connections=section.max_connections,
            patience=Patience(
                deadline_s=section.deadline_s, attempt_s=half_s, outage_s=min(60.0, half_s)
            ),
        ),
    )
