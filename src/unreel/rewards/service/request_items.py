"""Items of a scoring request: clips in any accepted form, and their rewards as JSON."""

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from unreel.core.clip import ClipId
from unreel.core.content_ids import compute_bytes_clip_id, compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError, MediaError, UnsafeTargetError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.engine.downloads import DownloadPolicy, download_file
from unreel.media.encode import ClipWriter, VideoTrackSettings
from unreel.rewards.result import Reward
from unreel.rewards.service.settings import RewardServiceSettings

Frames = NDArray[np.uint8]
_COLOURS = 3
_DIMENSIONS = 4
_MAX_FRAMES = 2000
_LONGEST_SIDE = 4096
_FASTEST = 240
_HEADER = 10_000
_LENGTH_BYTES = 8
_ENCODING = "h264-crf10@1"
_PART_NAME = re.compile(rb'(?i)^content-disposition:[^\r\n]*[; ]name="?([^"\r\n;]+)', re.MULTILINE)
_FORM = "Send uint8 (T, C, H, W) or (T, H, W, C) with 3 colours"


@dataclass(frozen=True, slots=True)
class FileBytes:
    """Content of one video file in memory."""

    data: bytes

    def identify(self) -> ClipId:
        """Return the clip id: the SHA-256 of the content."""
        return compute_bytes_clip_id(self.data)

    def read(self) -> bytes:
        """Return the content of the video file."""
        return self.data


@dataclass(frozen=True, slots=True)
class FrameArray:
    """Clip as an array of frames (T, H, W, 3), uint8, with its frame rate."""

    frames: Frames
    fps: Fraction

    def __post_init__(self) -> None:
        n_frames, height, width, colours = self.frames.shape
        fits = 1 <= n_frames <= _MAX_FRAMES and min(height, width) > 1 and colours == _COLOURS
        if not fits or max(height, width) > _LONGEST_SIDE:
            raise InvalidValueError(f"array of shape {self.frames.shape} is not a clip. {_FORM}")
        if not 0 < self.fps <= _FASTEST:
            raise InvalidValueError(
                f"fps must be above 0 and at most {_FASTEST}, got {float(self.fps)}. Give the true rate"
            )

    def identify(self) -> ClipId:
        """Return a clip id that depends on pixels, shape, frame rate and encoding."""
        pixels = compute_bytes_clip_id(np.ascontiguousarray(self.frames).tobytes())
        return compute_placeholder_clip_id(
            "frames", pixels, str(self.frames.shape), str(self.fps), _ENCODING
        )

    def read(self) -> bytes:
        """Encode the frames as an mp4 file; an odd last row or column is omitted."""
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
class RewardRequestItem:
    """One clip of a request to score, with its id, prompt, training step and group."""

    video: MediaSource
    id: str | None = None
    prompt: str | None = None
    step: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReward:
    """Reward of one item of a request, with the ids of the item, the reward and the clip."""

    id: str | None
    reward_id: str
    """Identifier of the reward; "" if the clip could not be read."""
    content: str
    """SHA-256 that identifies the clip; "" if it could not be read."""
    reward: Reward
    verdicts: Sequence[Mapping[str, Any]] = ()
    """Verdicts as JSON objects with reviewer, protocol, and verdict or failure."""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class ScoredClip:
    """Reward of a clip with its verdicts as JSON, as the cache stores it."""

    reward: Reward
    verdicts: list[dict[str, Any]] = field(default_factory=list)


_SCORED = TypeAdapter(ScoredClip)


def convert_verdicts_to_json(reward: Reward) -> list[dict[str, Any]]:
    """Convert the verdicts of a reward to JSON-compatible objects."""
    return [
        {
            "reviewer": verdict.reviewer,
            "protocol": verdict.protocol,
            **(
                {"failure": convert_failure_to_json(verdict.outcome)}
                if isinstance(verdict.outcome, Failure)
                else {"verdict": to_jsonable_python(verdict.outcome)}
            ),
        }
        for verdict in reward.verdicts
    ]


def convert_failure_to_json(failure: Failure) -> dict[str, str]:
    """Convert a failure to a JSON-compatible object with its reason and a message."""
    return {"reason": failure.reason.value, "message": f"{failure.detail}. {failure.reason.remedy}"}


def serialise_scored_clip(scored: ScoredClip) -> str:
    """Serialise a scored clip for the cache; `parse_scored_clip` is the inverse."""
    return _SCORED.dump_json(replace(scored, reward=replace(scored.reward, verdicts=()))).decode()


def parse_scored_clip(document: str) -> ScoredClip:
    """Parse a scored clip that `serialise_scored_clip` wrote."""
    return _SCORED.validate_json(document)


def load_media_source(
    source: MediaSource, settings: RewardServiceSettings
) -> FileBytes | FrameArray:
    """Load the clip of a request into memory: from an allowed path or URL, or from the request itself.

    Raises:
        MediaError: The path or URL is not allowed, does not exist, or its file is too large.
    """
    if not isinstance(source, FileReference):
        return source
    if source.url:
        return FileBytes(_fetch_clip_bytes(source.url, settings))
    return FileBytes(_read_allowed_path(source.path, settings))


def _read_allowed_path(path: str, settings: RewardServiceSettings) -> bytes:
    max_bytes = settings.max_clip_bytes
    for root in settings.roots:
        try:
            name = (root / path).relative_to(root).as_posix()
            with OutputDirectory(root).read(name) as file:
                data = file.read(max_bytes + 1)
        except (InvalidValueError, UnsafeTargetError, OSError, ValueError):
            continue  # outside this root, behind a symbolic link, or missing
        if len(data) > max_bytes:
            raise MediaError(FailureReason.TOO_LARGE, f"more than {max_bytes} bytes")
        return data
    raise MediaError(FailureReason.NOT_A_FILE, "no file below an allowed root")


def _fetch_clip_bytes(url: str, settings: RewardServiceSettings) -> bytes:
    policy = DownloadPolicy(
        named=settings.hosts, max_bytes=settings.max_clip_bytes, seconds=settings.upload_s
    )
    file = io.BytesIO()
    download_file(url, file, policy=policy, storage={})
    return file.getvalue()


def parse_multipart_body(body: bytes, content_type: str, *, max_parts: int) -> dict[str, bytes]:
    """Parse a `multipart/form-data` body, and return the content of each part by its name.

    The body is in memory and bounded, so that one search is enough; a general parser would take most
    of the time of a request.

    Raises:
        InvalidValueError: The body is not `multipart/form-data`, or has more than `max_parts` parts.
    """
    header = Message()
    header["content-type"] = content_type
    boundary = f"--{header.get_boundary('')}".encode("latin-1", "replace")
    parts: dict[str, bytes] = {}
    start = body.find(boundary) + len(boundary)
    while body[start : start + 2] == b"\r\n" and len(parts) <= max_parts:
        end = body.find(b"\r\n" + boundary, start)
        head = body.find(b"\r\n\r\n", start, max(0, end))
        name = _PART_NAME.search(body, start, max(0, head))
        if name is None:
            break
        parts[name[1].decode("utf-8", "replace")] = body[head + 4 : end]
        start = end + 2 + len(boundary)
    if body[start : start + 2] != b"--" or len(parts) > max_parts or boundary == b"--":
        raise InvalidValueError(
            f"body must be multipart/form-data of at most {max_parts} named parts"
        )
    return parts


def decode_base64(text: str, what: str) -> bytes:
    """Decode base64 `text`; `what` names it in the error message.

    Raises:
        InvalidValueError: The text is not valid base64.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidValueError(
            f"{what} is not base64 ({error}). Encode the bytes with standard base64"
        ) from None


def parse_frame_array(data: bytes, fps: float) -> FrameArray:
    """Parse the frames in an npy or safetensors file, without running code from it.

    Raises:
        InvalidValueError: The data are neither npy nor safetensors, or not uint8 frames.
    """
    try:
        frames = _read_npy(data) if data.startswith(b"\x93NUMPY") else _read_safetensors(data)
    except Exception as error:  # noqa: BLE001  a damaged document raises errors of many kinds
        raise InvalidValueError(
            f"the array is neither an npy nor a safetensors document ({error}). {_FORM}"
        ) from None
    return build_frame_array(frames, fps)


def build_frame_array(array: Frames, fps: float) -> FrameArray:
    """Convert an array (T, C, H, W) or (T, H, W, C) to a `FrameArray`.

    Raises:
        InvalidValueError: The array has another shape or type, or `fps` is out of range.
    """
    if array.dtype != np.uint8 or array.ndim != _DIMENSIONS or not math.isfinite(fps):
        raise InvalidValueError(
            f"array of {array.dtype} with {array.ndim} dimensions is not a clip. {_FORM}"
        )
    last = array.transpose(0, 2, 3, 1) if array.shape[1] == _COLOURS else array
    return FrameArray(last, Fraction(fps).limit_denominator(60_060))


def _read_npy(data: bytes) -> Frames:
    """Parse an npy file; its declared size is compared with its length before memory is allocated."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, is_fortran, kind = readers[version](file, max_header_size=_HEADER)
    body = data[file.tell() :]
    if kind != np.uint8 or is_fortran or math.prod(shape) != len(body):
        raise ValueError(f"type {kind}, shape {shape}, {len(body)} bytes")
    return np.frombuffer(body, np.uint8).reshape(shape)


def _read_safetensors(data: bytes) -> Frames:
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    if length > min(_HEADER, len(data)):
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    if not isinstance(header, Mapping):
        raise TypeError("no header")
    (tensor,) = (value for name, value in header.items() if name != "__metadata__")
    start, end = tensor["data_offsets"]
    shape = [int(side) for side in tensor["shape"]]
    body = data[_LENGTH_BYTES + length :]
    if tensor["dtype"] != "U8" or (start, end) != (0, len(body)) or math.prod(shape) != len(body):
        raise ValueError(f"type {tensor['dtype']}, shape {shape}, {len(body)} bytes")
    return np.frombuffer(body, np.uint8).reshape(shape)
