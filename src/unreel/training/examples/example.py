"""One question with the answer to learn: the very question that an evaluation puts."""

from dataclasses import dataclass
from typing import Any

from unreel.core.clip import Clip
from unreel.core.question import Question
from unreel.reviewers.contract import ReviewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExample:
    """One annotation row as a training example; it is decoded and tokenised only when shown."""

    key: str
    """Of the question and the row: decides order and seeds."""
    name: str
    """What its benchmark calls the clip or pair."""
    question: Question
    clips: tuple[Clip, ...]
    truth: Any
    """Ground truth of its row, in the type of its protocol."""
    source: str
    """Scene of the clips; "" if unknown."""
    creator: str = ""
    data: int = 0
    """Which `[[data]]` of the recipe it comes from, counted from 0."""
    answer: str | None = None
    """Target instead of the one from the ground truth: a sampled answer with a sufficient reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExample:
    """Example as shown: the request that a reviewer would receive, and the answer to learn."""

    example: TrainingExample
    sheet: ReviewRequest
    target: str
    box_space: str | None
    """In the format of `declare_space`; `None` for a protocol without a box."""
