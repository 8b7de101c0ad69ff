"""Wire format of the annotated copy: the request, and chunks that are checked before they are written."""

from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Annotated, Any, Final

from pydantic import Field

from unreel.core.box import Box
from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt
from unreel.media.overlay import MovingMark, OverlayCommentary, TimelineLane
from unreel.media.payload import TaskPayload
from unreel.media.wire import ClipRequest, Count, Micros, Size, WireModel

OnFrames = Callable[[int], None]
"""Hears how many frames of a copy were drawn so far."""

_LEAST_BYTES: Final = 64 << 20
_BYTES_PER_S: Final = 16 << 20
_MOST_BYTES: Final = 16 << 30
_START: Final = slice(4, 8)
_MP4_START: Final = b"ftyp"


class _BoxRequest(WireModel):
    at_us: Micros
    x0: float
    y0: float
    x1: float
    y1: float


class _MarkRequest(WireModel):
    start_us: Micros
    end_us: Micros
    ends: bool
    track: list[_BoxRequest]

    def as_mark(self) -> MovingMark:
        track = (BoxAt(b.at_us, Box(b.x0, b.y0, b.x1, b.y1)) for b in self.track)
        span = TimeSpan(self.start_us, self.end_us)
        return MovingMark(span=span, track=tuple(track), ends=self.ends)


class _LaneRequest(WireModel):
    says: str
    colour: Annotated[int, Field(ge=0)]
    marks: list[_MarkRequest]

    def as_lane(self) -> TimelineLane:
        marks = tuple(mark.as_mark() for mark in self.marks)
        return TimelineLane(says=self.says, colour=self.colour, marks=marks)


class AnnotateRequest(ClipRequest):
    """`annotate`: the fields of a `OverlayCommentary`."""

    lanes: list[_LaneRequest]
    notes: list[str]
    duration_us: Annotated[int, Field(ge=1)]

    def as_commentary(self) -> OverlayCommentary:
        """Return the request as an `OverlayCommentary`."""
        lanes = tuple(lane.as_lane() for lane in self.lanes)
        return OverlayCommentary(lanes=lanes, notes=tuple(self.notes), duration_us=self.duration_us)


def commentary_request(commentary: OverlayCommentary) -> dict[str, Any]:
    """Return the fields of an `AnnotateRequest` for `commentary`."""
    return {
        "lanes": [
            {
                "says": lane.says,
                "colour": lane.colour,
                "marks": list(map(_mark_request, lane.marks)),
            }
            for lane in commentary.lanes
        ],
        "notes": list(commentary.notes),
        "duration_us": commentary.duration_us,
    }


def _mark_request(mark: MovingMark) -> dict[str, Any]:
    return {
        "start_us": mark.span.start_us,
        "end_us": mark.span.end_us,
        "ends": mark.ends,
        "track": [{"at_us": at.at_us, **asdict(at.box)} for at in mark.track],
    }


class _PieceHeader(WireModel):
    at: Size
    n_frames: Count


class CopyHeader(WireModel):
    """Final message of `annotate` after its parts."""

    size_bytes: Size
    n_frames: Annotated[Count, Field(ge=1)]


class CopyTaker:
    """Takes the pieces of a reply to `annotate`, and writes them `into` a file.

    Raises:
        InvalidValueError: A piece cannot be.
        MediaError: They take more room than a copy of that length ever does.
    """

    def __init__(self, into: IO[bytes], *, duration_us: int, on_frames: OnFrames) -> None:
        self._into, self._on_frames = into, on_frames
        self._size = self._n_frames = 0
        self._most = min(_MOST_BYTES, _LEAST_BYTES + _BYTES_PER_S * duration_us // MICROSECONDS)

    def add(self, part: TaskPayload) -> None:
        """Take one piece."""
        header = _PieceHeader.model_validate(part.header)
        _require_valid(len(part.blobs) == 1, "a piece has one blob")
        (data,) = part.blobs
        _require_valid(header.at <= self._size, "a piece leaves a hole before it")
        if header.at < _START.stop:
            is_start = header.at == 0 and data[_START] == _MP4_START
            _require_valid(is_start, "the copy is not an mp4 file")
        _require_valid(header.n_frames >= self._n_frames, "frames are taken back")
        if header.at + len(data) > self._most:
            detail = f"its copy takes more than {self._most} bytes"
            raise MediaError(Failure(FailureReason.TOO_LARGE, detail))
        self._into.seek(header.at)
        self._into.write(data)
        self._size = max(self._size, header.at + len(data))
        self._n_frames = header.n_frames
        self._on_frames(header.n_frames)

    def finish(self, last: TaskPayload) -> CopyHeader:
        """Return the description of the copy after `last` confirmed that it is complete."""
        header = CopyHeader.model_validate(last.header)
        _require_valid(not last.blobs, "a copy ends without blobs")
        is_whole = (header.size_bytes, header.n_frames) == (self._size, self._n_frames)
        _require_valid(is_whole, "pieces of the copy are missing")
        return header


def _require_valid(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    if not holds:
        raise InvalidValueError(otherwise)
