"""Schemas of the requests and reply headers of media tasks; every field is validated.

A header may come from a compromised child: numbers are bounded, texts are short, and unknown
fields are rejected. Exact times are sent as "30000/1001".
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from unreel.core.clip import AudioFacts, ClipFacts, FileTag, VideoFacts
from unreel.core.errors import InvalidSettingError
from unreel.core.span import MICROSECONDS
from unreel.media.messages import (
    FASTEST,
    LONGEST_SIDE,
    MAX_INSTANTS,
    MAX_NAME,
    MAX_PACKETS,
    MAX_PIXELS,
    MAX_S,
    MAX_SAMPLES,
    MAX_TAGS,
    MAX_VALUE,
    N_PICKED,
)

Request = TypeVar("Request")

# FFmpeg stores times as 64-bit numbers of ticks, with a fraction of 32-bit integers as the tick.
_EXACT = re.compile(r"(-?[0-9]{1,30})/([1-9][0-9]{0,29})", re.ASCII)
_SLOWEST = 1 / Fraction(MAX_S)


def _parse_fraction(value: object) -> Fraction:
    match = _EXACT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('expected a text such as "30000/1001"')
    return Fraction(int(match[1]), int(match[2]))


Exact = Annotated[Fraction, BeforeValidator(_parse_fraction)]
Instant = Annotated[Exact, Field(ge=-MAX_S, le=MAX_S)]
Length = Annotated[Exact, Field(ge=0, le=MAX_S)]
Lasting = Annotated[Exact, Field(gt=0, le=MAX_S)]
Rate = Annotated[Exact, Field(ge=_SLOWEST, le=FASTEST)]
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.,-]{1,64}$")]
Side = Annotated[int, Field(ge=1, le=LONGEST_SIDE)]
Size = Annotated[int, Field(ge=0, le=1 << 50)]
Count = Annotated[int, Field(ge=0, le=MAX_PACKETS)]
Signed = Annotated[int, Field(ge=0, lt=1 << 31)]
Micros = Annotated[int, Field(ge=0, le=MAX_S * MICROSECONDS)]


class StrictWireModel(BaseModel):
    """Base class of task messages: strict types, no unknown fields, immutable."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class ClipReadRequest(StrictWireModel):
    """Request of the tasks `probe`, `sound` and `scan`, and base of the others."""

    max_pixels: Annotated[int, Field(ge=1)] = MAX_PIXELS


class SampledFramesRequest(ClipReadRequest):
    """Request of the task `frames`: the sampling, and the size limits of the frames."""

    sampling: str
    longest_side: Side | None = None
    most_pixels: Annotated[int, Field(ge=1)] | None = None


class TimestampFramesRequest(ClipReadRequest):
    """Request of the task `instants`: the times whose frames are requested."""

    at_us: Annotated[list[Micros], Field(min_length=1, max_length=MAX_INSTANTS)]


class NormaliseTaskRequest(ClipReadRequest):
    """Request of the task `normalise`; `form` has the fields of a `NormalisedClipFormat`."""

    form: dict[str, Any]


class RenderTaskRequest(ClipReadRequest):
    """Request of the task `render`; `frame_range` has the fields of a `CroppedFrameRange`."""

    frame_range: dict[str, Any]
    speed: Annotated[Exact, Field(ge=Fraction(1, 8), le=8)] = Fraction(1)
    form: dict[str, Any] | None


class AnnotateTaskRequest(ClipReadRequest):
    """Request of the task `annotate`; `commentary` has the fields of an `OverlayCommentary`."""

    commentary: dict[str, Any]


class _VideoHeader(StrictWireModel):
    codec: Word
    pixel_format: Word
    width: Side
    height: Side
    rotation_deg: Literal[0, 90, 180, 270]
    n_frames: Annotated[Count, Field(ge=1)]
    average_rate: Rate
    variable_rate: bool
    first_at_s: Instant
    duration_s: Lasting


class _AudioHeader(StrictWireModel):
    codec: Word
    sample_rate_hz: Signed
    channels: Signed
    duration_s: Length


class _TagHeader(StrictWireModel):
    name: Annotated[str, StringConstraints(pattern=rf"^[ -~]{{1,{MAX_NAME}}}$")]
    value: Annotated[str, StringConstraints(pattern=rf"^[ -~]{{0,{MAX_VALUE}}}$")]


class _ClipHeader(StrictWireModel):
    container: Word
    size_bytes: Size
    video: _VideoHeader
    audio: Annotated[list[_AudioHeader], Field(max_length=1024)]
    tags: Annotated[list[_TagHeader], Field(max_length=MAX_TAGS)]


class ProbeReplyHeader(StrictWireModel):
    """Reply header of the task `probe`."""

    facts: _ClipHeader

    def as_facts(self) -> ClipFacts:
        """Convert the reply header to `ClipFacts`."""
        return ClipFacts(
            container=self.facts.container,
            size_bytes=self.facts.size_bytes,
            video=VideoFacts(**dict(self.facts.video)),
            audio=tuple(AudioFacts(**dict(stream)) for stream in self.facts.audio),
            tags=tuple(FileTag(**dict(tag)) for tag in self.facts.tags),
        )


class FrameReplyHeader(StrictWireModel):
    """Header of one frame in the reply of the task `frames`; the only blob is the frame's pixels."""

    index: Count
    at_s: Length
    width: Side
    height: Side


class FramesReplyHeader(StrictWireModel):
    """Final header in the reply of the task `frames`, after all frames."""

    sampling: str
    n_clip_frames: Count
    n_frames: Count


class _SoundBlobHeader(StrictWireModel):
    rate_hz: Annotated[int, Field(ge=1, le=1 << 20)]
    start_s: Instant
    n_samples: Annotated[int, Field(ge=1, le=MAX_SAMPLES)]


class SoundReplyHeader(StrictWireModel):
    """Reply header of the task `sound`; `sound` is `None` for a clip without sound."""

    sound: _SoundBlobHeader | None


class Mp4ReplyHeader(StrictWireModel):
    """Reply header of the tasks `normalise` and `render`; the only blob is the mp4 file."""

    size_bytes: Size


class CopyChunkHeader(StrictWireModel):
    """Header of one chunk in the reply of the task `annotate`: offset in the file, and the frames so far."""

    at: Size
    n_frames: Count


class AnnotatedCopyReplyHeader(StrictWireModel):
    """Header of the final message of the task `annotate`, after all chunks of the copy."""

    size_bytes: Size
    n_frames: Annotated[Count, Field(ge=1)]


class PickedFrameHeader(StrictWireModel):
    """Header of one picked frame in the reply of `scan`; `levels` are grey levels of its flat sides."""

    index: Count
    width: Side
    height: Side
    sharpness: Annotated[float, Field(ge=0, le=1024)]
    noise: Annotated[float, Field(ge=0, le=1024)]
    levels: dict[Literal["left", "top", "right", "bottom"], Annotated[int, Field(ge=0, le=255)]]


class ScanReplyHeader(StrictWireModel):
    """Reply header of the task `scan`; the measurements of all frames and the pictures are blobs."""

    width: Side
    height: Side
    n_frames: Annotated[Count, Field(ge=1)]
    time_base: Lasting
    last_ticks: Annotated[int, Field(ge=1, lt=1 << 63)]
    picked: Annotated[list[PickedFrameHeader], Field(min_length=1, max_length=N_PICKED)]


def parse_task_request(shape: type[Request], fields: Mapping[str, Any]) -> Request:
    """Build a request of the schema or dataclass `shape` from its fields, and validate them.

    Raise `InvalidSettingError` if a field is unknown, missing or invalid.
    """
    try:
        value: Request = _build_type_adapter(shape).validate_python(dict(fields))  # type: ignore[arg-type]  # hashable
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "request"
        problem = f"{first['msg']}, got {first['input']!r:.80}"
        raise InvalidSettingError(field, problem, "Correct it") from error
    return value


@cache
def _build_type_adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
