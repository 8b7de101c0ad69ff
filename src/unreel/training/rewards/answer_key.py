"""Answer keys in JSON that compute the rewards of answers, and questions with all their truths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from unreel.benchmarks.export.exported_question import format_truths_json, parse_truths_json
from unreel.core.input_files import parse_json
from unreel.protocols.box_space import BoxSpace, parse_box_space
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.recipes.validation import Count, RecipeSection, Text, validate_recipe_sections
from unreel.reviewers.contract import ReviewRequest
from unreel.training.examples.example import TrainingExample, TrainingExampleInput
from unreel.training.rewards.reward import NOTHING, AnswerReward, compute_answer_reward
from unreel.training.rewards.reward_settings import AnswerRewardSettings

LONGEST: Final = 20_000
"""Maximum number of characters of an answer. A longer answer gets no reward, because parsing it would delay the
training."""


class _BoxSpaceJson(RecipeSection):
    name: Text
    width: Count
    height: Count


class _AnswerKeyJson(RecipeSection):
    protocol: Text
    prompt: Text
    space: _BoxSpaceJson | None
    truths: str
    terms: AnswerRewardSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """Ground truth and settings that determine the rewards of all answers to one question."""

    protocol: str
    prompt: str
    """Name of the prompt variant of the question."""
    space: BoxSpace | None
    """Coordinate space of the boxes; `None` for a protocol without boxes."""
    truths: tuple[Any, ...]
    terms: AnswerRewardSettings

    def mark(self, text: str) -> AnswerReward:
        """Return the reward of the answer `text` by the strict parser; 0, without exception, if unparsable."""
        if len(text) > LONGEST:
            return NOTHING
        reading = AnswerContext(mode="strict", prompt=self.prompt, space=self.space)
        verdict = get_protocol(self.protocol).parse(text, reading)
        return compute_answer_reward(verdict, self.truths, self.terms, prompt=self.prompt)

    def write(self) -> str:
        """Return the answer key as JSON."""
        space = self.space
        return _AnswerKeyJson(
            protocol=self.protocol,
            prompt=self.prompt,
            space=_BoxSpaceJson(name=space.name, width=space.width, height=space.height)
            if space
            else None,
            truths=format_truths_json(self.protocol, self.truths),
            terms=self.terms,
        ).model_dump_json()


def parse_answer_key(text: str) -> AnswerKey:
    """Parse the JSON of `AnswerKey.write`; raise `InvalidSettingError` if it is another text."""
    written = validate_recipe_sections(_AnswerKeyJson, parse_json(text.encode()))
    space = written.space
    return AnswerKey(
        protocol=written.protocol,
        prompt=written.prompt,
        space=BoxSpace(space.name, space.width, space.height) if space else None,
        truths=parse_truths_json(written.protocol, written.truths),
        terms=written.terms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptWithAnswerKey:
    """A question as model input, with the answer key that computes the rewards of its answers."""

    sheet: ReviewRequest
    key: AnswerKey


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWithTruths:
    """A question with all its ground truths; an answer is rewarded by the best-matching one."""

    example: TrainingExample
    """Example of the question's first annotation row."""
    truths: tuple[Any, ...]

    @property
    def called(self) -> str:
        """Return the label of the question's first ground truth, as one word."""
        return get_protocol(self.example.question.instrument.protocol).wording.right(self.truths[0])

    def key(self, lesson: TrainingExampleInput, terms: AnswerRewardSettings) -> AnswerKey:
        """Return the answer key of the question, from its model input `lesson` and the settings `terms`."""
        question, space = self.example.question, None
        if lesson.box_space is not None:
            width, height = self.example.clips[0].size
            space = parse_box_space(lesson.box_space, width=width, height=height)
        return AnswerKey(
            protocol=question.instrument.protocol,
            prompt=question.condition.prompt,
            space=space,
            truths=self.truths,
            terms=terms,
        )


def group_examples_by_question(examples: Sequence[TrainingExample]) -> list[QuestionWithTruths]:
    """Group `examples` by their question, in order; a clip with several rows gives one question."""
    rows: dict[Any, list[TrainingExample]] = {}
    for example in examples:
        rows.setdefault(example.question, []).append(example)
    return [
        QuestionWithTruths(example=same[0], truths=tuple(row.truth for row in same))
        for same in rows.values()
    ]
