"""The questions behind examples: each once, with all its truths, and with what its answers are marked by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unreel.protocols.protocol import protocol
from unreel.protocols.space import declare_space
from unreel.reviewers.contract import Sheet
from unreel.train.examples.example import Example, Lesson
from unreel.train.rewards.key import AnswerKey
from unreel.train.rewards.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A question as a model is shown it, and what its answers are marked by."""

    sheet: Sheet
    key: AnswerKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, whose answers are paid by the truth that they meet best."""

    example: Example
    """Of its first row."""
    truths: tuple[Any, ...]

    @property
    def called(self) -> str:
        """The answer that its truth calls for, in a word."""
        return protocol(self.example.question.instrument.protocol).wording.right(self.truths[0])

    def key(self, lesson: Lesson, terms: Terms) -> AnswerKey:
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


def by_question(examples: Sequence[Example]) -> list[Asked]:
    """The questions of `examples` in their order: a clip with several rows is asked once."""
    rows: dict[Any, list[Example]] = {}
    for example in examples:
        rows.setdefault(example.question, []).append(example)
    return [
        Asked(example=same[0], truths=tuple(each.truth for each in same)) for same in rows.values()
    ]
