"""Messages between a caller and the process that opens its file: limits, requests and payloads.

They contain only JSON and raw bytes. A child process that a hostile file has taken over can
send wrong data, but no code, and nothing that its caller would need a decoder for.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Protocol, TypeVar

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.span import MICROSECONDS

MAX_PIXELS = 7680 * 4320

MAX_PACKETS = 10 * 3600 * (60 + 50)
"""Maximum number of packets, a limit for hostile files: ten hours at 60 frames and 50 sound packets a second."""

MOST_S = 1 << 33
"""Maximum time in seconds: 272 years. Live streams count from 1970, QuickTime from 1904; more is damage or attack."""
FASTEST = 1_000_000
"""Maximum frames per second: those of the fastest cameras."""

MAX_TAGS = 64
MAX_NAME = 64
MAX_VALUE = 120

SAMPLE_RATE_HZ = 16_000
MAX_SAMPLES = SAMPLE_RATE_HZ * 3600
"""Maximum number of sound samples: one hour, 115 MB, more than a model accepts and less than a child may hold."""

N_PICKED = 8
"""Number of frames that a scan keeps as pictures."""

JPEG_QUALITY = 90


LONGEST_SIDE = 65_500
"""Maximum side of a frame in pixels; neither JPEG nor any video codec supports more."""
MOST_INSTANTS = 64
"""Maximum number of timestamps in one request of the task `instants`."""
INCOMPLETE = "the file is incomplete"
"""Beginning of the failure of a file that was cut off."""
INSTANTS = "instants"
"""Name of the sampling for frames requested by timestamp."""


def format_fraction(value: Fraction) -> str:
    """Return `value` as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipReadRequest:
    """Request of the tasks `probe`, `sound` and `scan`."""

    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        _require_integer_field("max_pixels", self.max_pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFramesRequest:
    """Request of the task `frames`: the sampling, and the size limits of the frames."""

    sampling: str
    longest_side: int | None = None
    most_pixels: int | None = None
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not isinstance(self.sampling, str):
            _raise_invalid_field("sampling", self.sampling, "must be text")
        if self.longest_side is not None:
            _require_integer_field("longest_side", self.longest_side, maximum=LONGEST_SIDE)
        if self.most_pixels is not None:
            _require_integer_field("most_pixels", self.most_pixels)
        _require_integer_field("max_pixels", self.max_pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampFramesRequest:
    """Request of the task `instants`: the times whose frames are requested."""

    at_us: Sequence[int]
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not isinstance(self.at_us, list) or not 1 <= len(self.at_us) <= MOST_INSTANTS:
            _raise_invalid_field(
                "at_us", self.at_us, f"must be a list of 1 to {MOST_INSTANTS} instants"
            )
        for instant in self.at_us:
            _require_integer_field("at_us", instant, minimum=0, maximum=MOST_S * MICROSECONDS)
        _require_integer_field("max_pixels", self.max_pixels)


Fields = TypeVar("Fields", ClipReadRequest, SampledFramesRequest, TimestampFramesRequest)


def parse_request_fields(shape: type[Fields], request: Mapping[str, Any]) -> Fields:
    """Build a request of the class `shape` from the fields of `request`, and check them.

    Raises:
        InvalidSettingError: A field is unknown, missing or invalid.
    """
    known = ", ".join(field.name for field in fields(shape))
    try:
        return shape(**request)
    except TypeError as error:
        raise InvalidSettingError("request", str(error), f"Known fields: {known}") from error


def _require_integer_field(
    field: str, value: object, *, minimum: int = 1, maximum: int | None = None
) -> None:
    # True and False are integers in Python.
    if type(value) is not int or value < minimum or (maximum is not None and value > maximum):
        bound = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
        _raise_invalid_field(field, value, f"must be an integer, {bound}")


def _raise_invalid_field(field: str, value: object, problem: str) -> NoReturn:
    raise InvalidSettingError(field, f"{problem}, got {value!r:.80}", "Correct it")


@dataclass(frozen=True, slots=True)
class TaskReplyPayload:
    """Reply of a media task, or one part of it: a JSON object and binary data."""

    header: dict[str, Any]
    blobs: tuple[bytes, ...] = ()


Parts = Generator[TaskReplyPayload, None, TaskReplyPayload]
"""Generator for a long result: it yields the parts and returns the final payload."""
Task = Callable[[BinaryIO, Mapping[str, Any]], TaskReplyPayload | Parts]
"""Function that processes one opened file. It raises `MediaError` if the file is at fault."""
OnPart = Callable[[TaskReplyPayload], None]
"""Callback that receives each part as it arrives; an exception that it raises ends the task."""


def deliver_task_result(result: TaskReplyPayload | Parts, on_part: OnPart) -> TaskReplyPayload:
    """Pass each part of a task's result to `on_part`, and return the final payload."""
    if isinstance(result, TaskReplyPayload):
        return result
    while True:
        try:
            part = next(result)
        except StopIteration as end:
            last: TaskReplyPayload = end.value
            return last
        on_part(part)


class MediaTaskRunner(Protocol):
    """Interface that runs a task of `unreel.media.tasks` on a file, in this process or a sandbox."""

    def __call__(
        self, task: str, path: Path, request: Mapping[str, Any], on_part: OnPart | None = None
    ) -> TaskReplyPayload | Failure:
        """Run `task` on the file; return its payload or failure. A sandbox rejects parts if `on_part` is `None`."""
        ...
