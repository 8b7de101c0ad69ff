"""Facts, frames and sound of clips by path, through any runner of tasks; failures are values.

What a runner hands back is checked before it is believed: the file may have taken over the process
that read it.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import numpy as np
from pydantic import ValidationError

from unreel.core.errors import InvalidValueError, MediaError, UnknownNameError
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure, FailureReason
from unreel.media.container import MAX_PIXELS
from unreel.media.decode import Rgb
from unreel.media.normalise import NormalForm
from unreel.media.payload import Payload, TaskRunner
from unreel.media.picture import JPEG_QUALITY, decode_jpeg
from unreel.media.render import Cut
from unreel.media.sampling import parse_plan
from unreel.media.scan import Scan
from unreel.media.scan_wire import read_scan
from unreel.media.sound import MAX_SAMPLES, SAMPLE_RATE_HZ, NoSound, Sound
from unreel.media.tasks import TASKS
from unreel.media.wire import (
    FrameHeader,
    FramesHeader,
    NormaliseHeader,
    ProbeHeader,
    SoundHeader,
    write_exact,
)

Encoding = Literal["jpeg", "rgb24"]
_JPEG_START: Final = b"\xff\xd8\xff"
_JPEG_SLACK_BYTES: Final = 1 << 16
_MP4_START: Final = b"ftyp"


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrame:
    """One frame of a clip, as JPEG or as plain pixels."""

    index: int
    at_s: Fraction
    width: int
    height: int
    encoding: Encoding
    data: bytes

    def rgb(self) -> Rgb:
        """Its pixels."""
        if self.encoding == "jpeg":
            return decode_jpeg(self.data, width=self.width, height=self.height)
        return np.frombuffer(self.data, np.uint8).reshape(self.height, self.width, 3)

    def __repr__(self) -> str:
        size = f"{self.width} x {self.height}, {len(self.data)} bytes of {self.encoding}"
        return f"SampledFrame({self.index} at {self.at_s} s, {size})"


@dataclass(frozen=True, slots=True, eq=False)
class SampledFrames:
    """What a sampling took from a clip of `n_clip_frames` frames, in the order shown."""

    sampling: str
    n_clip_frames: int
    frames: tuple[SampledFrame, ...]


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MediaReader:
    """Reads clips by path; `run` decides where a file is opened."""

    run: TaskRunner
    max_pixels: int = MAX_PIXELS

    def probe(self, path: Path) -> ClipFacts | Failure:
        """The facts of the clip's streams."""
        return self._ask("probe", path, {}, _read_facts)

    def frames(
        self,
        path: Path,
        *,
        sampling: str,
        encoding: Encoding = "jpeg",
        quality: int = JPEG_QUALITY,
        longest_side: int | None = None,
    ) -> SampledFrames | Failure:
        """The frames that `sampling` takes; an unknown sampling is an error, not a failure."""
        name = str(parse_plan(sampling))
        request = {
            "sampling": name,
            "encoding": encoding,
            "quality": quality,
            "longest_side": longest_side,
        }
        most_pixels = min(self.max_pixels, (longest_side or self.max_pixels) ** 2)
        return self._ask(
            "frames",
            path,
            request,
            lambda payload: _read_frames(
                payload, sampling=name, encoding=encoding, most_pixels=most_pixels
            ),
        )

    def sound(self, path: Path) -> Sound | NoSound | Failure:
        """The clip's sound at 16 kHz."""
        return self._ask("sound", path, {}, _read_sound)

    def normalise(self, path: Path, form: NormalForm) -> bytes | Failure:
        """The clip in `form`, as the bytes of an mp4 file."""
        return self._ask("normalise", path, _form_request(form), _read_normalised)

    def render(self, path: Path, cut: Cut, *, form: NormalForm | None = None) -> bytes | Failure:
        """A piece of the clip as the bytes of an mp4 file, in `form` or in its own."""
        request = {
            "first_frame": cut.first_frame,
            "end_frame": cut.end_frame,
            "length_s": None if cut.length_s is None else write_exact(cut.length_s),
            "crop": None if cut.crop is None else asdict(cut.crop),
            "form": None if form is None else _form_request(form),
        }
        return self._ask("render", path, request, _read_normalised)

    def scan(self, path: Path) -> Scan | Failure:
        """Measures of every frame, and eight evenly spaced ones as pictures: see `media.scan`."""
        return self._ask("scan", path, {}, read_scan)

    def _ask(
        self,
        task: str,
        path: Path,
        request: Mapping[str, Any],
        read: Callable[[Payload], Value],
    ) -> Value | Failure:
        payload = self.run(task, path, {**request, "max_pixels": self.max_pixels})
        if isinstance(payload, Failure):
            return payload
        try:
            return read(payload)
        except (InvalidValueError, ValidationError) as error:
            detail = f"{task} sent back what it must not: {' '.join(str(error).split())}"[:400]
            return Failure(FailureReason.WORKER_DIED, detail)


def _form_request(form: NormalForm) -> dict[str, Any]:
    return {
        "width": form.width,
        "height": form.height,
        "rate": write_exact(form.rate),
        "crf": form.crf,
        "sound": form.sound,
    }


def run_trusted(task: str, path: Path, request: Mapping[str, Any]) -> Payload | Failure:
    """Runs `task` in this process, for files whose maker is trusted; links are followed."""
    if task not in TASKS:
        kind = "media task"
        raise UnknownNameError(kind, task, sorted(TASKS))
    try:
        # A pipe or a device opened without O_NONBLOCK would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Failure(FailureReason.NOT_A_FILE, "not a regular file")
            return TASKS[task](file, request)
    except MediaError as error:
        return error.failure
    except MemoryError:
        return Failure(FailureReason.OUT_OF_MEMORY, f"{task} ran out of memory")
    except OSError as error:
        return Failure(FailureReason.NOT_A_FILE, error.strerror or type(error).__name__)


def _read_facts(payload: Payload) -> ClipFacts:
    _expect(not payload.blobs, "facts come without blobs")
    return ProbeHeader.model_validate(payload.header).as_facts()


def _read_frames(
    payload: Payload, *, sampling: str, encoding: Encoding, most_pixels: int
) -> SampledFrames:
    header = FramesHeader.model_validate(payload.header)
    listed = header.frames
    _expect(header.sampling == sampling, "the sampling is not the one asked for")
    _expect(header.encoding == encoding, "the encoding is not the one asked for")
    _expect(len(listed) == len(payload.blobs), "there is not one blob for each frame")
    _expect(listed[-1].index < header.n_clip_frames, "a frame lies behind the last one")
    for now, after in pairwise(listed):
        _expect(now.index < after.index and now.at_s <= after.at_s, "frames are out of order")
    return SampledFrames(
        sampling,
        header.n_clip_frames,
        tuple(
            _read_frame(frame, blob, encoding=encoding, most_pixels=most_pixels)
            for frame, blob in zip(listed, payload.blobs, strict=True)
        ),
    )


def _read_frame(
    frame: FrameHeader, blob: bytes, *, encoding: Encoding, most_pixels: int
) -> SampledFrame:
    pixel_bytes = frame.width * frame.height * 3
    _expect(frame.width * frame.height <= most_pixels, "a frame is larger than asked for")
    if encoding == "rgb24":
        _expect(len(blob) == pixel_bytes, "a frame's bytes do not fit its size")
    else:
        _expect(blob.startswith(_JPEG_START), "a frame is not a JPEG")
        _expect(len(blob) <= pixel_bytes + _JPEG_SLACK_BYTES, "a JPEG is larger than its pixels")
    return SampledFrame(frame.index, frame.at_s, frame.width, frame.height, encoding, blob)


def _read_sound(payload: Payload) -> Sound | NoSound:
    sound = SoundHeader.model_validate(payload.header).sound
    if sound is None:
        _expect(not payload.blobs, "a mute clip comes without blobs")
        return NoSound()
    _expect(sound.rate_hz == SAMPLE_RATE_HZ, "the sound is not at 16 kHz")
    _expect(sound.n_samples <= MAX_SAMPLES, "the sound is longer than it may be")
    _expect([len(blob) for blob in payload.blobs] == [2 * sound.n_samples], "samples are missing")
    samples = np.frombuffer(payload.blobs[0], "<i2").astype(np.int16, copy=False)
    return Sound(samples, sound.start_s)


def _read_normalised(payload: Payload) -> bytes:
    size_bytes = NormaliseHeader.model_validate(payload.header).size_bytes
    _expect([len(blob) for blob in payload.blobs] == [size_bytes], "bytes of the clip are missing")
    _expect(payload.blobs[0][4:8] == _MP4_START, "the clip is not an mp4 file")
    return payload.blobs[0]


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001  reads as a sentence at its calls
    if not holds:
        raise InvalidValueError(otherwise)
