"""Input size and tokens of an example: by the model's processor, or by its family's rule."""

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
from unreel.reviewers.endpoint.families import get_family, name_space
from unreel.reviewers.endpoint.tokens import CHARACTERS
from unreel.reviewers.local.input_format import FamilyName, Form
from unreel.training.example_cost import SIGHT, ExampleStratum, load_of
from unreel.training.examples.example import ShownExample
from unreel.training.recipe import TrainRecipe

if TYPE_CHECKING:
    from unreel.reviewers.local.encoder import RequestEncoder

_NEEDED: Final = ("torch", "torchvision", "transformers")


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of a lesson."""

    prompt: int
    """With all that is seen."""
    answer: int


class ExampleView(Protocol):
    """Model input of an example."""

    @property
    def told(self) -> str:
        """Return the source of these figures, as text."""
        ...

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes for `exhibit`, in the format of `declare_space`."""
        ...

    def seen_size(self, exhibit: ClipInput) -> tuple[int, int]:
        """Return the width and height of the frames after the model's resize."""
        ...

    def count(self, lesson: ShownExample) -> TokenCounts | Failure:
        """Count the tokens of `lesson`, or return why the model cannot receive it."""
        ...


@dataclass(frozen=True, slots=True)
class ByRule:
    """The rule of a family, as its published processors declare it: for a machine that has none of them."""

    family: FamilyName
    form: Form

    @property
    def told(self) -> str:
        """Return the source of these figures."""
        return f"the rule of the {self.family} family: tokens are an estimate"

    def seen_size(self, exhibit: ClipInput) -> tuple[int, int]:
        """Return the frame size within the limits of the published processor."""
        return SIGHT[self.family, self.form].seen(*exhibit.shown_size, len(exhibit.frames))

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space of the boxes by the convention of the model family."""
        boxes, shown = get_family(self.family).boxes, exhibit.shown_size
        return name_space(boxes, shown=shown, seen=self.seen_size(exhibit))

    def count(self, lesson: ShownExample) -> TokenCounts | Failure:
        """Count the tokens of `lesson` by the method of `unreel train plan`."""
        question, video = lesson.example.question, lesson.example.clips[0].facts.video
        answer = math.ceil(len(lesson.target) / CHARACTERS)
        load = load_of(
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
        return TokenCounts(load.prompt_tokens + load.vision_tokens, answer)


@dataclass(frozen=True, slots=True)
class ByProcessor:
    """The model's own processor."""

    encoder: "RequestEncoder"
    folder: Path

    @property
    def told(self) -> str:
        """Return the source of these figures."""
        return f"the processor in {self.folder}"

    def seen_size(self, exhibit: ClipInput) -> tuple[int, int]:
        """Return the frame size that the processor computes."""
        return self.encoder.seen_size(exhibit)

    def box_space(self, exhibit: ClipInput) -> str:
        """Return the coordinate space in which the boxes of the checkpoint's answers will be parsed."""
        return self.encoder.box_space(exhibit)

    def count(self, lesson: ShownExample) -> TokenCounts | Failure:
        """Count the tokens that the model receives."""
        encoded = self.encoder.encode(lesson.sheet, lesson.target)
        if isinstance(encoded, Failure):
            return encoded
        return TokenCounts(encoded.n_prompt, len(encoded.input_ids) - encoded.n_prompt)


def open_view(recipe: TrainRecipe) -> ExampleView:
    """Return the processor of the recipe's model if its folder is local, otherwise its family's rule."""
    folder = Path(recipe.model.name)
    if folder.is_dir() and not missing_packages():
        from unreel.reviewers.local.encoder import RequestEncoder

        try:
            return ByProcessor(RequestEncoder.open(folder, recipe.taught), folder)
        except InvalidSettingError:
            pass  # a folder without a processor: the rule is told in its place
    return ByRule(recipe.model.family, recipe.input)


def missing_packages() -> Sequence[str]:
    """Return the packages that a processor needs and that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]
