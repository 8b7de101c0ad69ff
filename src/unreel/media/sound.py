"""The sound of a clip in the form that listening models take."""

import io
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import BinaryIO, Literal

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from unreel.core.errors import MediaError
from unreel.core.failure import Failure, FailureReason
from unreel.media.bounds import MAX_PIXELS, MAX_SAMPLES, MOST_S, SAMPLE_RATE_HZ
from unreel.media.container import AUDIO_DECODERS, OpenClip, decoder_name, open_clip
from unreel.media.timeline import read_timeline


@dataclass(frozen=True, slots=True, eq=False)
class ClipSound:
    """One channel of whole numbers from -32,768 to 32,767 at `rate_hz`."""

    samples: NDArray[np.int16]
    start_s: Fraction
    """When the first sample is heard, after the clip's first frame; negative for one before it."""
    rate_hz: int = SAMPLE_RATE_HZ

    @property
    def duration_s(self) -> Fraction:
        """Return the duration."""
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

    def __repr__(self) -> str:
        return f"Sound({float(self.duration_s):.3f} s from {self.start_s} s, {self.rate_hz} Hz)"


@dataclass(frozen=True, slots=True)
class NoSound:
    """The clip is mute: it has no sound stream, or one that holds nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class SoundPart:
    """A part of a sound, one row per sample. Each part begins at the end of the previous part."""

    samples: NDArray[np.int16]
    start_s: Fraction
    """When the first sample of the first part is heard, on the container's clock."""


def read_sound(file: BinaryIO, *, max_pixels: int = MAX_PIXELS) -> ClipSound | NoSound:
    """Read the first sound stream of the clip in `file`, as one channel at 16 kHz."""
    parts: list[SoundPart] = []
    n_samples = 0
    with open_clip(file, max_pixels=max_pixels) as clip:
        for part in sound_parts(clip, rate_hz=SAMPLE_RATE_HZ, layout="mono"):
            n_samples += len(part.samples)
            if n_samples > MAX_SAMPLES:
                detail = f"the sound is longer than {MAX_SAMPLES // SAMPLE_RATE_HZ} s"
                raise MediaError(Failure(FailureReason.TOO_LONG, detail))
            parts.append(part)
    if not n_samples:
        return NoSound()
    start_s = parts[0].start_s - read_timeline(file, max_pixels=max_pixels).first_at_s
    if abs(start_s) > MOST_S:
        raise MediaError(Failure(FailureReason.UNDECODABLE, "its sound begins out of all range"))
    return ClipSound(np.concatenate([part.samples[:, 0] for part in parts]), start_s)


def sound_parts(
    clip: OpenClip, *, rate_hz: int, layout: Literal["mono", "stereo"]
) -> Iterator[SoundPart]:
    """Yield the first sound stream of `clip` at `rate_hz` in parts; nothing for a clip without sound."""
    start_s: Fraction | None = None
    resampler = AudioResampler(format="s16", layout=layout, rate=rate_hz)
    for frame in chain(_iter_audio_frames(clip), (None,)):
        if start_s is None:
            if frame is None:
                return
            start_s = (frame.pts or 0) * (frame.time_base or Fraction(0))
        for piece in resampler.resample(frame):
            flat = piece.to_ndarray().astype(np.int16, copy=False)
            yield SoundPart(flat.reshape(piece.samples, -1), start_s)


def _iter_audio_frames(clip: OpenClip) -> Iterator[AudioFrame]:
    streams = clip.container.streams.audio
    if not streams:
        return
    decoder = decoder_name(streams[0])
    if decoder not in AUDIO_DECODERS:
        detail = f"audio codec {decoder!r} is not on the list"
        raise MediaError(Failure(FailureReason.CODEC_REFUSED, detail))
    yield from clip.container.decode(streams[0])
