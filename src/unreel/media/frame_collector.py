"""Receiver of frames from the decoding process, which checks each frame and may encode it as JPEG.

The child process sends raw pixels only. The requesting process makes every JPEG: for a server,
for a page, or for storage if raw pixels would not fit. So its JPEG decoder never reads data
that a hostile file could have crafted. The work is the same in either process and overlaps with
decoding; copying eight frames costs about 10 ms.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import TaskReplyPayload

if TYPE_CHECKING:
    from unreel.media.decode import Rgb

Encoding = Literal["jpeg", "rgb24"]
MAX_FRAMES_BYTES = 256 << 20
"""Maximum total size of the frames of one clip after encoding, in bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrame:
    """One frame of a clip, as JPEG or as raw pixels."""

    index: int
    at_s: Fraction
    """Display time in seconds after the clip's first frame."""
    width: int
    height: int
    encoding: Encoding
    data: bytes

    def rgb(self) -> "Rgb":
        """Return the pixels of the frame."""
        import numpy as np

        from unreel.media.picture import decode_jpeg

        if self.encoding == "jpeg":
            return decode_jpeg(self.data)
        return np.frombuffer(self.data, np.uint8).reshape(self.height, self.width, 3)

    def __repr__(self) -> str:
        size = f"{self.width} x {self.height}, {len(self.data)} bytes of {self.encoding}"
        return f"SampledFrame({self.index} at {self.at_s} s, {size})"


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrames:
    """Frames sampled from one clip, in display order, and the number of all its frames."""

    sampling: str
    n_clip_frames: int
    frames: tuple[SampledFrame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRequestSettings:
    """Sampling, encoding and limits of a frame request, against which the reply is checked."""

    sampling: str
    encoding: Encoding
    quality: int
    most_frames: int
    most_pixels: int
    longest_side: int


class FrameCollector:
    """Receiver of the parts of a reply to the task `frames`, which collects the frames.

    Raises:
        InvalidValueError: A part is invalid.
        MediaError: The frames take too much memory.
    """

    def __init__(self, settings: FrameRequestSettings) -> None:
        self._wanted = settings
        self._frames: list[SampledFrame] = []
        self._room = MAX_FRAMES_BYTES

    def add(self, payload: TaskReplyPayload) -> None:
        """Check the frame in `payload`, encode it if requested, and store it."""
        from unreel.media.task_schemas import FrameReplyHeader

        header, settings = FrameReplyHeader.model_validate(payload.header), self._wanted
        width, height = header.width, header.height
        _require_valid_reply(
            len(self._frames) < settings.most_frames, "there are more frames than requested"
        )
        _require_valid_reply(
            width * height <= settings.most_pixels, "a frame is larger than requested"
        )
        _require_valid_reply(
            max(width, height) <= settings.longest_side, "a frame is longer than requested"
        )
        sizes = [len(blob) for blob in payload.blobs]
        _require_valid_reply(sizes == [3 * width * height], "a frame's bytes do not fit its size")
        if self._frames:
            before = self._frames[-1]
            in_order = before.index < header.index and before.at_s <= header.at_s
            _require_valid_reply(in_order, "frames are out of order")
        (data,) = payload.blobs
        if settings.encoding == "jpeg":
            import numpy as np

            from unreel.media.picture import encode_jpeg

            rgb = np.frombuffer(data, np.uint8).reshape(height, width, 3)
            data = encode_jpeg(rgb, quality=settings.quality)
        self._room -= len(data)
        if self._room < 0:
            raise MediaError(
                Failure(
                    FailureReason.OUT_OF_MEMORY,
                    f"its frames take more than {MAX_FRAMES_BYTES} bytes",
                )
            )
        frame = SampledFrame(header.index, header.at_s, width, height, settings.encoding, data)
        self._frames.append(frame)

    def finish(self, last_payload: TaskReplyPayload) -> SampledFrames:
        """Check the final message `last_payload` of the reply, and return all collected frames."""
        from unreel.media.task_schemas import FramesReplyHeader

        header = FramesReplyHeader.model_validate(last_payload.header)
        _require_valid_reply(not last_payload.blobs, "frames end without blobs")
        _require_valid_reply(
            header.sampling == self._wanted.sampling, "the sampling is not the requested one"
        )
        _require_valid_reply(0 < len(self._frames) == header.n_frames, "frames are missing")
        _require_valid_reply(
            self._frames[-1].index < header.n_clip_frames, "a frame is after the last one"
        )
        return SampledFrames(header.sampling, header.n_clip_frames, tuple(self._frames))


def _require_valid_reply(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    if not holds:
        raise InvalidValueError(otherwise)
