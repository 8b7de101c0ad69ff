"""Step that describes real clips with a vision model and rates them as easy or hard."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter
from scipy import ndimage

from unreel.asking.asker import Asker
from unreel.core.clip import Clip, ClipFacts
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.question import Condition, Instrument, Question
from unreel.curation.recipe import DescribeRecipeSection
from unreel.curation.segment import ClipSegment, filter_segments
from unreel.curation.segment_table import ReiterableStream
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import (
    CurationStepRequest,
    VersionedCurationStep,
    format_canonical_json,
    to_json_values,
)
from unreel.engine.stage import MediaStage, Row, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.media.decode import Rgb
from unreel.media.picture import scale_down_picture
from unreel.protocols.answer_text import strip_thinking
from unreel.protocols.presentation import quote_text_for_prompt
from unreel.protocols.reality.prompts import STORYBOARD
from unreel.reviewers.factory import ReviewerFactory, ReviewerWithPrices

EASY_LENGTH_S = 5
EASY_ACTIONS = 1
EASY_OBJECTS = 6
EASY_BACKGROUND = 0.25

_SMALL = 96
_BLOCK = 5
_FLAT_LEVELS = 6.0
_NOT_PLAIN = 2
"""Number of exceeded limits, other than length, that makes a clip hard."""
_STEP = re.compile(
    r"\b(then|next|afterwards?|after that|subsequently|finally|later|followed by|"
    r"before (?:turning|moving|picking|placing|putting|cutting|taking))\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:an?|the|his|her|their|its|two|three|several|some)\s+((?:[a-z'-]+\s+){0,2}?[a-z'-]+)"
    r"(?=\s+(?:is|are|was|were|and|or|in|on|at|of|with|by|to|into|onto|from|over|under|through|as|"
    r"while|that|which|who|[a-z]+s|[a-z]+ing)\b|[.,;:!?]|$)",
    re.IGNORECASE,
)


class ClipDifficulty(StrEnum):
    """Difficulty of a clip, easy or hard, as in Video Reality Test."""

    EASY = "easy"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipComplexity:
    """Complexity of a clip in four measures: length, actions, objects and background detail."""

    length_s: Fraction
    n_actions: int
    n_objects: int
    background: float

    @property
    def difficulty(self) -> ClipDifficulty:
        """Return the difficulty of the clip: easy or hard.

        A clip is hard if it lasts more than `EASY_LENGTH_S` seconds, or if at least two of its
        other three measures (actions, objects, background) exceed their limits.
        """
        not_plain = (
            (self.n_actions > EASY_ACTIONS)
            + (self.n_objects > EASY_OBJECTS)
            + (self.background > EASY_BACKGROUND)
        )
        hard = self.length_s > EASY_LENGTH_S or not_plain >= _NOT_PLAIN
        return ClipDifficulty.HARD if hard else ClipDifficulty.EASY


def measure_clip_complexity(
    story: str, frames: Sequence[Rgb], *, length_s: Fraction
) -> ClipComplexity:
    """Return the four complexity measures of a clip from its description, frames and length."""
    return ClipComplexity(
        length_s=length_s,
        n_actions=count_described_actions(story),
        n_objects=count_described_objects(story),
        background=measure_background_detail(frames),
    )


def count_described_actions(story: str) -> int:
    """Count the actions in a description: one, plus one for each word of sequence such as "then"."""
    return 1 + len(_STEP.findall(story))


def count_described_objects(story: str) -> int:
    """Count the distinct objects in a description, each identified by the last word of its name."""
    heads = (name.split()[-1].lower() for name in _NAMED.findall(story))
    return len({head.removesuffix("s") for head in heads})


def measure_background_detail(frames: Sequence[Rgb]) -> float:
    """Return the fraction of the median background that is not flat: 0 is plain, 1 is busy."""
    if not frames:
        raise InvalidValueError("a background needs a frame to be seen in. Give the sampled frames")
    small = [scale_down_picture(frame, _SMALL).astype(np.float32).mean(axis=2) for frame in frames]
    behind = np.median(small, axis=0)
    mean = ndimage.uniform_filter(behind, _BLOCK)
    spread = np.sqrt(np.maximum(ndimage.uniform_filter(behind**2, _BLOCK) - mean**2, 0))
    return float(np.mean(spread > _FLAT_LEVELS))


CONDITION = Condition(sampling="uniform-8", prompt=f"storyboard-{digest(STORYBOARD.text)[:12]}")
"""Condition of the question. It contains the prompt's hash: a changed prompt changes every key."""
_INSTRUMENT = Instrument("storyboard", 1)


async def describe_clip(clip: Clip, reviewer: ReviewerWithPrices, *, asker: Asker) -> str | Failure:
    """Ask the model `reviewer` to describe the clip, a local file, and return its text as one paragraph."""
    question = Question(subject=clip.id, instrument=_INSTRUMENT, condition=CONDITION)
    reply = await asker.ask(question, [clip], reviewer, prompt=STORYBOARD.text)
    if isinstance(reply.outcome, Failure):
        return reply.outcome
    text = " ".join(quote_text_for_prompt(strip_thinking(reply.outcome.text)).split())
    return text or Failure(FailureReason.EMPTY_REPLY, "the model returned no description")


DESCRIBE = "describe"
_FACTS = TypeAdapter(ClipFacts)
_SMALL_PIXELS = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipDescription:
    """Description of a clip, the model that wrote it, and the complexity and difficulty of the clip."""

    story: str
    teller: str
    diversity: ClipComplexity
    difficulty: ClipDifficulty


def run_describe_step(
    section: DescribeRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add difficulty and a model's description, also as a missing prompt, to each real segment."""
    access = job.context.access
    factory = section.opener(key_hosts=access.settings.key_hosts)
    settings = {"teller": factory.name, "condition": str(CONDITION)}
    stage = ClipDescriptionStage(factory, access, in_flight=section.max_connections)
    step = VersionedCurationStep(
        name=DESCRIBE, version=1, settings=settings, finds=TypeAdapter(ClipDescription)
    )
    segments = state.segments
    subjects = ReiterableStream(
        lambda: (
            _build_describe_request(segment) for segment in segments if _is_real_segment(segment)
        )
    )
    descriptions = job.context.ask_stage(step, subjects, stage)
    results = (next(descriptions) if _is_real_segment(segment) else None for segment in segments)
    return state.after(
        job.directory.write(
            DESCRIBE, filter_segments(DESCRIBE, segments, results, _add_description)
        )
    )


def _is_real_segment(segment: ClipSegment) -> bool:
    return segment.entry.label is Label.REAL


def _build_describe_request(segment: ClipSegment) -> CurationStepRequest:
    return segment.subject(facts=to_json_values(segment.clip.facts))


def _add_description(segment: ClipSegment, description: ClipDescription) -> ClipSegment:
    entry = replace(
        segment.entry,
        prompt=segment.entry.prompt or description.story,
        difficulty=segment.entry.difficulty or description.difficulty.value,
    )
    return replace(
        segment, entry=entry, notes={**segment.notes, DESCRIBE: to_json_values(description)}
    )


class ClipDescriptionStage(MediaStage):
    """Stage that has a model describe each clip from eight frames, and measures the clip's complexity."""

    opened = MediaStage.opened | {"_asker", "_teller"}

    def __init__(
        self, factory: ReviewerFactory, access: ClipAccessSettings, *, in_flight: int
    ) -> None:
        super().__init__(access, WorkerResources.asking(factory, in_flight))
        self._opener = factory

    def setup(self) -> None:
        super().setup()
        self._asker = Asker(self._reader)
        self._open.callback(self._asker.close)
        self._teller = self._opener.open()

    async def __call__(self, row: Row) -> Row:
        facts = _FACTS.validate_python(json.loads(row["_given"])["facts"])
        with provide_local_clip_file(row["location"], self._access) as file:
            clip = Clip(id=row["clip"], location=str(file), facts=facts)
            description = await self._describe(clip, file)
        if isinstance(description, Failure):
            return convert_to_failed_row(row, description)
        return row | {"found": format_canonical_json(to_json_values(description))}

    async def _describe(self, clip: Clip, file: Path) -> ClipDescription | Failure:
        story = await describe_clip(clip, self._teller, asker=self._asker)
        if isinstance(story, Failure):
            return story
        frames = self._reader.frames(
            file, sampling=CONDITION.sampling, encoding="rgb24", longest_side=_SMALL_PIXELS
        )
        if isinstance(frames, Failure):
            return frames
        pictures = [frame.rgb() for frame in frames.frames]
        diversity = measure_clip_complexity(story, pictures, length_s=clip.facts.video.duration_s)
        return ClipDescription(
            story=story,
            teller=self._opener.name,
            diversity=diversity,
            difficulty=diversity.difficulty,
        )

    async def close(self) -> None:
        await self._teller.reviewer.close()
        super().close()
