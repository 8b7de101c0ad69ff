"""Write clips whose bytes depend only on their content.

The files have no tags, encoder name or timestamps of creation; encoding uses one thread.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol, Self, cast

import av
import av.logging
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.bitstream import BitStreamFilterContext
from av.codec.context import Flags
from av.video.frame import VideoFrame
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from av.video.stream import VideoStream
from numpy.typing import NDArray

from unreel.media.decode import Rgb

SOUND_RATE_HZ: Final = 48_000

_BT709: Final = 1
# x264 signs its work in a message (SEI) of the first picture; nothing else is written there.
_UNSIGNED: Final = "filter_units=remove_types=6"
# Its tree of block weights reads memory that it has not written: other bytes for the same clip.
_REPEATABLE: Final = {"x264-params": "mbtree=0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoTrack:
    """Encoder settings of the video."""

    codec: str
    width: int
    height: int
    rate: Fraction
    time_base: Fraction
    pixel_format: str = "yuv420p"
    options: Mapping[str, str] = field(default_factory=dict)
    stored_turn_deg: int = 0
    """Clockwise turn that the container asks a player to apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundTrack:
    """Encoder settings of the sound: 48 kHz, in `channels` channels."""

    codec: str
    channels: int


class ByteSink(Protocol):
    """Output of an encoder; it must support seeking back to overwrite bytes."""

    def write(self, data: bytes, /) -> int: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...


class ClipWriter:
    """A clip under construction; `finish` gives its bytes, unless they went `into` somewhere."""

    def __init__(
        self,
        container: str,
        video: VideoTrack,
        *,
        sound: SoundTrack | None = None,
        into: ByteSink | None = None,
    ) -> None:
        av.logging.set_level(None)
        self._bytes = io.BytesIO()
        self._output = av.open(
            into or self._bytes, "w", format=container, container_options={"fflags": "+bitexact"}
        )
        self._track = video
        self._video = self._add_video(video)
        self._sound = self._add_sound(sound) if sound else None
        self._n_samples = 0
        signs = video.codec == "libx264"
        self._unsign = BitStreamFilterContext(_UNSIGNED, self._video) if signs else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.close()

    def add_picture(self, rgb: Rgb, *, tick: int) -> None:
        """Show `rgb` from `tick` of the track's time base on."""
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
        """Append `samples`: one row per sample, one column per channel."""
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
        """Finish the file and return its bytes; empty if the bytes were written to `into`."""
        self._write_video(None)
        if self._sound is not None:
            self._output.mux(self._sound.encode(None))
        self._output.close()
        return self._bytes.getvalue()

    def _write_video(self, frame: VideoFrame | None) -> None:
        for packet in self._video.encode(frame):
            for kept in self._unsign.filter(packet) if self._unsign else (packet,):
                kept.stream = self._video
                self._output.mux(kept)

    def _add_video(self, track: VideoTrack) -> VideoStream:
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

    def _add_sound(self, track: SoundTrack) -> AudioStream:
        stream = cast("AudioStream", self._output.add_stream(track.codec, rate=SOUND_RATE_HZ))
        stream.codec_context.layout = "mono" if track.channels == 1 else "stereo"
        stream.codec_context.flags |= Flags.bitexact
        return stream
