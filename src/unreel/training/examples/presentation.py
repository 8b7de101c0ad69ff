"""Convert an example to model input: shown like a question, with boxes in the model's space."""

from typing import Final, Protocol

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.protocols.protocol import get_protocol
from unreel.protocols.space import declare_space
from unreel.reviewers.ask import PresentationSettings, lay_sheet
from unreel.reviewers.contract import ClipInput, InputKind
from unreel.training.examples.example import ShownExample, TrainingExample

SEEN: Final = frozenset({InputKind.FRAMES})
"""What a model of this machine is shown in both forms: our own frames, one by one or as one video."""


class BoxSpaceSource(Protocol):
    """Knows the space of a model's boxes; an encoder does, and the rule of a family."""

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes for `exhibit`, in the format of `declare_space`."""
        ...


def lay_out(
    example: TrainingExample, showing: PresentationSettings, sees: BoxSpaceSource
) -> ShownExample | Failure:
    """Build the shown form of `example`, or return why its clips cannot be shown.

    The request is the same as in an evaluation, except for its key, which names no reviewer.
    """
    shown = showing.show(example.clips, example.question.condition, SEEN)
    return shown if isinstance(shown, Failure) else build_lesson(example, shown, sees)


def build_lesson(
    example: TrainingExample, shown: tuple[ClipInput, ...], sees: BoxSpaceSource
) -> ShownExample | Failure:
    """Return the training item of `example` with the inputs `shown`, or the reason why there is none."""
    question = example.question
    instrument = get_protocol(question.instrument.protocol)
    declared = sees.box_space(shown[0]) if instrument.needs_box_space else None
    width, height = example.clips[0].size
    space = declare_space(declared, width=width, height=height) if declared else None
    try:
        target = example.answer
        if target is None:
            target = instrument.wording.teach(example.truth, question.condition.prompt, space)
    except InvalidValueError as error:
        return Failure(FailureReason.REQUEST_REJECTED, f"not taught: {error}")
    sheet = lay_sheet(question, shown, key=example.key, name=example.name)
    return ShownExample(example=example, sheet=sheet, target=target, box_space=declared)
