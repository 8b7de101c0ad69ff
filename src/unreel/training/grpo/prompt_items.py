"""Distinct questions of examples, each with all its truths and the key that scores its answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unreel.protocols.protocol import get_protocol
from unreel.protocols.space import declare_space
from unreel.reviewers.contract import ReviewRequest
from unreel.training.examples.example import ShownExample, TrainingExample
from unreel.training.rewards.key import AnswerKey
from unreel.training.rewards.terms import RewardTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptItem:
    """Question as shown to a model, with the key that scores its answers."""

    sheet: ReviewRequest
    key: AnswerKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardedQuestion:
    """Question whose answers are rewarded by the best-matching truth."""

    example: TrainingExample
    """Of its first row."""
    truths: tuple[Any, ...]

    @property
    def called(self) -> str:
        """Return the correct answer by the ground truth, as one word."""
        return get_protocol(self.example.question.instrument.protocol).wording.right(self.truths[0])

    def key(self, lesson: ShownExample, terms: RewardTerms) -> AnswerKey:
        """Return the key that scores answers to it."""
        question, space = self.example.question, None
        if lesson.box_space is not None:
            width, height = self.example.clips[0].size
            space = declare_space(lesson.box_space, width=width, height=height)
        return AnswerKey(
            protocol=question.instrument.protocol,
            prompt=question.condition.prompt,
            space=space,
            truths=self.truths,
            terms=terms,
        )


def group_by_question(examples: Sequence[TrainingExample]) -> list[RewardedQuestion]:
    """Return the questions of `examples` in order; a clip with several rows is asked once."""
    rows: dict[Any, list[TrainingExample]] = {}
    for example in examples:
        rows.setdefault(example.question, []).append(example)
    return [
        RewardedQuestion(example=same[0], truths=tuple(each.truth for each in same))
        for same in rows.values()
    ]
