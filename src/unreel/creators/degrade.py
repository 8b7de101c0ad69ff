"""Real clips with common edits, as a control: the verdict "generated" is wrong for them.

The verdict of a reviewer must not depend on compression, scaling, cropping or timing.
"""

from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal, assert_never

from pydantic import Field, field_serializer, model_validator

from unreel.core.errors import InvalidSettingError, suggest_names
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.output_files import OutputDirectory
from unreel.creators.contract import ClipBrief, ClipClass, Creator, CreatorInput, GeneratedClip
from unreel.creators.edited_clips import ReworkingCreator, ReworkRequest
from unreel.creators.kind import CreatorEnvironment, CreatorKeys
from unreel.media.normalise import NormalForm
from unreel.media.perturb import HALF, MESSENGER_CRF, MOST_OF_IT, choose_crop, get_clip_format
from unreel.media.render import OWN_SPEED, WHOLE, FrameRange
from unreel.recipes.section import Exact

Way = Literal["recompressed", "scaled", "cropped", "retimed"]
_QUICK: Final = Fraction(5, 4)
_SEED_DIGITS: Final = 8
_OWN_KEYS: Final[dict[Way, tuple[str, ...]]] = {
    "recompressed": ("crf",),
    "scaled": ("scale",),
    "cropped": ("kept",),
    "retimed": ("speed", "rate"),
}


class DegradeKeys(CreatorKeys):
    """`kind = "degrade"`."""

    side: ClassVar[ClipClass] = ClipClass.CONTROL

    way: Way
    crf: Annotated[int, Field(ge=0, le=51)] = MESSENGER_CRF
    """For `recompressed`: quality, 0 is best, 51 is worst."""
    scale: Annotated[Exact, Field(gt=0, lt=1)] = HALF
    """For `scaled`: factor of each side."""
    kept: Annotated[Exact, Field(ge=Fraction(1, 10), lt=1)] = MOST_OF_IT
    """For `cropped`: fraction of each side; the position follows from the seed."""
    speed: Annotated[Exact, Field(ge=Fraction(1, 4), le=4)] | None = None
    """For `retimed`: factor; 5/4 if no rate is set."""
    rate: Annotated[Exact, Field(ge=1, le=240)] | None = None
    """For `retimed`: frames per second, with the original length."""

    @model_validator(mode="after")
    def _keys_are_of_its_way(self) -> "DegradeKeys":
        own = ("way", *_OWN_KEYS[self.way])
        for key in sorted(self.model_fields_set - set(own)):
            problem = f"says nothing about what is {self.way}"
            raise InvalidSettingError(key, problem, suggest_names(key, own))
        if self.speed is not None and (self.rate is not None or self.speed == 1):
            setting, problem = "speed", "is 1, or a rate is also set"
            raise InvalidSettingError(setting, problem, "Name another speed, or a rate alone")
        return self

    @field_serializer("scale", "kept", "speed", "rate")
    def _as_written(self, value: Fraction | None) -> str | None:
        return None if value is None else str(value)

    @property
    def usual(self) -> tuple[CreatorInput, ...]:
        return (CreatorInput.IMAGE,)

    def label(self, title: str) -> str:  # noqa: ARG002  its way tells more than a title
        return self.way

    def open(self, name: str, around: CreatorEnvironment) -> Creator:
        return ReworkingCreator(name, self._degrade, side=self.side, around=around)

    def _degrade(self, rework: ReworkRequest) -> GeneratedClip | Failure:
        facts = rework.reader.probe(rework.source)
        if isinstance(facts, Failure):
            return facts
        change = _build_clip_change(self, facts, rework.brief)
        data = rework.reader.render(rework.source, change.cut, form=change.form, speed=change.speed)
        if isinstance(data, Failure):
            return data
        into = rework.into
        return GeneratedClip(
            file=OutputDirectory(into.parent).write(into.name, data),
            model=f"unreel {self.way}",
            parameters=change.told,
            cost_usd=Decimal(0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClipChange:
    """Change of one clip, with its description."""

    cut: FrameRange = WHOLE
    form: NormalForm | None = None
    speed: Fraction = OWN_SPEED
    told: dict[str, str | int]


def _build_clip_change(keys: DegradeKeys, facts: ClipFacts, brief: ClipBrief) -> _ClipChange:
    match keys.way:
        case "recompressed":
            return _ClipChange(form=get_clip_format(facts, crf=keys.crf), told={"crf": keys.crf})
        case "scaled":
            form = get_clip_format(facts, scale=keys.scale)
            return _ClipChange(form=form, told={"width": form.width, "height": form.height})
        case "cropped":
            drawn = int(digest("crop", brief.id, str(brief.seed))[:_SEED_DIGITS], 16)
            crop = choose_crop((facts.video.width, facts.video.height), drawn, kept=keys.kept)
            return _ClipChange(cut=FrameRange(crop=crop), told=asdict(crop))
        case "retimed" if keys.rate is not None:
            return _ClipChange(
                form=get_clip_format(facts, rate=keys.rate), told={"rate": str(keys.rate)}
            )
        case "retimed":
            speed = keys.speed or _QUICK
            return _ClipChange(speed=speed, told={"speed": str(speed)})
        case _ as never:
            assert_never(never)
