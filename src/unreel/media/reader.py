"""Reader of facts, frames and sound of a clip by path; failures are return values.

The reply of a task runner is validated before use: a malicious file may have taken over the
process that read it.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from unreel.core.clip import ClipFacts
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    MachineError,
    MediaError,
    SandboxError,
    UnknownNameError,
    raise_if_machine_error,
)
from unreel.core.failure import Failure, FailureReason
from unreel.core.span import MICROSECONDS
from unreel.media.messages import (
    INSTANTS,
    JPEG_QUALITY,
    LONGEST_SIDE,
    MAX_PIXELS,
    MP4_START,
    SAMPLE_RATE_HZ,
    MediaTaskRunner,
    OnPart,
    TaskReplyPayload,
    convert_to_json_fields,
    deliver_task_result,
    format_fraction,
    require_valid_reply,
)
from unreel.media.sandbox.reply_format import sanitise_reply_text
from unreel.media.task_schemas import (
    AnnotatedCopyReplyHeader,
    CopyChunkHeader,
    FrameReplyHeader,
    FramesReplyHeader,
    Mp4ReplyHeader,
    ProbeReplyHeader,
    SoundReplyHeader,
)

if TYPE_CHECKING:
    from unreel.media.decode import Rgb
    from unreel.media.overlay import OverlayCommentary
    from unreel.media.render import CroppedFrameRange, NormalisedClipFormat
    from unreel.media.scan import ClipScan
    from unreel.media.sound import ClipSound


OnFrames = Callable[[int], None]

_MIN_BYTES = 64 << 20
_BYTES_PER_S = 16 << 20
_MAX_BYTES = 16 << 30


class AnnotatedCopyReceiver:
    """Receiver that checks the chunks of an annotated copy and writes them to the file `into`.

    Raise `InvalidValueError` if a chunk is invalid, or `MediaError` if the copy is larger than the
    limit for its duration.
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
            detail = f"the copy takes more than {self._max_bytes} bytes"
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


Value = TypeVar("Value")

Encoding = Literal["jpeg", "rgb24"]
MAX_FRAMES_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrame:
    """One frame of a clip, as JPEG or as raw pixels."""

    index: int
    at_s: Fraction
    """Display time in seconds after the clip's first frame."""
    width: int
    height: int
    encoding: Encoding
    data: bytes = field(repr=False)

    def rgb(self) -> "Rgb":
        """Return the pixels of the frame."""
        import numpy as np

        from unreel.media.picture import decode_jpeg

        if self.encoding == "jpeg":
            return decode_jpeg(self.data)
        return np.frombuffer(self.data, np.uint8).reshape(self.height, self.width, 3)


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrames:
    """Frames sampled from one clip, in display order, and the number of all its frames."""

    sampling: str
    n_clip_frames: int
    frames: tuple[SampledFrame, ...]


class FrameCollector:
    """Receiver of the parts of a reply to the task `frames`, which checks and collects the frames.

    The child process sends raw pixels only, and this process makes every JPEG. So its JPEG decoder
    never reads data that a hostile file could have crafted. Raise `InvalidValueError` if a part is
    invalid, or `MediaError` if the frames take too much memory.
    """

    def __init__(
        self,
        sampling: str,
        encoding: Encoding,
        *,
        quality: int,
        max_frames: int,
        max_pixels: int,
        longest_side: int,
    ) -> None:
        self._sampling = sampling
        self._encoding = encoding
        self._quality = quality
        self._max_frames = max_frames
        self._max_pixels = max_pixels
        self._longest_side = longest_side
        self._frames: list[SampledFrame] = []
        self._n_bytes_left = MAX_FRAMES_BYTES

    def add(self, payload: TaskReplyPayload) -> None:
        """Check the frame in `payload`, encode it if requested, and store it."""
        header = FrameReplyHeader.model_validate(payload.header)
        width, height = header.width, header.height
        require_valid_reply(
            len(self._frames) < self._max_frames, "there are more frames than requested"
        )
        require_valid_reply(width * height <= self._max_pixels, "a frame is larger than requested")
        require_valid_reply(
            max(width, height) <= self._longest_side, "a frame is longer than requested"
        )
        sizes = [len(blob) for blob in payload.blobs]
        require_valid_reply(sizes == [3 * width * height], "a frame's bytes do not fit its size")
        if self._frames:
            before = self._frames[-1]
            in_order = before.index < header.index and before.at_s <= header.at_s
            require_valid_reply(in_order, "frames are out of order")
        (data,) = payload.blobs
        if self._encoding == "jpeg":
            import numpy as np

            from unreel.media.picture import encode_jpeg

            rgb = np.frombuffer(data, np.uint8).reshape(height, width, 3)
            data = encode_jpeg(rgb, quality=self._quality)
        self._n_bytes_left -= len(data)
        if self._n_bytes_left < 0:
            raise MediaError(
                FailureReason.OUT_OF_MEMORY, f"the frames take more than {MAX_FRAMES_BYTES} bytes"
            )
        frame = SampledFrame(header.index, header.at_s, width, height, self._encoding, data)
        self._frames.append(frame)

    def finish(self, last_payload: TaskReplyPayload) -> SampledFrames:
        """Check the final message `last_payload` of the reply, and return all collected frames."""
        header = FramesReplyHeader.model_validate(last_payload.header)
        require_valid_reply(not last_payload.blobs, "frames end without blobs")
        require_valid_reply(
            header.sampling == self._sampling, "the sampling is not the requested one"
        )
        require_valid_reply(0 < len(self._frames) == header.n_frames, "frames are missing")
        require_valid_reply(
            self._frames[-1].index < header.n_clip_frames, "a frame is after the last one"
        )
        return SampledFrames(header.sampling, header.n_clip_frames, tuple(self._frames))


@dataclass(frozen=True, slots=True)
class MediaReader:
    """Reader of facts, frames and sound of clips; `run` decides in which process a file is opened."""

    run: MediaTaskRunner
    max_pixels: int = MAX_PIXELS

    def probe(self, path: str | Path) -> ClipFacts | Failure:
        """Return the facts of the clip at `path`: container, streams and timing; or the failure."""
        return self._ask("probe", path, {}, lambda payload: _parse_facts_reply(payload, Path(path)))

    def frames(
        self,
        path: str | Path,
        *,
        sampling: str,
        encoding: Encoding = "jpeg",
        quality: int = JPEG_QUALITY,
        longest_side: int | None = None,
        most_pixels: int | None = None,
    ) -> SampledFrames | Failure:
        """Return the frames of the clip at `path` that `sampling` selects, or the failure.

        Raise `UnreelError` if `sampling` is unknown or out of range.
        """
        from unreel.media.sampling import get_max_sampled_frames, parse_sampling

        plan = parse_sampling(sampling)
        collector = FrameCollector(
            str(plan),
            encoding,
            quality=quality,
            max_frames=get_max_sampled_frames(plan),
            max_pixels=most_pixels or self.max_pixels,
            longest_side=longest_side or LONGEST_SIDE,
        )
        bounds = {"longest_side": longest_side, "most_pixels": most_pixels}
        request = {"sampling": str(plan), **bounds}
        return self._ask("frames", path, request, collector.finish, on_part=collector.add)

    def frames_at(self, path: str | Path, at_us: Sequence[int]) -> SampledFrames | Failure:
        """Return the clip's frames shown at the times `at_us`, each once, as pixels in original size."""
        collector = FrameCollector(
            INSTANTS,
            "rgb24",
            quality=JPEG_QUALITY,
            max_frames=len(at_us),
            max_pixels=self.max_pixels,
            longest_side=LONGEST_SIDE,
        )
        request = {"at_us": list(at_us)}
        return self._ask("instants", path, request, collector.finish, on_part=collector.add)

    def sound(self, path: str | Path) -> "ClipSound | Failure | None":
        """Return the clip's sound at 16 kHz in one channel, `None` without sound, or the failure."""
        return self._ask("sound", path, {}, _parse_sound_reply)

    def normalise(self, path: str | Path, form: "NormalisedClipFormat") -> bytes | Failure:
        """Return the clip re-encoded in the format `form`, as the bytes of an mp4 file."""
        request = {"form": convert_to_json_fields(form)}
        return self._ask("normalise", path, request, _parse_mp4_reply)

    def render(
        self,
        path: str | Path,
        frame_range: "CroppedFrameRange",
        *,
        form: "NormalisedClipFormat | None" = None,
        speed: Fraction = Fraction(1),
    ) -> bytes | Failure:
        """Return a part of the clip as the bytes of an mp4 file, in `form` or in the clip's own format."""
        request = {
            "frame_range": convert_to_json_fields(frame_range),
            "speed": format_fraction(speed),
            "form": None if form is None else convert_to_json_fields(form),
        }
        return self._ask("render", path, request, _parse_mp4_reply)

    def annotate(
        self,
        path: str | Path,
        commentary: "OverlayCommentary",
        *,
        into: IO[bytes],
        on_frames: "OnFrames" = lambda _n_frames: None,
    ) -> "AnnotatedCopyReplyHeader | Failure":
        """Write a copy with `commentary` drawn on it to `into`; `on_frames` gets the number of written frames."""
        from unreel.media.reader import AnnotatedCopyReceiver

        duration_us = commentary.duration_us
        receiver = AnnotatedCopyReceiver(into, duration_us=duration_us, on_frames=on_frames)
        request = {"commentary": convert_to_json_fields(commentary)}
        return self._ask("annotate", path, request, receiver.finish, on_part=receiver.add)

    def scan(self, path: str | Path) -> "ClipScan | Failure":
        """Return measurements of every frame of the clip, and eight evenly spaced frames as pictures."""
        from unreel.media.scan import parse_scan_payload

        return self._ask("scan", path, {}, parse_scan_payload)

    def _ask(
        self,
        task: str,
        path: str | Path,
        request: Mapping[str, Any],
        read: Callable[[TaskReplyPayload], Value],
        *,
        on_part: OnPart | None = None,
    ) -> Value | Failure:
        try:
            payload = self.run(
                task, Path(path), {**request, "max_pixels": self.max_pixels}, on_part
            )
            return payload if isinstance(payload, Failure) else read(payload)
        except (InvalidSettingError, MachineError, SandboxError, UnknownNameError):
            raise  # An error of the caller or the machine, independent of the file.
        except Exception as error:  # noqa: BLE001  what a file leads to is that file's failure
            raise_if_machine_error(error)
            return _convert_error_to_failure(task, error)


def _convert_error_to_failure(task: str, error: Exception) -> Failure:
    match error:
        case MediaError():
            return error.failure
        case ValidationError():
            # Without the input values: they come from the child, and there may be many.
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = ".".join(sanitise_reply_text(str(part)) for part in first["loc"])
            message = sanitise_reply_text(first["msg"])
            reason = FailureReason.WORKER_DIED
            problem = f"{field}: {message} ({error.error_count()} in all)"
        case InvalidValueError():
            reason, problem = FailureReason.WORKER_DIED, str(error)
        case MemoryError():
            reason, problem = FailureReason.OUT_OF_MEMORY, "more than fits into this process"
        case _:
            reason, problem = FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}"
    return Failure(reason, sanitise_reply_text(f"{task} sent an invalid reply: {problem}"))


def run_trusted_task(
    task: str, path: Path, request: Mapping[str, Any], on_part: OnPart | None = None
) -> TaskReplyPayload | Failure:
    """Run the media task `task` on a trusted file in this process; symbolic links are followed."""
    from unreel.media.tasks import TASKS

    if task not in TASKS:
        raise UnknownNameError("media task", task, sorted(TASKS))
    try:
        # Without O_NONBLOCK, opening a pipe or a device would block until its other end opens.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Failure(FailureReason.NOT_A_FILE, "not a regular file")
            return deliver_task_result(TASKS[task](file, request), on_part or (lambda _part: None))
    except MediaError as error:
        return error.failure
    except MemoryError:
        return Failure(FailureReason.OUT_OF_MEMORY, f"{task} ran out of memory")
    except OSError as error:
        return Failure(FailureReason.NOT_A_FILE, error.strerror or type(error).__name__)


def _parse_facts_reply(payload: TaskReplyPayload, path: Path) -> ClipFacts:
    require_valid_reply(not payload.blobs, "facts come without blobs")
    facts = ProbeReplyHeader.model_validate(payload.header).as_facts()
    # Callers check this size before they read the file into memory.
    require_valid_reply(facts.size_bytes == path.stat().st_size, "the file has another size")
    return facts


def _parse_sound_reply(payload: TaskReplyPayload) -> "ClipSound | None":
    import numpy as np

    from unreel.media.sound import ClipSound

    sound = SoundReplyHeader.model_validate(payload.header).sound
    if sound is None:
        require_valid_reply(not payload.blobs, "a mute clip comes without blobs")
        return None
    require_valid_reply(sound.rate_hz == SAMPLE_RATE_HZ, "the sound is not at 16 kHz")
    require_valid_reply(
        [len(blob) for blob in payload.blobs] == [2 * sound.n_samples], "samples are missing"
    )
    samples = np.frombuffer(payload.blobs[0], "<i2").astype(np.int16, copy=False)
    return ClipSound(samples, sound.start_s)


def _parse_mp4_reply(payload: TaskReplyPayload) -> bytes:
    size_bytes = Mp4ReplyHeader.model_validate(payload.header).size_bytes
    require_valid_reply(
        [len(blob) for blob in payload.blobs] == [size_bytes], "bytes of the clip are missing"
    )
    require_valid_reply(payload.blobs[0][MP4_START] == b"ftyp", "the clip is not an mp4 file")
    return payload.blobs[0]
