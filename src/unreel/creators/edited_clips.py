"""Creators that edit the real clip of a scene, for example with common edits as a control."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, ClassVar, Literal, assert_never

from pydantic import Field, field_serializer, model_validator

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, suggest_names
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.creators.contract import (
    ClipBrief,
    ClipClass,
    Creator,
    CreatorContext,
    CreatorEnvironment,
    CreatorInput,
    CreatorKeys,
    GeneratedClip,
)
from unreel.media.access import open_media_reader
from unreel.media.perturb import (
    CROP_FRACTION,
    HALF,
    MESSENGER_CRF,
    build_clip_format,
    choose_random_crop,
)
from unreel.media.reader import MediaReader
from unreel.media.render import OWN_SPEED, WHOLE, CroppedFrameRange
from unreel.recipes.validation import Exact


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipEditRequest:
    """Request to edit one real clip: brief, file, output file and media reader."""

    brief: ClipBrief
    source: Path
    into: Path
    """Path of the output file."""
    reader: MediaReader


class ClipEditingCreator:
    """Creator that edits real clips with a function; the same seed gives the same bytes."""

    settings: ClassVar[frozenset[CreatorInput]] = frozenset(CreatorInput)

    def __init__(
        self,
        name: str,
        change: Callable[[ClipEditRequest], GeneratedClip | Failure],
        *,
        side: ClipClass,
        environment: CreatorEnvironment,
    ) -> None:
        self.name = name
        self.side = side
        self._change = change
        self._open = ExitStack()
        self._reader = self._open.enter_context(
            open_media_reader(environment.settings, trusted=environment.trusted)
        )

    async def make(self, brief: ClipBrief, context: CreatorContext) -> GeneratedClip | Failure:
        if brief.source is None:
            return Failure(FailureReason.NO_BRIEF, f"the scene {brief.id!a} has no real clip")
        rework = ClipEditRequest(
            brief=brief, source=brief.source, into=context.folder / "clip.mp4", reader=self._reader
        )
        return await asyncio.to_thread(self._change, rework)

    async def close(self) -> None:
        """Close the media reader and its processes."""
        self._open.close()


Way = Literal["recompressed", "scaled", "cropped", "retimed"]
_QUICK = Fraction(5, 4)
_SEED_DIGITS = 8
_OWN_KEYS: dict[Way, tuple[str, ...]] = {
    "recompressed": ("crf",),
    "scaled": ("scale",),
    "cropped": ("kept",),
    "retimed": ("speed", "rate"),
}


class DegradeCreatorConfig(CreatorKeys):
    """`kind = "degrade"`: real clips that are recompressed, scaled, cropped or retimed."""

    side: ClassVar[ClipClass] = ClipClass.CONTROL

    way: Way
    crf: Annotated[int, Field(ge=0, le=51)] = MESSENGER_CRF
    """Quality (CRF) for `recompressed`, from 0 (best) to 51 (worst)."""
    scale: Annotated[Exact, Field(gt=0, lt=1)] = HALF
    """Factor of each side for `scaled`."""
    kept: Annotated[Exact, Field(ge=Fraction(1, 10), lt=1)] = CROP_FRACTION
    """Fraction of each side that `cropped` keeps; the scene and the seed determine the position."""
    speed: Annotated[Exact, Field(ge=Fraction(1, 4), le=4)] | None = None
    """Speed factor for `retimed`; by default 5/4 if no rate is set."""
    rate: Annotated[Exact, Field(ge=1, le=240)] | None = None
    """Frames per second for `retimed`; the clip keeps its original length."""

    @model_validator(mode="after")
    def _keys_are_of_its_way(self) -> "DegradeCreatorConfig":
        allowed = ("way", *_OWN_KEYS[self.way])
        for key in sorted(self.model_fields_set - set(allowed)):
            raise InvalidSettingError(
                key, f"says nothing about what is {self.way}", suggest_names(key, allowed)
            )
        if self.speed is not None and (self.rate is not None or self.speed == 1):
            raise InvalidSettingError(
                "speed", "is 1, or a rate is also set", "Name another speed, or a rate alone"
            )
        return self

    @field_serializer("scale", "kept", "speed", "rate")
    def _as_written(self, value: Fraction | None) -> str | None:
        return None if value is None else str(value)

    @property
    def usual(self) -> tuple[CreatorInput, ...]:
        return (CreatorInput.IMAGE,)

    def label(self, title: str) -> str:  # noqa: ARG002  its way tells more than a title
        return self.way

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:
        return ClipEditingCreator(name, self._degrade, side=self.side, environment=environment)

    def _degrade(self, request: ClipEditRequest) -> GeneratedClip | Failure:
        facts = request.reader.probe(request.source)
        if isinstance(facts, Failure):
            return facts
        cut, form, speed = WHOLE, None, OWN_SPEED
        parameters: dict[str, str | int]
        match self.way:
            case "recompressed":
                form, parameters = build_clip_format(facts, crf=self.crf), {"crf": self.crf}
            case "scaled":
                form = build_clip_format(facts, scale=self.scale)
                parameters = {"width": form.width, "height": form.height}
            case "cropped":
                brief, size = request.brief, (facts.video.width, facts.video.height)
                seed = int(digest("crop", brief.id, str(brief.seed))[:_SEED_DIGITS], 16)
                crop = choose_random_crop(size, seed, fraction=self.kept)
                cut, parameters = CroppedFrameRange(crop=crop), asdict(crop)
            case "retimed" if self.rate is not None:
                form = build_clip_format(facts, rate=self.rate)
                parameters = {"rate": str(self.rate)}
            case "retimed":
                speed = self.speed or _QUICK
                parameters = {"speed": str(speed)}
            case _ as never:
                assert_never(never)
        data = request.reader.render(request.source, cut, form=form, speed=speed)
        if isinstance(data, Failure):
            return data
        into = request.into
        return GeneratedClip(
            file=OutputDirectory(into.parent).write(into.name, data),
            model=f"unreel {self.way}",
            parameters=parameters,
            cost_usd=Decimal(0),
        )
