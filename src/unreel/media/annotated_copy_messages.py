"""Receiver of the chunks of an annotated copy from the decoding process, which checks each chunk."""

from collections.abc import Callable
from typing import IO

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.core.span import MICROSECONDS
from unreel.media.messages import MP4_START, TaskReplyPayload, require_valid_reply
from unreel.media.task_schemas import AnnotatedCopyReplyHeader, CopyChunkHeader

OnFrames = Callable[[int], None]
"""Callback that receives the number of frames drawn so far."""

_MIN_BYTES = 64 << 20
_BYTES_PER_S = 16 << 20
_MAX_BYTES = 16 << 30


class AnnotatedCopyReceiver:
    """Receiver that checks the chunks of an annotated copy and writes them to the file `into`.

    Raises:
        InvalidValueError: A chunk is invalid.
        MediaError: The copy is larger than the limit for its duration.
    """

    def __init__(self, into: IO[bytes], *, duration_us: int, on_frames: OnFrames) -> None:
        self._into, self._on_frames = into, on_frames
        self._size = self._n_frames = 0
        self._max_bytes = min(_MAX_BYTES, _MIN_BYTES + _BYTES_PER_S * duration_us // MICROSECONDS)

    def add(self, payload: TaskReplyPayload) -> None:
        """Check one chunk and write it to the file."""
        header = CopyChunkHeader.model_validate(payload.header)
        require_valid_reply(len(payload.blobs) == 1, "a chunk has one blob")
        (data,) = payload.blobs
        require_valid_reply(header.at <= self._size, "a chunk leaves a hole before it")
        if header.at < MP4_START.stop:
            is_start = header.at == 0 and data[MP4_START] == b"ftyp"
            require_valid_reply(is_start, "the copy is not an mp4 file")
        require_valid_reply(header.n_frames >= self._n_frames, "frames are taken back")
        if header.at + len(data) > self._max_bytes:
            detail = f"its copy takes more than {self._max_bytes} bytes"
            raise MediaError(FailureReason.TOO_LARGE, detail)
        self._into.seek(header.at)
        self._into.write(data)
        self._size = max(self._size, header.at + len(data))
        self._n_frames = header.n_frames
        self._on_frames(header.n_frames)

    def finish(self, last_payload: TaskReplyPayload) -> AnnotatedCopyReplyHeader:
        """Check with the final message `last_payload` that the copy is complete, and return its header."""
        header = AnnotatedCopyReplyHeader.model_validate(last_payload.header)
        require_valid_reply(not last_payload.blobs, "a copy ends without blobs")
        is_whole = (header.size_bytes, header.n_frames) == (self._size, self._n_frames)
        require_valid_reply(is_whole, "chunks of the copy are missing")
        return header
