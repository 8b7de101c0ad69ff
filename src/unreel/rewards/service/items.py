"""Items of a request: clips in any of the accepted forms, read into memory, and their rewards as JSON."""

import base64
import binascii
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.message import Message
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError, MediaError, UnsafeTargetError
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import compute_bytes_clip_id, compute_placeholder_clip_id
from unreel.core.output_files import OutputDirectory
from unreel.engine.downloads import DownloadPolicy, download_file
from unreel.media.encode import ClipWriter, VideoTrackSettings
from unreel.rewards.result import Reward
from unreel.rewards.service.settings import ServiceSettings

Frames = NDArray[np.uint8]
_COLOURS: Final = 3
_DIMENSIONS: Final = 4
_MOST_FRAMES: Final = 2000
_LONGEST_SIDE: Final = 4096
_FASTEST: Final = 240
_HEADER: Final = 10_000
_LENGTH_BYTES: Final = 8
_ENCODING: Final = "h264-crf10@1"
_PART_NAME: Final = re.compile(
    rb'(?i)^content-disposition:[^\r\n]*[; ]name="?([^"\r\n;]+)', re.MULTILINE
)
_FORM: Final = "Send uint8 (T, C, H, W) or (T, H, W, C) with 3 colours"


@dataclass(frozen=True, slots=True)
class FileBytes:
    """Content of a video file."""

    data: bytes

    def identify(self) -> ClipId:
        """Return the SHA-256 of the content."""
        return compute_bytes_clip_id(self.data)

    def read(self) -> bytes:
        """Return the video file."""
        return self.data


@dataclass(frozen=True, slots=True)
class FrameArray:
    """Frames (T, H, W, 3), uint8, and their rate."""

    frames: Frames
    fps: Fraction

    def __post_init__(self) -> None:
        n_frames, height, width, colours = self.frames.shape
        fits = 1 <= n_frames <= _MOST_FRAMES and min(height, width) > 1 and colours == _COLOURS
        if not fits or max(height, width) > _LONGEST_SIDE:
            msg = f"an array of shape {self.frames.shape} is no clip. {_FORM}"
            raise InvalidValueError(msg)
        if not 0 < self.fps <= _FASTEST:
            msg = f"fps must be above 0 and at most {_FASTEST}, got {float(self.fps)}. Give the true rate"
            raise InvalidValueError(msg)

    def identify(self) -> ClipId:
        """Return an id of pixels, shape, rate and encoding."""
        pixels = compute_bytes_clip_id(np.ascontiguousarray(self.frames).tobytes())
        return compute_placeholder_clip_id(
            "frames", pixels, str(self.frames.shape), str(self.fps), _ENCODING
        )

    def read(self) -> bytes:
        """Return the frames as a video file; an odd last row or column is left out."""
        height, width = (side - side % 2 for side in self.frames.shape[1:3])
        track = VideoTrackSettings(
            codec="libx264",
            width=width,
            height=height,
            rate=self.fps,
            time_base=1 / self.fps,
            options={"crf": "10", "preset": "ultrafast"},
        )
        with ClipWriter("mp4", track) as writer:
            for tick, frame in enumerate(self.frames):
                writer.add_picture(np.ascontiguousarray(frame[:height, :width]), tick=tick)
            return writer.finish()


@dataclass(frozen=True, slots=True)
class FileReference:
    """Path of a file below an allowed root, or address of a file at an allowed host."""

    path: str = ""
    url: str = ""


MediaSource = FileBytes | FrameArray | FileReference


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardItem:
    """One clip to score."""

    video: MediaSource
    id: str | None = None
    prompt: str | None = None
    step: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReward:
    """Reward of one item, with its source."""

    id: str | None
    reward_id: str
    """"" if the clip could not be read."""
    content: str
    """SHA-256 that identifies the clip; "" if it could not be read."""
    reward: Reward
    verdicts: Sequence[Mapping[str, Any]] = ()
    """As JSON: reviewer, protocol, and verdict or failure."""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class ScoredClip:
    """Reward of a clip with its verdicts as JSON, in the form of the cache."""

    reward: Reward
    verdicts: list[dict[str, Any]] = field(default_factory=list)


_SCORED: Final = TypeAdapter(ScoredClip)


def format_verdicts(reward: Reward) -> list[dict[str, Any]]:
    """Return the verdicts of a reward as JSON."""
    return [
        {
            "reviewer": verdict.reviewer,
            "protocol": verdict.protocol,
            **(
                {"failure": format_failure(verdict.outcome)}
                if isinstance(verdict.outcome, Failure)
                else {"verdict": to_jsonable_python(verdict.outcome)}
            ),
        }
        for verdict in reward.verdicts
    ]


def format_failure(failure: Failure) -> dict[str, str]:
    """Return a failure as JSON."""
    return {"reason": failure.reason.value, "message": f"{failure.detail}. {failure.reason.remedy}"}


def format_document(scored: ScoredClip) -> str:
    """Return a reward for storage; `read_document` is the inverse."""
    return _SCORED.dump_json(replace(scored, reward=replace(scored.reward, verdicts=()))).decode()


def read_document(document: str) -> ScoredClip:
    """Return the reward that `format_document` stored."""
    return _SCORED.validate_json(document)


def read_media(source: MediaSource, settings: ServiceSettings) -> FileBytes | FrameArray:
    """Return the media in memory, from an allowed place only.

    Raises:
        MediaError: It is not allowed, absent or too large.
    """
    if not isinstance(source, FileReference):
        return source
    read, place = (_fetch_clip_bytes, source.url) if source.url else (_read_path, source.path)
    return FileBytes(read(place, settings))


def _read_path(path: str, settings: ServiceSettings) -> bytes:
    most = settings.max_clip_bytes
    for root in settings.roots:
        try:
            name = (root / path).relative_to(root).as_posix()
            with OutputDirectory(root).read(name) as file:
                data = file.read(most + 1)
        except (InvalidValueError, UnsafeTargetError, OSError, ValueError):
            continue  # outside of this root, through a link, or absent
        if len(data) > most:
            raise MediaError(Failure(FailureReason.TOO_LARGE, f"more than {most} bytes"))
        return data
    raise MediaError(Failure(FailureReason.NOT_A_FILE, "no file below an allowed root"))


def _fetch_clip_bytes(url: str, settings: ServiceSettings) -> bytes:
    reach = DownloadPolicy(
        named=settings.hosts, max_bytes=settings.max_clip_bytes, seconds=settings.upload_s
    )
    file = io.BytesIO()
    download_file(url, file, reach=reach, storage={})
    return file.getvalue()


def read_parts(body: bytes, content_type: str, *, most: int) -> dict[str, bytes]:
    """Return the content of each part of a `multipart/form-data` body, by name.

    The body is in memory and bounded, so that one search is enough; a general parser takes most of the time of a request.

    Raises:
        InvalidValueError: It is no such body, or has more than `most` parts.
    """
    header = Message()
    header["content-type"] = content_type
    mark = f"--{header.get_boundary('')}".encode("latin-1", "replace")
    parts: dict[str, bytes] = {}
    start = body.find(mark) + len(mark)
    while body[start : start + 2] == b"\r\n" and len(parts) <= most:
        end = body.find(b"\r\n" + mark, start)
        head = body.find(b"\r\n\r\n", start, max(0, end))
        name = _PART_NAME.search(body, start, max(0, head))
        if name is None:
            break
        parts[name[1].decode("utf-8", "replace")] = body[head + 4 : end]
        start = end + 2 + len(mark)
    if body[start : start + 2] != b"--" or len(parts) > most or mark == b"--":
        msg = f"the body is no multipart/form-data of at most {most} parts with names"
        raise InvalidValueError(msg)
    return parts


def decode_base64(text: str, what: str) -> bytes:
    """Return the bytes of base64 text.

    Raises:
        InvalidValueError: It is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        msg = f"{what} is no base64 ({error}). Encode the bytes with standard base64"
        raise InvalidValueError(msg) from None


def read_frames(data: bytes, fps: float) -> FrameArray:
    """Return the frames of an npy or safetensors document without running any of its code.

    Raises:
        InvalidValueError: It is neither, or holds no frames.
    """
    try:
        frames = _read_npy(data) if data.startswith(b"\x93NUMPY") else _read_safetensors(data)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, UnicodeError) as error:
        msg = f"the array is no npy or safetensors document ({error}). {_FORM}"
        raise InvalidValueError(msg) from None
    return to_frames(frames, fps)


def to_frames(array: Frames, fps: float) -> FrameArray:
    """Return (T, C, H, W) or (T, H, W, C) as a clip.

    Raises:
        InvalidValueError: It has another shape or type.
    """
    if array.dtype != np.uint8 or array.ndim != _DIMENSIONS or not math.isfinite(fps):
        msg = f"an array of {array.dtype} with {array.ndim} dimensions is no clip. {_FORM}"
        raise InvalidValueError(msg)
    last = array.transpose(0, 2, 3, 1) if array.shape[1] == _COLOURS else array
    return FrameArray(last, Fraction(fps).limit_denominator(60_060))


def _read_npy(data: bytes) -> Frames:
    """Read an npy document; the size is compared before memory is taken."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, is_fortran, kind = readers[version](file, max_header_size=_HEADER)
    body = data[file.tell() :]
    if kind != np.uint8 or is_fortran or math.prod(shape) != len(body):
        msg = f"type {kind}, shape {shape}, {len(body)} bytes"
        raise ValueError(msg)
    return np.frombuffer(body, np.uint8).reshape(shape)


def _read_safetensors(data: bytes) -> Frames:
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if length > min(_HEADER, len(data)):
        msg = f"a header of {length} bytes"
        raise ValueError(msg)
    header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    if not isinstance(header, Mapping):
        msg = "no header"
        raise TypeError(msg)
    (tensor,) = (value for name, value in header.items() if name != "__metadata__")
    start, end = tensor["data_offsets"]
    shape = [int(side) for side in tensor["shape"]]
    body = data[_LENGTH_BYTES + length :]
    if tensor["dtype"] != "U8" or (start, end) != (0, len(body)) or math.prod(shape) != len(body):
        msg = f"type {tensor['dtype']}, shape {shape}, {len(body)} bytes"
        raise ValueError(msg)
    return np.frombuffer(body, np.uint8).reshape(shape)
