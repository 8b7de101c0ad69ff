"""Sound of a clip as samples for models: one channel at 16 kHz."""

import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import BinaryIO, Literal

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import AUDIO_DECODERS, OpenClip, get_decoder_name, open_clip
from unreel.media.messages import MAX_PIXELS, MAX_S, MAX_SAMPLES, SAMPLE_RATE_HZ
from unreel.media.timeline import read_frame_timeline


@dataclass(frozen=True, slots=True, eq=False)
class ClipSound:
    """Sound of a clip: one channel of 16-bit samples at `rate_hz`."""

    samples: NDArray[np.int16] = field(repr=False)
    start_s: Fraction
    """Time of the first sample, in seconds after the clip's first frame; negative if it is earlier."""
    rate_hz: int = SAMPLE_RATE_HZ

    @property
    def duration_s(self) -> Fraction:
        """Return the duration of the sound in seconds."""
        return Fraction(len(self.samples), self.rate_hz)

    def as_float(self) -> NDArray[np.float32]:
        """Return the samples as floats from -1 to 1."""
        return self.samples.astype(np.float32) / np.float32(1 << 15)

    def as_wav(self) -> bytes:
        """Return the sound as the bytes of a WAV file."""
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.rate_hz)
            file.writeframes(self.samples.astype("<i2").tobytes())
        return out.getvalue()


def read_mono_sound(file: BinaryIO, *, max_pixels: int = MAX_PIXELS) -> ClipSound | None:
    """Read the first sound stream of the clip in `file`, as one channel at 16 kHz; `None` without sound.

    Raise `MediaError` if the sound cannot be decoded, or it is longer than an hour.
    """
    parts: list[NDArray[np.int16]] = []
    first_s = Fraction(0)
    n_samples = 0
    with open_clip(file, max_pixels=max_pixels) as clip:
        for samples, stream_start_s in iter_sound_blocks(
            clip, rate_hz=SAMPLE_RATE_HZ, layout="mono"
        ):
            n_samples += len(samples)
            first_s = stream_start_s
            if n_samples > MAX_SAMPLES:
                raise MediaError(
                    FailureReason.TOO_LONG,
                    f"the sound is longer than {MAX_SAMPLES // SAMPLE_RATE_HZ} s",
                )
            parts.append(samples[:, 0])
    if not n_samples:
        return None
    start_s = first_s - read_frame_timeline(file, max_pixels=max_pixels).first_at_s
    if abs(start_s) > MAX_S:
        raise MediaError(FailureReason.UNDECODABLE, "the start of the sound is out of range")
    return ClipSound(np.concatenate(parts), start_s)


def iter_sound_blocks(
    clip: OpenClip, *, rate_hz: int, layout: Literal["mono", "stereo"]
) -> Iterator[tuple[NDArray[np.int16], Fraction]]:
    """Yield the first sound stream of `clip` at `rate_hz` in blocks; nothing without sound.

    A block has one row per sample, and with it comes the time of the stream's first sample in seconds on
    the container's clock.
    """
    start_s: Fraction | None = None
    resampler = AudioResampler(format="s16", layout=layout, rate=rate_hz)
    for frame in chain(_iter_audio_frames(clip), (None,)):
        if start_s is None:
            if frame is None:
                return
            start_s = (frame.pts or 0) * (frame.time_base or Fraction(0))
        for piece in resampler.resample(frame):
            flat = piece.to_ndarray().astype(np.int16, copy=False)
            yield flat.reshape(piece.samples, -1), start_s


def _iter_audio_frames(clip: OpenClip) -> Iterator[AudioFrame]:
    streams = clip.container.streams.audio
    if not streams:
        return
    decoder = get_decoder_name(streams[0])
    if decoder not in AUDIO_DECODERS:
        raise MediaError(FailureReason.CODEC_REFUSED, f"audio codec {decoder!r} is not on the list")
    yield from clip.container.decode(streams[0])
