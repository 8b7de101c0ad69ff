"""Encoding of clips to deterministic bytes, and the index at the start of mp4 files.

The bytes depend only on the content: the files have no tags, encoder name or creation time, and
encoding uses one thread.
"""

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, Self, cast

import av
import av.logging
import numpy as np
from av.audio.frame import AudioFrame
from av.bitstream import BitStreamFilterContext
from av.codec.context import Flags
from av.video.frame import VideoFrame
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from av.video.stream import VideoStream
from numpy.typing import NDArray

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.decode import Rgb

if TYPE_CHECKING:
    from av.audio.stream import AudioStream

_HOLDERS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})
_OFFSETS = {b"stco": (">I", 4), b"co64": (">Q", 8)}
_HEAD = 8
_LONG_HEAD = 16
_TABLE = 16
"""Number of bytes in a table of offsets before the first offset: header, version and flags, count."""


def move_mp4_index_first(mp4: bytes) -> bytes:
    """Return the mp4 with its index (`moov`) first; raise `MediaError` if it is incomplete."""
    boxes = list(_iter_mp4_boxes(mp4, 0, len(mp4)))
    kinds = [kind for kind, _, _ in boxes]
    if kinds.count(b"moov") != 1 or b"mdat" not in kinds:
        raise MediaError(FailureReason.UNDECODABLE, "the copy has no index")
    if kinds.index(b"moov") < kinds.index(b"mdat"):
        return mp4
    _, start, end = boxes[kinds.index(b"moov")]
    index = bytearray(mp4[start:end])
    media = next(start for kind, start, _ in boxes if kind == b"mdat")
    _shift_sample_offsets(index, 0, len(index), by=len(index))
    return b"".join((mp4[:media], index, mp4[media:start], mp4[end:]))


def _iter_mp4_boxes(
    data: bytes | bytearray, start: int, end: int
) -> Iterator[tuple[bytes, int, int]]:
    while start + _HEAD <= end:
        size, kind = struct.unpack_from(">I4s", data, start)
        if size == 1 and start + _LONG_HEAD <= end:
            (size,) = struct.unpack_from(">Q", data, start + _HEAD)
        elif size == 0:
            size = end - start
        if size < _HEAD or start + size > end:
            raise MediaError(FailureReason.UNDECODABLE, "a box of the copy leads out of it")
        yield kind, start, start + size
        start += size


def _shift_sample_offsets(index: bytearray, start: int, end: int, *, by: int) -> None:
    for kind, first, last in list(_iter_mp4_boxes(index, start, end)):
        if kind in _HOLDERS:
            _shift_sample_offsets(index, first + _HEAD, last, by=by)
        elif kind in _OFFSETS:
            fmt, width = _OFFSETS[kind]
            for position in range(first + _TABLE, last - width + 1, width):
                (offset,) = struct.unpack_from(fmt, index, position)
                struct.pack_into(fmt, index, position, offset + by)


SOUND_RATE_HZ = 48_000

_BT709 = 1
# x264 writes its signature to an SEI message of the first picture, which has no other content.
_UNSIGNED = "filter_units=remove_types=6"
# x264's macroblock tree reads uninitialised memory, which gives other bytes for the same clip.
_REPEATABLE = {"x264-params": "mbtree=0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoTrackSettings:
    """Encoder settings of a video track."""

    codec: str
    width: int
    height: int
    rate: Fraction
    time_base: Fraction
    pixel_format: str = "yuv420p"
    options: Mapping[str, str] = field(default_factory=dict)
    stored_turn_deg: int = 0
    """Clockwise rotation in degrees, stored in the container for players to apply."""


class SeekableByteSink(Protocol):
    """Interface of an encoder's output file; it must support seeking back to overwrite bytes."""

    def write(self, data: bytes, /) -> int: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...


class ClipWriter:
    """Encoder of a clip from pictures and 48 kHz sound, if any, in memory or into the file `sink`."""

    def __init__(
        self,
        container: str,
        video: VideoTrackSettings,
        *,
        n_channels: int = 0,
        sound_codec: str = "aac",
        sink: SeekableByteSink | None = None,
    ) -> None:
        av.logging.set_level(None)
        self._bytes = io.BytesIO()
        self._output = av.open(
            sink or self._bytes, "w", format=container, container_options={"fflags": "+bitexact"}
        )
        self._track = video
        self._video = self._add_video(video)
        self._sound: AudioStream | None = None
        if n_channels:
            stream = self._output.add_stream(sound_codec, rate=SOUND_RATE_HZ)
            self._sound = cast("AudioStream", stream)
            self._sound.codec_context.layout = "mono" if n_channels == 1 else "stereo"
            self._sound.codec_context.flags |= Flags.bitexact
        self._n_samples = 0
        signs = video.codec == "libx264"
        self._unsign = BitStreamFilterContext(_UNSIGNED, self._video) if signs else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.close()

    def add_picture(self, rgb: Rgb, *, tick: int) -> None:
        """Append the picture `rgb`, shown from `tick` on, in the track's time base."""
        shared = VideoFrame.from_numpy_buffer(np.ascontiguousarray(rgb), format="rgb24")
        frame = shared.reformat(
            format=self._track.pixel_format,
            dst_colorspace=Colorspace.ITU709,
            dst_color_range=ColorRange.MPEG,
            threads=1,
        )
        frame.pts, frame.time_base = tick, self._track.time_base
        self._write_video(frame)

    def add_sound(self, samples: NDArray[np.int16]) -> None:
        """Append sound samples: one row per sample, one column per channel."""
        if self._sound is None or not len(samples):
            return
        layout = self._sound.codec_context.layout
        flat = np.ascontiguousarray(samples).reshape(1, -1)
        frame = AudioFrame.from_ndarray(flat, format="s16", layout=layout.name)
        frame.sample_rate = SOUND_RATE_HZ
        frame.pts, frame.time_base = self._n_samples, Fraction(1, SOUND_RATE_HZ)
        self._n_samples += len(samples)
        self._output.mux(self._sound.encode(frame))

    def finish(self) -> bytes:
        """Finish the encoded clip and return its bytes; empty if they were written to `into`."""
        self._write_video(None)
        if self._sound is not None:
            self._output.mux(self._sound.encode(None))
        self._output.close()
        return self._bytes.getvalue()

    def _write_video(self, frame: VideoFrame | None) -> None:
        for packet in self._video.encode(frame):
            for filtered in self._unsign.filter(packet) if self._unsign else (packet,):
                filtered.stream = self._video
                self._output.mux(filtered)

    def _add_video(self, track: VideoTrackSettings) -> VideoStream:
        stream = cast("VideoStream", self._output.add_stream(track.codec, rate=track.rate))
        stream.width, stream.height = track.width, track.height
        stream.pix_fmt = track.pixel_format
        stream.time_base = track.time_base
        context = stream.codec_context
        context.time_base = track.time_base
        context.thread_count = 1
        context.options = dict(track.options) | (_REPEATABLE if track.codec == "libx264" else {})
        context.flags |= Flags.bitexact
        if track.pixel_format == "yuv420p":
            context.color_range, context.colorspace = ColorRange.MPEG, _BT709
            context.color_primaries, context.color_trc = ColorPrimaries.BT709, ColorTrc.BT709
        if track.stored_turn_deg:
            stream.set_display_rotation(-track.stored_turn_deg)
        return stream
