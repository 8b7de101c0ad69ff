"""Frame size and tokens of a training example, by the model's processor or by its family's rule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unreel.core.clip import VideoFacts
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.media.picture import compute_scaled_size
from unreel.media.sampling import parse_sampling, plan_frames
from unreel.media.timeline import FrameTimeline
from unreel.protocols.box_space import PERMILLE, BoxSpace
from unreel.protocols.presentation import (
    LONGEST_SIDE,
    format_frame_time,
    shows_frame_times,
    split_prompt_at_clips,
)
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.contract import ClipInput
from unreel.reviewers.endpoint.model_families import (
    FrameResizeRule,
    format_box_space,
    get_model_family,
)
from unreel.reviewers.endpoint.token_estimate import CHARACTERS
from unreel.reviewers.local.checkpoint import FamilyName, Form
from unreel.training.examples.example import TrainingExample, TrainingExampleInput
from unreel.training.recipe import TrainRecipe

if TYPE_CHECKING:
    from unreel.reviewers.local.encoder import RequestEncoder

_NEEDED = ("torch", "torchvision", "transformers")
_TEMPLATE_TOKENS = 24
"""Number of tokens of a chat template around one question and its answer."""
_VISION_MARKERS = 2
"""Number of tokens before and after each image or group of video frames."""
_PERMILLE = BoxSpace("permille", PERMILLE, PERMILLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTokenRule:
    """Rule by which the processor of a model family divides frames into patches and tokens."""

    patch: int
    merge: int
    """Number of patches per side that are merged into one token."""
    frames: int = 1
    """Number of consecutive video frames that share their tokens."""
    per_frame: int = 16384
    """Maximum number of tokens of a frame; a larger frame is scaled down."""
    in_all: int | None = None
    """Maximum number of tokens of a video, with each frame counted separately; `None` for no limit."""
    mark: str = ""
    """Sample of the timestamp that the processor writes before each group of video frames."""

    def seen(self, width: int, height: int, n_frames: int) -> tuple[int, int]:
        """Return the size to which the processor resizes `n_frames` frames of `width` x `height` pixels."""
        unit = self.patch * self.merge
        limit = self.per_frame if self.in_all is None else self.in_all // max(1, n_frames)
        rule = FrameResizeRule(
            multiple=unit, min_pixels=4 * unit**2, max_pixels=max(4, limit) * unit**2
        )
        return rule.size(width, height)


# Sources: preprocessor_config.json and video_preprocessor_config.json of the published checkpoints,
# and the processors of transformers 5.19 that read them.
SIGHT: dict[tuple[FamilyName, Form], VisionTokenRule] = {
    ("qwen2.5-vl", "frames"): VisionTokenRule(patch=14, merge=2),
    ("qwen2.5-vl", "video"): VisionTokenRule(patch=14, merge=2, frames=2),
    ("qwen3-vl", "frames"): VisionTokenRule(patch=16, merge=2),
    ("qwen3-vl", "video"): VisionTokenRule(
        patch=16, merge=2, frames=2, in_all=24576, mark="<00.0 seconds>"
    ),
    ("videollama3", "frames"): VisionTokenRule(patch=14, merge=1),
    ("videollama3", "video"): VisionTokenRule(patch=14, merge=2, in_all=16384, mark="Time 00.0s:"),
}


@dataclass(frozen=True, slots=True)
class ExampleTokenCounts:
    """Number of tokens of an example's prompt and of its answer."""

    prompt: int
    """Number of tokens of the prompt, including frames."""
    answer: int


class ModelInputSizer(Protocol):
    """Interface that computes a training example's frame size, box space and tokens for a model."""

    @property
    def description(self) -> str:
        """Return a description of the method by which sizes and tokens are computed."""
        ...

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the coordinate space of the model's boxes for `clip_input`, in `parse_box_space` notation."""
        ...

    def seen_size(self, clip_input: ClipInput) -> tuple[int, int]:
        """Return the width and height of a clip's frames after the model's resize."""
        ...

    def count(self, example: TrainingExampleInput) -> ExampleTokenCounts | Failure:
        """Count the tokens of the training example `example`, or return a failure if the model rejects it."""
        ...


@dataclass(frozen=True, slots=True)
class FamilyRuleInputSizer:
    """Sizer of model inputs by the published rule of a model family, without the model's processor."""

    family: FamilyName
    form: Form

    @property
    def description(self) -> str:
        """Return a description of the method: the rule of the family."""
        return f"the rule of the {self.family} family: tokens are an estimate"

    def seen_size(self, clip_input: ClipInput) -> tuple[int, int]:
        """Return the frame size within the limits of the published processor."""
        return SIGHT[self.family, self.form].seen(*clip_input.shown_size, len(clip_input.frames))

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the coordinate space of the boxes by the convention of the model family."""
        boxes, size = get_model_family(self.family).boxes, clip_input.shown_size
        return format_box_space(boxes, shown=size, seen=self.seen_size(clip_input))

    def count(self, example: TrainingExampleInput) -> ExampleTokenCounts | Failure:
        """Estimate the tokens of the training example `example`."""
        tokens = estimate_example_tokens(example.example, self.family, self.form)
        return ExampleTokenCounts(tokens.prompt, math.ceil(len(example.target) / CHARACTERS))


def estimate_example_tokens(
    example: TrainingExample, family: FamilyName, form: Form
) -> ExampleTokenCounts:
    """Estimate the tokens of `example` by the rule of a model family, without decoding its clips.

    The clips of a pair count like the first one. A character is a fixed fraction of a token.
    """
    video, question = example.clips[0].facts.video, example.question
    answer = example.answer
    if answer is None:
        wording = get_protocol(question.instrument.protocol).wording
        answer = wording.teach(example.truth, question.condition.prompt, _PERMILLE)
    prompt, per_clip = _estimate_prompt_tokens(
        question.instrument.protocol, question.condition, video, family, form
    )
    return ExampleTokenCounts(
        prompt + per_clip * len(example.clips), math.ceil(len(answer) / CHARACTERS)
    )


@lru_cache(maxsize=4096)
def _estimate_prompt_tokens(
    protocol: str, condition: Condition, video: VideoFacts, family: FamilyName, form: Form
) -> tuple[int, int]:
    """Return the tokens of a question's text, and those of each clip with its timestamps."""
    rule = SIGHT[family, form]
    rate = video.average_rate or Fraction(1)
    timeline = FrameTimeline.at_rate(rate, n_frames=max(1, round(video.duration_s * rate)))
    instants = plan_frames(parse_sampling(condition.sampling), timeline).at_s
    shown = compute_scaled_size(
        video.width, video.height, LONGEST_SIDE, most_pixels=condition.max_pixels
    )
    width, height = rule.seen(*shown, len(instants))
    n_groups = math.ceil(len(instants) / rule.frames)
    if form == "video":
        timestamps = len(rule.mark) * n_groups
    elif shows_frame_times(protocol, condition.marks):
        # One token per character, as these families split digits.
        timestamps = sum(len(format_frame_time(at_s)) for at_s in instants)
    else:
        timestamps = 0
    texts = split_prompt_at_clips(get_protocol(protocol).prompt(condition.prompt).text)
    vision = width * height // (rule.patch * rule.merge) ** 2 * n_groups
    return (
        _TEMPLATE_TOKENS + math.ceil(sum(map(len, texts)) / CHARACTERS),
        vision + timestamps + _VISION_MARKERS * n_groups,
    )


@dataclass(frozen=True, slots=True)
class ProcessorInputSizer:
    """Sizer of model inputs that uses the model's own processor."""

    encoder: "RequestEncoder"
    folder: Path

    @property
    def description(self) -> str:
        """Return a description of the method: the processor and its folder."""
        return f"the processor in {self.folder}"

    def seen_size(self, clip_input: ClipInput) -> tuple[int, int]:
        """Return the frame size that the processor computes."""
        return self.encoder.seen_size(clip_input)

    def box_space(self, clip_input: ClipInput) -> str:
        """Return the coordinate space in which the boxes of the checkpoint's answers will be parsed."""
        return self.encoder.box_space(clip_input)

    def count(self, example: TrainingExampleInput) -> ExampleTokenCounts | Failure:
        """Count the tokens of the training example `example` as the processor encodes it."""
        encoded = self.encoder.encode(example.request, example.target)
        if isinstance(encoded, Failure):
            return encoded
        return ExampleTokenCounts(encoded.n_prompt, len(encoded.input_ids) - encoded.n_prompt)


def open_input_sizer(recipe: TrainRecipe) -> ModelInputSizer:
    """Return a sizer that uses the model's processor if it is local, otherwise its family's rule."""
    folder = Path(recipe.model.name)
    if folder.is_dir() and not find_missing_processor_packages():
        from unreel.reviewers.local.encoder import RequestEncoder

        try:
            return ProcessorInputSizer(RequestEncoder(folder, recipe.input_spec), folder)
        except InvalidSettingError:
            pass  # a folder without a processor: the rule of the family is used
    return FamilyRuleInputSizer(recipe.model.family, recipe.input)


def find_missing_processor_packages() -> Sequence[str]:
    """Return the packages that a processor needs and that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]
