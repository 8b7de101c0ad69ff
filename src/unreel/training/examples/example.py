"""Training examples: one question with its target answer, and the conversion to model input."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from unreel.core.clip import Clip
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Question
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.ask import ClipInputLoader, build_review_request
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExample:
    """One annotation row as a training example; its clips are decoded only when it is used."""

    key: str
    """Hash of the question and the row number; determines the order and random seeds."""
    name: str
    """Name of the clip or pair in its benchmark."""
    question: Question
    clips: tuple[Clip, ...]
    truth: Any
    """Ground truth of the annotation row, in the type of its protocol."""
    source: str
    """Scene of the clips; "" if unknown."""
    creator: str = ""
    data: int = 0
    """Index of the recipe's `[[data]]` section, from 0."""
    answer: str | None = None
    """Target answer that replaces the one from the ground truth: a sampled answer with a sufficient reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExampleInput:
    """A training example as model input: the request to a reviewer, and the target answer."""

    example: TrainingExample
    sheet: ReviewRequest
    target: str
    box_space: str | None
    """Coordinate space of boxes, in the format of `parse_box_space`; `None` for a protocol without boxes."""


SEEN: Final = frozenset({InputKind.FRAMES})
"""Input kinds of local models: sampled frames, whether passed one by one or as one video."""


class BoxSpaceSource(Protocol):
    """Interface that returns the coordinate space in which a model gives boxes."""

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes for `exhibit`, in the format of `parse_box_space`."""
        ...


def load_training_example_input(
    example: TrainingExample, showing: ClipInputLoader, sees: BoxSpaceSource
) -> TrainingExampleInput | Failure:
    """Load the clips of `example` with `showing` and build its model input, or return a failure.

    The request is the same as in an evaluation, except for its key, which names no reviewer. `sees`
    gives the coordinate space of the model's boxes.
    """
    clips = showing.show(example.clips, example.question.condition, SEEN)
    return (
        clips if isinstance(clips, Failure) else build_training_example_input(example, clips, sees)
    )


def build_training_example_input(
    example: TrainingExample, clips: tuple[ClipInput, ...], sees: BoxSpaceSource
) -> TrainingExampleInput | Failure:
    """Build the input from `clips`; a failure if the truth cannot be written as an answer."""
    question = example.question
    instrument = get_protocol(question.instrument.protocol)
    declared = sees.box_space(clips[0]) if instrument.needs_box_space else None
    width, height = example.clips[0].size
    space = parse_box_space(declared, width=width, height=height) if declared else None
    try:
        target = example.answer
        if target is None:
            target = instrument.wording.teach(example.truth, question.condition.prompt, space)
    except InvalidValueError as error:
        return Failure(FailureReason.REQUEST_REJECTED, f"not taught: {error}")
    sheet = build_review_request(question, clips, key=example.key, name=example.name)
    return TrainingExampleInput(example=example, sheet=sheet, target=target, box_space=declared)
