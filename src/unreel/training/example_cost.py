"""Cost of one training example: number of frames, and tokens of question, frames and answer.

The frames are those of the sampling plan, at the size at which they are shown. Their size and
tokens after the model's processor follow the rule of its family, as in published checkpoints.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from unreel.core.errors import InvalidSettingError
from unreel.core.question import Condition
from unreel.media.messages import MAX_PACKETS
from unreel.media.picture import compute_scaled_size
from unreel.media.sampling import parse_sampling, plan_frames
from unreel.media.timeline import FrameTimeline
from unreel.protocols.presentation import (
    LONGEST_SIDE,
    format_frame_time,
    shows_frame_times,
    split_prompt_at_clips,
)
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.endpoint.model_families import FrameResizeRule
from unreel.reviewers.endpoint.token_estimate import CHARACTERS
from unreel.reviewers.local.input_format import FamilyName, Form

_TURNS: Final = 24
"""Number of tokens of a chat template around one question and its answer."""
_BRACKETS: Final = 2
"""Number of tokens before and after each image or group of video frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTokenRule:
    """Rule by which the processor of a model family divides frames into patches and tokens."""

    patch: int
    merge: int
    """Number of patches per side that are merged into one token."""
    frames: int = 1
    """Number of consecutive video frames that share their patches."""
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
SIGHT: Final[dict[tuple[FamilyName, Form], VisionTokenRule]] = {
    ("qwen2.5-vl", "frames"): VisionTokenRule(patch=14, merge=2),
    ("qwen2.5-vl", "video"): VisionTokenRule(patch=14, merge=2, frames=2),
    ("qwen3-vl", "frames"): VisionTokenRule(patch=16, merge=2),
    ("qwen3-vl", "video"): VisionTokenRule(
        patch=16, merge=2, frames=2, in_all=24576, mark="<00.0 seconds>"
    ),
    ("videollama3", "frames"): VisionTokenRule(patch=14, merge=1),
    ("videollama3", "video"): VisionTokenRule(patch=14, merge=2, in_all=16384, mark="Time 00.0s:"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleStratum:
    """A group of training examples with the same cost: their number, and properties of their clips."""

    examples: float
    seconds: Fraction
    rate: Fraction
    width: int
    height: int
    clips: int = 1
    protocol: str
    condition: Condition
    answer_tokens: int

    def __post_init__(self) -> None:
        n_frames = self.seconds * self.rate
        if not 0 < n_frames <= MAX_PACKETS:
            setting = "data.expected"
            problem = f"a clip of {float(n_frames):.3g} frames cannot be"
            raise InvalidSettingError(setting, problem, "Give its seconds and its frames a second")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCost:
    """Frames, tokens, patches and decoded pixels of one training example."""

    n_frames: int
    seen: tuple[int, int]
    """Width and height of a frame after the processor's resize."""
    prompt_tokens: int
    vision_tokens: int
    answer_tokens: int
    patches: int
    patches_at_once: int
    """Number of patches that attend to each other: those of one frame, or of frames that share patches."""
    decoded: float
    """Number of pixels that must be decoded to extract the frames."""

    @property
    def tokens(self) -> int:
        """Return the number of tokens of the example that the language model receives."""
        return self.prompt_tokens + self.vision_tokens + self.answer_tokens


def compute_example_cost(stratum: ExampleStratum, family: FamilyName, form: Form) -> ExampleCost:
    """Compute the cost of one example of `stratum` for a model family and input form."""
    rule, condition = SIGHT[family, form], stratum.condition
    total = max(1, round(stratum.seconds * stratum.rate))
    instants = plan_frames(
        parse_sampling(condition.sampling), FrameTimeline.at_rate(stratum.rate, n_frames=total)
    ).at_s
    scaled = compute_scaled_size(
        stratum.width, stratum.height, LONGEST_SIDE, most_pixels=condition.max_pixels
    )
    resized = rule.seen(*scaled, len(instants))
    stretches = math.ceil(len(instants) / rule.frames)
    tokens = resized[0] * resized[1] // (rule.patch * rule.merge) ** 2
    patches = tokens * rule.merge**2
    texts = split_prompt_at_clips(get_protocol(stratum.protocol).prompt(condition.prompt).text)
    timestamps = _count_timestamp_tokens(stratum, form, instants, rule=rule, stretches=stretches)
    text = _TURNS + math.ceil(sum(map(len, texts)) / CHARACTERS)
    return ExampleCost(
        n_frames=len(instants) * stratum.clips,
        seen=resized,
        prompt_tokens=text + (timestamps + _BRACKETS * stretches) * stratum.clips,
        vision_tokens=tokens * stretches * stratum.clips,
        answer_tokens=stratum.answer_tokens,
        patches=patches * stretches * stratum.clips,
        patches_at_once=patches,
        decoded=float(total * stratum.width * stratum.height * stratum.clips),
    )


def _count_timestamp_tokens(
    stratum: ExampleStratum,
    form: Literal["frames", "video"],
    instants: tuple[Fraction, ...],
    *,
    rule: VisionTokenRule,
    stretches: int,
) -> int:
    """Count timestamp tokens of the prompt, one per character, as these families split digits."""
    if form == "video":
        return len(rule.mark) * stretches
    if not shows_frame_times(stratum.protocol, stratum.condition.marks):
        return 0
    return sum(len(format_frame_time(at_s)) for at_s in instants)
