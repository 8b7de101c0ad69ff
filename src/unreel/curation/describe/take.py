"""Step that describes real clips with a vision model and sorts them into easy and hard."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import Clip
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.curation.describe.difficulty import ClipDiversity, DifficultyLevel, measure_diversity
from unreel.curation.describe.section import DescribeSection
from unreel.curation.describe.story import CONDITION, tell_story
from unreel.curation.piece import ClipSegment, sift
from unreel.curation.pieces import ReiterableStream
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import StepName, StepSubject, as_plain, to_json
from unreel.engine.access import StorageAccess, local_copy
from unreel.engine.media_stage import MediaStage
from unreel.engine.stage import Row, WorkerResources, failed
from unreel.reviewers.asking import ReviewDispatcher
from unreel.reviewers.opening import ReviewerFactory

DESCRIBE: Final = "describe"
_FACTS: Final = TypeAdapter(ClipFacts)
_SMALL_PIXELS: Final = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipStory:
    """Description of a clip, its author, and the diversity of the clip."""

    story: str
    teller: str
    diversity: ClipDiversity
    difficulty: DifficultyLevel


def take(section: DescribeSection, work: CurationJob, state: CurationState) -> CurationState:
    """Return real segments with description and difficulty; the description is the fallback prompt."""
    access = work.bench.access
    opener = section.opener(key_hosts=access.settings.key_hosts)
    settings = {"teller": opener.name, "condition": str(CONDITION)}
    stage = DescribeStage(opener, access, in_flight=section.max_connections)
    step = StepName(name=DESCRIBE, version=1, settings=settings, finds=TypeAdapter(ClipStory))
    pieces = state.pieces
    subjects = ReiterableStream(lambda: (_subject(piece) for piece in pieces if _is_real(piece)))
    found = work.bench.ask_stage(step, subjects, stage)
    own = (next(found) if _is_real(piece) else None for piece in pieces)
    return state.after(work.shelf.sift(DESCRIBE, sift(DESCRIBE, pieces, own, _described)))


def _is_real(piece: ClipSegment) -> bool:
    return piece.entry.label is Label.REAL


def _subject(piece: ClipSegment) -> StepSubject:
    return piece.subject(facts=as_plain(piece.clip.facts))


def _described(piece: ClipSegment, story: ClipStory) -> ClipSegment:
    entry = replace(
        piece.entry,
        prompt=piece.entry.prompt or story.story,
        difficulty=piece.entry.difficulty or story.difficulty.value,
    )
    return replace(piece, entry=entry, notes={**piece.notes, DESCRIBE: as_plain(story)})


class DescribeStage(MediaStage):
    """Stage that describes each clip from eight frames and measures its diversity."""

    opened = MediaStage.opened | {"_desk", "_teller"}

    def __init__(self, opener: ReviewerFactory, access: StorageAccess, *, in_flight: int) -> None:
        super().__init__(access, WorkerResources.asking(opener, in_flight))
        self._opener = opener

    def setup(self) -> None:
        super().setup()
        self._desk = ReviewDispatcher(self._reader)
        self._open.callback(self._desk.close)
        self._teller = self._opener.open()

    async def __call__(self, row: Row) -> Row:
        facts = _FACTS.validate_python(json.loads(row["_given"])["facts"])
        with local_copy(row["location"], self._access) as file:
            clip = Clip(id=row["clip"], location=str(file), facts=facts)
            found = await self._describe(clip, file)
        if isinstance(found, Failure):
            return failed(row, found)
        return row | {"found": to_json(as_plain(found))}

    async def _describe(self, clip: Clip, file: Path) -> ClipStory | Failure:
        story = await tell_story(clip, self._teller, desk=self._desk)
        if isinstance(story, Failure):
            return story
        frames = self._reader.frames(
            file, sampling=CONDITION.sampling, encoding="rgb24", longest_side=_SMALL_PIXELS
        )
        if isinstance(frames, Failure):
            return frames
        pictures = [frame.rgb() for frame in frames.frames]
        diversity = measure_diversity(story, pictures, length_s=clip.facts.video.duration_s)
        return ClipStory(
            story=story,
            teller=self._opener.name,
            diversity=diversity,
            difficulty=diversity.difficulty,
        )

    async def close(self) -> None:
        await self._teller.reviewer.close()
        super().close()
