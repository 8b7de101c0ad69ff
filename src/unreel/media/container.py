"""Opening of untrusted video files with allowed formats and decoders; each rejection has a reason.

A file is opened twice. The first time no decoder may run, and the declared container, codec and
frame size are checked. The second time only the listed decoders may run, and no decoder may
produce a frame above the pixel limit. FFmpeg never gets the file's name, so it cannot open
other files relative to it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import av
import av.error
import av.logging
import av.subtitles.codeccontext  # a confined child cannot import it at the first subtitles
import av.subtitles.stream
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from unreel.core.errors import MediaError, UnreelError
from unreel.core.failure import FailureReason

FORMATS = ("mov", "matroska", "webm", "avi", "mpegts", "gif")
"""Names of the allowed FFmpeg demuxers: formats with a whole video in one file. None opens a second file."""

VIDEO_DECODERS: Mapping[str, str] = {
    "h264": "most clips on the web, and what nearly every generator writes",
    "hevc": "telephones, and the larger files of some generators",
    "vp8": "older webm pages",
    "vp9": "webm, and what video platforms hand out",
    "libdav1d": "AV1; the decoder that browsers use",
    "mpeg4": "cameras and data sets of the years before H.264",
    "mpeg2video": "broadcast recordings",
    "mjpeg": "cameras and robots that store every frame as a JPEG",
    "gif": "galleries of early generators",
}
"""Allowed video decoders, with the use of each. All are in wide use and therefore fuzzed; rarer ones (MagicYUV,
Cinepak, ...) have been attack vectors and are rejected."""

AUDIO_DECODERS: Mapping[str, str] = {
    "aac": "mp4",
    "ac3": "broadcast",
    "alac": "telephones",
    "eac3": "broadcast",
    "flac": "matroska",
    "mp2": "broadcast",
    "mp2float": "broadcast",
    "mp3": "avi and mp4",
    "mp3float": "avi and mp4",
    "opus": "webm",
    "pcm_f32le": "cameras",
    "pcm_s16be": "cameras",
    "pcm_s16le": "cameras",
    "pcm_s24le": "cameras",
    "pcm_u8": "avi",
    "vorbis": "webm",
}
"""Allowed sound decoders, with the containers or sources that use each."""

_SHORT_NAMES = {"mov,mp4,m4a,3gp,3g2,mj2": "mp4", "matroska,webm": "matroska"}
_EXACT_SEEK = frozenset({"mp4", "matroska", "avi"})
_TS_PACKET_BYTES = 188


@dataclass(frozen=True, slots=True)
class OpenClip:
    """An open video file that passed all checks, with its video stream."""

    container: InputContainer
    stream: VideoStream

    @property
    def format_name(self) -> str:
        """Return the container format: `mp4`, `matroska` (also for webm), `avi`, `mpegts` or `gif`."""
        name = self.container.format.name
        return _SHORT_NAMES.get(name, name)

    @property
    def can_seek(self) -> bool:
        """Return whether a seek reaches the key frame: not in transport streams (no index) nor in GIFs."""
        return self.format_name in _EXACT_SEEK


class _NamelessFile:
    """File with only the methods that FFmpeg needs, and without a name."""

    __slots__ = ("read", "seek", "tell")

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.seek = file.seek
        self.tell = file.tell


@contextmanager
def open_clip(file: BinaryIO, *, max_pixels: int) -> Iterator[OpenClip]:
    """Open the clip in `file` for decoding; decoding errors in the `with` block become `MediaError`."""
    with translate_media_errors():
        with _open_container(file, decoders=("none",), max_pixels=max_pixels) as claims:
            _require_decodable_stream(_get_first_video_stream(claims), max_pixels=max_pixels)
        decoders = (*VIDEO_DECODERS, *AUDIO_DECODERS)
        with _open_container(file, decoders=decoders, max_pixels=max_pixels) as container:
            stream = _get_first_video_stream(container)
            _require_decodable_stream(stream, max_pixels=max_pixels)
            if not (stream.width and stream.height):
                raise MediaError(FailureReason.UNDECODABLE, "no frame size can be read")
            # One core per file: files are processed in parallel, and each thread costs memory.
            stream.codec_context.thread_count = 1
            stream.codec_context.options = {"max_pixels": str(max_pixels)}
            yield OpenClip(container, stream)


@contextmanager
def translate_media_errors() -> Iterator[None]:
    """Convert the exceptions that PyAV raises for damaged or hostile files to `MediaError`."""
    try:
        yield
    except UnreelError:
        raise
    except MemoryError as error:
        raise MediaError(FailureReason.OUT_OF_MEMORY, _format_error(error)) from error
    except (
        av.FFmpegError,
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        NotImplementedError,
        TypeError,
        ValueError,
    ) as error:
        raise MediaError(FailureReason.UNDECODABLE, _format_error(error)) from error


def _open_container(
    file: BinaryIO, *, decoders: tuple[str, ...], max_pixels: int
) -> InputContainer:
    av.logging.set_level(None)
    file.seek(0)
    try:
        return av.open(
            _NamelessFile(file),
            "r",
            container_options={
                "format_whitelist": ",".join(FORMATS),
                "protocol_whitelist": "",
                "codec_whitelist": ",".join(decoders),
            },
            # Also applies to the decoders that FFmpeg itself starts to analyse the streams.
            options={"max_pixels": str(max_pixels), "threads": "1"},
            metadata_errors="replace",
        )
    except (av.error.InvalidDataError, av.error.ArgumentError) as error:
        file.seek(0)
        head = file.read(_TS_PACKET_BYTES + 1)
        if not head or _has_video_signature(head):
            detail = _format_error(error) if head else "the file is empty"
            raise MediaError(FailureReason.UNDECODABLE, detail) from error
        raise MediaError(
            FailureReason.FORMAT_REFUSED, f"the file is not one of {', '.join(FORMATS)}"
        ) from error


def _has_video_signature(head: bytes) -> bool:
    boxes = {b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide"}
    transport = head[:1] == b"G" == head[_TS_PACKET_BYTES:]
    avi = head[:4] == b"RIFF" and head[8:12] == b"AVI "
    return transport or avi or head[4:8] in boxes or head.startswith((b"\x1aE\xdf\xa3", b"GIF8"))


def _get_first_video_stream(container: InputContainer) -> VideoStream:
    for stream in container.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            return stream
    raise MediaError(FailureReason.NO_VIDEO, "the file contains no video stream")


def _require_decodable_stream(stream: VideoStream, *, max_pixels: int) -> None:
    decoder = get_decoder_name(stream)
    if decoder not in VIDEO_DECODERS:
        raise MediaError(FailureReason.CODEC_REFUSED, f"video codec {decoder!r} is not on the list")
    if stream.width * stream.height > max_pixels:
        raise MediaError(
            FailureReason.TOO_MANY_PIXELS,
            f"{stream.width} x {stream.height} is more than {max_pixels} pixels",
        )


def get_decoder_name(stream: av.stream.Stream) -> str:
    """Return the name of FFmpeg's decoder for `stream`; "unknown" if there is none."""
    context: object = stream.codec_context  # None without a decoder, unlike in the type stubs
    return "unknown" if context is None else stream.codec_context.name


def _format_error(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
