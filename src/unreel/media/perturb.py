"""Variants of a clip that should not change a verdict: compressed, scaled, cropped."""

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Literal, assert_never

from unreel.core.box import Box
from unreel.core.clip import Clip, ClipFacts
from unreel.core.failure import Failure
from unreel.media.reader import MediaReader
from unreel.media.render import OWN_CRF, CroppedFrameRange, NormalisedClipFormat, PixelCrop

VariantName = Literal["recompressed", "scaled", "cropped"]

MESSENGER_CRF = 34
"""Quality (CRF) of a typical messenger app: blocks are visible, and the scene is recognisable."""
HALF = Fraction(1, 2)
CROP_FRACTION = Fraction(9, 10)
"""Fraction of the width and of the height that a crop keeps."""
_MIN_SIDE, _MAX_SIDE = 16, 4096
_FASTEST = Fraction(240)
_SLOWEST = Fraction(1, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipVariant:
    """Changed version of a clip and the parameters of the change; it always gives the same bytes."""

    name: VariantName
    size: tuple[int, int]
    way: NormalisedClipFormat | PixelCrop
    seed: int | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.parameters.items())

    @property
    def parameters(self) -> dict[str, int | str]:
        """Return the parameters of the change by name."""
        match self.way:
            case NormalisedClipFormat() as form:
                size = {"width": form.width, "height": form.height}
                return {**size, "rate": str(form.rate), "crf": form.crf, "sound": form.sound}
            case PixelCrop() as crop:
                return {**asdict(crop), "crf": OWN_CRF, "seed": self.seed or 0}
            case _ as never:
                assert_never(never)

    def make(self, file: str | Path, reader: MediaReader) -> bytes | Failure:
        """Make the variant of the clip `file`, as the bytes of an mp4 file, or return the failure."""
        match self.way:
            case NormalisedClipFormat() as form:
                return reader.normalise(file, form)
            case PixelCrop() as crop:
                return reader.render(file, CroppedFrameRange(crop=crop))
            case _ as never:
                assert_never(never)

    def map_back(self, box: Box) -> Box:
        """Convert a box on the changed clip to the box on the original clip."""
        if not isinstance(self.way, PixelCrop):
            return box
        width, height = self.size
        crop = self.way
        return Box(
            (crop.left + box.x0 * crop.width) / width,
            (crop.top + box.y0 * crop.height) / height,
            min(1.0, (crop.left + box.x1 * crop.width) / width),
            min(1.0, (crop.top + box.y1 * crop.height) / height),
        )


def plan_clip_variants(clip: Clip) -> tuple[ClipVariant, ...]:
    """Return the recompressed, scaled and cropped variants; the crop depends only on the clip's id."""
    size = clip.size
    seed = int(clip.id[:8] or "0", 16)
    return (
        ClipVariant(
            name="recompressed", size=size, way=build_clip_format(clip.facts, crf=MESSENGER_CRF)
        ),
        ClipVariant(name="scaled", size=size, way=build_clip_format(clip.facts, scale=HALF)),
        ClipVariant(name="cropped", size=size, way=choose_random_crop(size, seed), seed=seed),
    )


def build_clip_format(
    facts: ClipFacts,
    *,
    scale: Fraction = Fraction(1),
    crf: int = OWN_CRF,
    rate: Fraction | None = None,
) -> NormalisedClipFormat:
    """Build an output format like the clip's own, with another scale, quality or frame rate."""
    video = facts.video
    lengths = (round(side * scale / 2) * 2 for side in (video.width, video.height))
    width, height = (min(_MAX_SIDE, max(_MIN_SIDE, side)) for side in lengths)
    target = rate or video.average_rate.limit_denominator(1 << 16)
    return NormalisedClipFormat(
        width=width,
        height=height,
        rate=min(_FASTEST, max(_SLOWEST, target)),
        crf=crf,
        sound="kept" if facts.audio else "dropped",
    )


def choose_random_crop(
    size: tuple[int, int], seed: int, *, fraction: Fraction = CROP_FRACTION
) -> PixelCrop:
    """Choose a rectangle with `fraction` of each side, at a random position given by `seed`."""
    chance = Random(seed)  # noqa: S311  a choice that can be repeated, no secret
    crop_size = [max(2, int(side * fraction) // 2 * 2) for side in size]
    left, top = (
        chance.randint(0, max(0, side - keep)) for side, keep in zip(size, crop_size, strict=True)
    )
    return PixelCrop(
        left=left, top=top, width=min(crop_size[0], size[0]), height=min(crop_size[1], size[1])
    )
