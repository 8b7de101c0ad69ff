"""Frame size and tokens of a training example, by the model's processor or by its family's rule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.reviewers.contract import ClipInput
from unreel.reviewers.endpoint.model_families import format_box_space, get_model_family
from unreel.reviewers.endpoint.token_estimate import CHARACTERS
from unreel.reviewers.local.input_format import FamilyName, Form
from unreel.training.example_cost import SIGHT, ExampleStratum, compute_example_cost
from unreel.training.examples.example import TrainingExampleInput
from unreel.training.recipe import TrainRecipe

if TYPE_CHECKING:
    from unreel.reviewers.local.encoder import RequestEncoder

_NEEDED: Final = ("torch", "torchvision", "transformers")


@dataclass(frozen=True, slots=True)
class ExampleTokenCounts:
    """Number of tokens of an example's prompt and of its answer."""

    prompt: int
    """Number of tokens of the prompt, including frames."""
    answer: int


class ModelInputSizer(Protocol):
    """Interface that computes a training example's frame size, box space and tokens for a model."""

    @property
    def told(self) -> str:
        """Return a description of the method by which sizes and tokens are computed."""
        ...

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the model's boxes for `exhibit`, in `parse_box_space` notation."""
        ...

    def seen_size(self, exhibit: ClipInput) -> tuple[int, int]:
        """Return the width and height of a clip's frames after the model's resize."""
        ...

    def count(self, lesson: TrainingExampleInput) -> ExampleTokenCounts | Failure:
        """Count the tokens of the training example `lesson`, or return a failure if the model rejects it."""
        ...


@dataclass(frozen=True, slots=True)
class FamilyRuleInputSizer:
    """Sizer of model inputs by the published rule of a model family, without the model's processor."""

    family: FamilyName
    form: Form

    @property
    def told(self) -> str:
        """Return a description of the method: the rule of the family."""
        return f"the rule of the {self.family} family: tokens are an estimate"

    def seen_size(self, exhibit: ClipInput) -> tuple[int, int]:
        """Return the frame size within the limits of the published processor."""
        return SIGHT[self.family, self.form].seen(*exhibit.shown_size, len(exhibit.frames))

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes by the convention of the model family."""
        boxes, size = get_model_family(self.family).boxes, exhibit.shown_size
        return format_box_space(boxes, shown=size, seen=self.seen_size(exhibit))

    def count(self, lesson: TrainingExampleInput) -> ExampleTokenCounts | Failure:
        """Count the tokens of the training example `lesson` by the method of `unreel train plan`."""
        question, video = lesson.example.question, lesson.example.clips[0].facts.video
        answer = math.ceil(len(lesson.target) / CHARACTERS)
        load = compute_example_cost(
            ExampleStratum(
                examples=1,
                seconds=video.duration_s,
                rate=video.average_rate or Fraction(1),
                width=video.width,
                height=video.height,
                clips=len(lesson.example.clips),
                protocol=question.instrument.protocol,
                condition=question.condition,
                answer_tokens=answer,
            ),
            self.family,
            self.form,
        )
        return ExampleTokenCounts(load.prompt_tokens + load.vision_tokens, answer)


@dataclass(frozen=True, slots=True)
class ProcessorInputSizer:
    """Sizer of model inputs that uses the model's own processor."""

    encoder: "RequestEncoder"
    folder: Path

    @property
    def told(self) -> str:
        """Return a description of the method: the processor and its folder."""
        return f"the processor in {self.folder}"

    def seen_size(self, exhibit: ClipInput) -> tuple[int, int]:
        """Return the frame size that the processor computes."""
        return self.encoder.seen_size(exhibit)

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space in which the boxes of the checkpoint's answers will be parsed."""
        return self.encoder.box_space(exhibit)

    def count(self, lesson: TrainingExampleInput) -> ExampleTokenCounts | Failure:
        """Count the tokens of the training example `lesson` as the processor encodes it."""
        encoded = self.encoder.encode(lesson.sheet, lesson.target)
        if isinstance(encoded, Failure):
            return encoded
        return ExampleTokenCounts(encoded.n_prompt, len(encoded.input_ids) - encoded.n_prompt)


def open_input_sizer(recipe: TrainRecipe) -> ModelInputSizer:
    """Return a sizer that uses the model's processor if it is local, otherwise its family's rule."""
    folder = Path(recipe.model.name)
    if folder.is_dir() and not find_missing_processor_packages():
        from unreel.reviewers.local.encoder import RequestEncoder

        try:
            return ProcessorInputSizer(RequestEncoder.open(folder, recipe.taught), folder)
        except InvalidSettingError:
            pass  # a folder without a processor: the rule of the family is used
    return FamilyRuleInputSizer(recipe.model.family, recipe.input)


def find_missing_processor_packages() -> Sequence[str]:
    """Return the packages that a processor needs and that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]
