"""One question with the answer to learn: the very question that an evaluation puts."""

from dataclasses import dataclass
from typing import Any

from unreel.core.clip import Clip
from unreel.core.question import Question
from unreel.reviewers.contract import ReviewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExample:
    """One annotation row as a lesson. Nothing of it is decoded or tokenised before it is shown."""

    key: str
    """Of the question and the row: decides order and seeds."""
    name: str
    """What its benchmark calls the clip or pair."""
    question: Question
    clips: tuple[Clip, ...]
    truth: Any
    """Of its row, in the words of the question's instrument."""
    source: str
    """The scene that the clips show or were made from; "" where nobody says."""
    creator: str = ""
    data: int = 0
    """Which `[[data]]` of the recipe it comes from, counted from 0."""
    answer: str | None = None
    """What is learned in place of the answer that the truth gives: one that a model gave and that earned enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExample:
    """An example as shown: the sheet that a reviewer would receive, and the answer to learn."""

    example: TrainingExample
    sheet: ReviewRequest
    target: str
    box_space: str | None
    """In the words of `declare_space`; `None` for an instrument that asks for no box."""
