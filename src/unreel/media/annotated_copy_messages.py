"""Messages of the task `annotate`: its request, and the checked receiver of the copy's chunks."""

from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Annotated, Any

from pydantic import Field

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.messages import TaskReplyPayload
from unreel.media.overlay import OverlayCommentary, OverlayTrace, ReviewerOverlayLane
from unreel.media.task_schemas import ClipWriteTaskRequest, Count, Micros, Size, StrictWireModel

OnFrames = Callable[[int], None]
"""Callback that receives the number of frames drawn so far."""

_LEAST_BYTES = 64 << 20
_BYTES_PER_S = 16 << 20
_MOST_BYTES = 16 << 30
_START = slice(4, 8)
_MP4_START = b"ftyp"


class _BoxFields(StrictWireModel):
    at_us: Micros
    x0: float
    y0: float
    x1: float
    y1: float


class _TraceFields(StrictWireModel):
    start_us: Micros
    end_us: Micros
    ends: bool
    track: list[_BoxFields]

    def as_mark(self) -> OverlayTrace:
        track = (BoxAt(b.at_us, Box(b.x0, b.y0, b.x1, b.y1)) for b in self.track)
        span = TimeSpan(self.start_us, self.end_us)
        return OverlayTrace(span=span, track=tuple(track), ends=self.ends)


class _LaneFields(StrictWireModel):
    says: str
    colour: Annotated[int, Field(ge=0)]
    marks: list[_TraceFields]

    def as_lane(self) -> ReviewerOverlayLane:
        marks = tuple(mark.as_mark() for mark in self.marks)
        return ReviewerOverlayLane(says=self.says, colour=self.colour, marks=marks)


class AnnotateTaskRequest(ClipWriteTaskRequest):
    """Request of the task `annotate`: the fields of an `OverlayCommentary`."""

    lanes: list[_LaneFields]
    notes: list[str]
    duration_us: Annotated[int, Field(ge=1)]

    def as_commentary(self) -> OverlayCommentary:
        """Return the request as an `OverlayCommentary`."""
        lanes = tuple(lane.as_lane() for lane in self.lanes)
        return OverlayCommentary(lanes=lanes, notes=tuple(self.notes), duration_us=self.duration_us)


def build_annotate_task_fields(commentary: OverlayCommentary) -> dict[str, Any]:
    """Return the fields of an `AnnotateTaskRequest` that draws `commentary`."""
    return {
        "lanes": [
            {
                "says": lane.says,
                "colour": lane.colour,
                "marks": list(map(_build_trace_fields, lane.marks)),
            }
            for lane in commentary.lanes
        ],
        "notes": list(commentary.notes),
        "duration_us": commentary.duration_us,
    }


def _build_trace_fields(trace: OverlayTrace) -> dict[str, Any]:
    return {
        "start_us": trace.span.start_us,
        "end_us": trace.span.end_us,
        "ends": trace.ends,
        "track": [{"at_us": at.at_us, **asdict(at.box)} for at in trace.track],
    }


class _CopyChunkHeader(StrictWireModel):
    at: Size
    n_frames: Count


class AnnotatedCopyReplyHeader(StrictWireModel):
    """Header of the final message of the task `annotate`, after all chunks of the copy."""

    size_bytes: Size
    n_frames: Annotated[Count, Field(ge=1)]


class AnnotatedCopyReceiver:
    """Receiver that checks the chunks of an annotated copy and writes them to the file `into`.

    Raises:
        InvalidValueError: A chunk is invalid.
        MediaError: The copy is larger than the limit for its duration.
    """

    def __init__(self, into: IO[bytes], *, duration_us: int, on_frames: OnFrames) -> None:
        self._into, self._on_frames = into, on_frames
        self._size = self._n_frames = 0
        self._most = min(_MOST_BYTES, _LEAST_BYTES + _BYTES_PER_S * duration_us // MICROSECONDS)

    def add(self, payload: TaskReplyPayload) -> None:
        """Check one chunk and write it to the file."""
        header = _CopyChunkHeader.model_validate(payload.header)
        _require_valid_reply(len(payload.blobs) == 1, "a piece has one blob")
        (data,) = payload.blobs
        _require_valid_reply(header.at <= self._size, "a piece leaves a hole before it")
        if header.at < _START.stop:
            is_start = header.at == 0 and data[_START] == _MP4_START
            _require_valid_reply(is_start, "the copy is not an mp4 file")
        _require_valid_reply(header.n_frames >= self._n_frames, "frames are taken back")
        if header.at + len(data) > self._most:
            raise MediaError(
                Failure(FailureReason.TOO_LARGE, f"its copy takes more than {self._most} bytes")
            )
        self._into.seek(header.at)
        self._into.write(data)
        self._size = max(self._size, header.at + len(data))
        self._n_frames = header.n_frames
        self._on_frames(header.n_frames)

    def finish(self, last_payload: TaskReplyPayload) -> AnnotatedCopyReplyHeader:
        """Check with the final message `last_payload` that the copy is complete, and return its header."""
        header = AnnotatedCopyReplyHeader.model_validate(last_payload.header)
        _require_valid_reply(not last_payload.blobs, "a copy ends without blobs")
        is_whole = (header.size_bytes, header.n_frames) == (self._size, self._n_frames)
        _require_valid_reply(is_whole, "pieces of the copy are missing")
        return header


def _require_valid_reply(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    if not holds:
        raise InvalidValueError(otherwise)
