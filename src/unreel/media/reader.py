"""Reader of facts, frames and sound of a clip by path; failures are return values.

The reply of a task runner is validated before use: a malicious file may have taken over the
process that read it.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

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
from unreel.media.frame_collector import (
    Encoding,
    FrameCollector,
    FrameRequestSettings,
    SampledFrame,
    SampledFrames,
)
from unreel.media.messages import (
    INSTANTS,
    JPEG_QUALITY,
    LONGEST_SIDE,
    MAX_PIXELS,
    SAMPLE_RATE_HZ,
    MediaTaskRunner,
    OnPart,
    TaskReplyPayload,
    deliver_task_result,
    format_fraction,
)
from unreel.media.sandbox.reply_format import sanitise_reply_text

if TYPE_CHECKING:  # Each task imports its own modules: a probe needs no NumPy and no decoder.
    from pydantic import ValidationError

    from unreel.media.annotated_copy_messages import AnnotatedCopyReplyHeader, OnFrames
    from unreel.media.normalise import NormalisedClipFormat
    from unreel.media.overlay import OverlayCommentary
    from unreel.media.render import CroppedFrameRange
    from unreel.media.scan import ClipScan
    from unreel.media.sound import ClipSound, NoSound

__all__ = ["Encoding", "MediaReader", "SampledFrame", "SampledFrames", "run_trusted_task"]

_MP4_START = b"ftyp"


Value = TypeVar("Value")


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

        Raises:
            UnreelError: `sampling` is unknown or out of range.
        """
        from unreel.media.sampling import get_max_sampled_frames, parse_sampling

        plan = parse_sampling(sampling)
        gathering = FrameCollector(
            FrameRequestSettings(
                sampling=str(plan),
                encoding=encoding,
                quality=quality,
                most_frames=get_max_sampled_frames(plan),
                most_pixels=most_pixels or self.max_pixels,
                longest_side=longest_side or LONGEST_SIDE,
            )
        )
        bounds = {"longest_side": longest_side, "most_pixels": most_pixels}
        request = {"sampling": str(plan), **bounds}
        return self._ask("frames", path, request, gathering.finish, on_part=gathering.add)

    def frames_at(self, path: str | Path, at_us: Sequence[int]) -> SampledFrames | Failure:
        """Return the clip's frames shown at the times `at_us`, each once, as pixels in original size."""
        gathering = FrameCollector(
            FrameRequestSettings(
                sampling=INSTANTS,
                encoding="rgb24",
                quality=JPEG_QUALITY,
                most_frames=len(at_us),
                most_pixels=self.max_pixels,
                longest_side=LONGEST_SIDE,
            )
        )
        request = {"at_us": list(at_us)}
        return self._ask("instants", path, request, gathering.finish, on_part=gathering.add)

    def sound(self, path: str | Path) -> "ClipSound | NoSound | Failure":
        """Return the clip's sound at 16 kHz in one channel, or the failure."""
        return self._ask("sound", path, {}, _parse_sound_reply)

    def normalise(self, path: str | Path, form: "NormalisedClipFormat") -> bytes | Failure:
        """Return the clip re-encoded in the format `form`, as the bytes of an mp4 file."""
        return self._ask("normalise", path, _build_format_request(form), _parse_mp4_reply)

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
            "first_frame": frame_range.first_frame,
            "end_frame": frame_range.end_frame,
            "length_s": None
            if frame_range.length_s is None
            else format_fraction(frame_range.length_s),
            "crop": None if frame_range.crop is None else asdict(frame_range.crop),
            "speed": format_fraction(speed),
            "form": None if form is None else _build_format_request(form),
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
        from unreel.media.annotated_copy_messages import (
            AnnotatedCopyReceiver,
            build_annotate_task_fields,
        )

        taker = AnnotatedCopyReceiver(into, duration_us=commentary.duration_us, on_frames=on_frames)
        request = build_annotate_task_fields(commentary)
        return self._ask("annotate", path, request, taker.finish, on_part=taker.add)

    def scan(self, path: str | Path) -> "ClipScan | Failure":
        """Return measurements of every frame of the clip, and eight evenly spaced frames as pictures."""
        from unreel.media.scan_payload import parse_scan_payload

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
    from pydantic import ValidationError

    match error:
        case MediaError():
            return error.failure
        case ValidationError():
            reason, problem = FailureReason.WORKER_DIED, _format_first_field_error(error)
        case InvalidValueError():
            reason, problem = FailureReason.WORKER_DIED, str(error)
        case MemoryError():
            reason, problem = FailureReason.OUT_OF_MEMORY, "more than fits into this process"
        case _:
            reason, problem = FailureReason.STAGE_FAILED, f"{type(error).__name__}: {error}"
    return Failure(reason, sanitise_reply_text(f"{task} sent an invalid reply: {problem}"))


def _format_first_field_error(error: "ValidationError") -> str:
    # Without the input values: they come from the child, and there may be many.
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(sanitise_reply_text(str(part)) for part in first["loc"])
    return f"{field}: {sanitise_reply_text(first['msg'])} ({error.error_count()} in all)"


def _build_format_request(clip_format: "NormalisedClipFormat") -> dict[str, Any]:
    return {
        "width": clip_format.width,
        "height": clip_format.height,
        "rate": format_fraction(clip_format.rate),
        "crf": clip_format.crf,
        "sound": clip_format.sound,
    }


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
            return deliver_task_result(TASKS[task](file, request), on_part or _ignore_reply_part)
    except MediaError as error:
        return error.failure
    except MemoryError:
        return Failure(FailureReason.OUT_OF_MEMORY, f"{task} ran out of memory")
    except OSError as error:
        return Failure(FailureReason.NOT_A_FILE, error.strerror or type(error).__name__)


def _ignore_reply_part(_payload: TaskReplyPayload) -> None:
    """Do nothing: callback for parts of a reply that the caller does not want."""


def _parse_facts_reply(payload: TaskReplyPayload, path: Path) -> ClipFacts:
    from unreel.media.task_schemas import ProbeReplyHeader

    _require_valid_reply(not payload.blobs, "facts come without blobs")
    facts = ProbeReplyHeader.model_validate(payload.header).as_facts()
    # Callers check this size before they read the file into memory.
    _require_valid_reply(facts.size_bytes == path.stat().st_size, "the file has another size")
    return facts


def _parse_sound_reply(payload: TaskReplyPayload) -> "ClipSound | NoSound":
    import numpy as np

    from unreel.media.sound import ClipSound, NoSound
    from unreel.media.task_schemas import SoundReplyHeader

    sound = SoundReplyHeader.model_validate(payload.header).sound
    if sound is None:
        _require_valid_reply(not payload.blobs, "a mute clip comes without blobs")
        return NoSound()
    _require_valid_reply(sound.rate_hz == SAMPLE_RATE_HZ, "the sound is not at 16 kHz")
    _require_valid_reply(
        [len(blob) for blob in payload.blobs] == [2 * sound.n_samples], "samples are missing"
    )
    samples = np.frombuffer(payload.blobs[0], "<i2").astype(np.int16, copy=False)
    return ClipSound(samples, sound.start_s)


def _parse_mp4_reply(payload: TaskReplyPayload) -> bytes:
    from unreel.media.task_schemas import Mp4ReplyHeader

    size_bytes = Mp4ReplyHeader.model_validate(payload.header).size_bytes
    _require_valid_reply(
        [len(blob) for blob in payload.blobs] == [size_bytes], "bytes of the clip are missing"
    )
    _require_valid_reply(payload.blobs[0][4:8] == _MP4_START, "the clip is not an mp4 file")
    return payload.blobs[0]


def _require_valid_reply(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    if not holds:
        raise InvalidValueError(otherwise)
