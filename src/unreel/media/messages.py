"""Messages between a caller and the process that opens its file: limits, requests and payloads.

They contain only JSON and raw bytes. A child process that a hostile file has taken over can
send wrong data, but no code, and nothing that its caller would need a decoder for.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_PIXELS = 7680 * 4320

MAX_PACKETS = 10 * 3600 * (60 + 50)
"""Maximum number of packets, a limit for hostile files: ten hours at 60 frames and 50 sound packets a second."""

MAX_S = 1 << 33
"""Maximum time in seconds: 272 years. Live streams count from 1970, QuickTime from 1904; more is damage or attack."""
FASTEST = 1_000_000

MAX_TAGS = 64
MAX_NAME = 64
MAX_VALUE = 120

SAMPLE_RATE_HZ = 16_000
MAX_SAMPLES = SAMPLE_RATE_HZ * 3600
"""Maximum number of sound samples: one hour, 115 MB, more than a model accepts and less than a child may hold."""

N_PICKED = 8

JPEG_QUALITY = 90
LONGEST_SIDE = 65_500
"""Maximum side of a frame in pixels; neither JPEG nor any video codec supports more."""
MAX_INSTANTS = 64
INCOMPLETE = "the file is incomplete"
"""Beginning of the failure of a file that was cut off."""
MP4_START = slice(4, 8)
INSTANTS = "instants"


def format_fraction(value: Fraction) -> str:
    """Return `value` as "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


def convert_to_json_fields(record: "DataclassInstance") -> dict[str, Any]:
    """Return the fields of a dataclass as JSON-compatible values; fractions become text."""
    fields: dict[str, Any] = _convert_to_json_value(asdict(record))
    return fields


def _convert_to_json_value(value: Any) -> Any:
    match value:
        case Fraction():
            return format_fraction(value)
        case dict():
            return {key: _convert_to_json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_convert_to_json_value(item) for item in value]
        case _:
            return value


def require_valid_reply(holds: bool, problem: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    """Raise an `InvalidValueError` about a reply unless it `holds`."""
    if not holds:
        raise InvalidValueError(problem)


@dataclass(frozen=True, slots=True)
class TaskReplyPayload:
    """Reply of a media task, or one part of it: a JSON object and binary data."""

    header: dict[str, Any]
    blobs: tuple[bytes, ...] = ()


Parts = Generator[TaskReplyPayload, None, TaskReplyPayload]
"""Generator for a long result, which yields the parts and returns the final payload."""
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
