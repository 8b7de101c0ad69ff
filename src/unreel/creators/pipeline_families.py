"""Families of diffusers video pipelines: classes, supported sizes and call arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from unreel.core.span import MICROSECONDS

FamilyName = Literal["cogvideox", "hunyuan-video", "ltx", "wan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFamily:
    """Properties of one family of diffusers pipelines: classes, supported sizes and frame rate."""

    from_text: str
    """Name of the diffusers class for text input."""
    from_image: str
    multiple: int
    """Number of pixels of which each side of a frame is a multiple."""
    frames_multiple: int
    """Step of the frame count: the number of frames minus one is a multiple of it."""
    most_frames: int
    area: int
    """Number of pixels of a training frame: the maximum, unless a recipe sets a larger size."""
    rate: Fraction
    """Default frames per second, as used by the model's authors for export."""
    fine_decoder: bool = False
    """Whether the autoencoder is kept in float32, as the model's authors recommend."""
    told_rate: bool = False
    """Whether the frame rate is passed to the pipeline."""


FAMILIES: Final[Mapping[FamilyName, PipelineFamily]] = {
    "cogvideox": PipelineFamily(
        from_text="CogVideoXPipeline",
        from_image="CogVideoXImageToVideoPipeline",
        multiple=16,
        frames_multiple=4,
        most_frames=49,
        area=720 * 480,
        rate=Fraction(8),
    ),
    "hunyuan-video": PipelineFamily(
        from_text="HunyuanVideoPipeline",
        from_image="HunyuanVideoImageToVideoPipeline",
        multiple=16,
        frames_multiple=4,
        most_frames=129,
        area=1280 * 720,
        rate=Fraction(15),
    ),
    "ltx": PipelineFamily(
        from_text="LTXPipeline",
        from_image="LTXImageToVideoPipeline",
        multiple=32,
        frames_multiple=8,
        most_frames=161,
        area=704 * 512,
        rate=Fraction(24),
        told_rate=True,
    ),
    "wan": PipelineFamily(
        from_text="WanPipeline",
        from_image="WanImageToVideoPipeline",
        multiple=32,
        frames_multiple=4,
        most_frames=81,
        area=832 * 480,
        rate=Fraction(16),
        fine_decoder=True,
    ),
}


def fit_frame_size(family: PipelineFamily, width: int, height: int) -> tuple[int, int]:
    """Return the family's frame size nearest in shape to the given one, up to that of training."""
    shrunk = min(1.0, (family.area / (width * height)) ** 0.5)
    return (
        _round_to_multiple(width * shrunk, family.multiple),
        _round_to_multiple(height * shrunk, family.multiple),
    )


def fit_frame_count(family: PipelineFamily, duration_us: int, rate: Fraction) -> int:
    """Return the supported number of frames whose duration at `rate` is nearest to `duration_us`."""
    n_frames = Fraction(duration_us, MICROSECONDS) * rate
    steps = max(1, round((n_frames - 1) / family.frames_multiple))
    return min(family.most_frames, steps * family.frames_multiple + 1)


def _round_to_multiple(length: float, multiple: int) -> int:
    return max(1, round(length / multiple)) * multiple
