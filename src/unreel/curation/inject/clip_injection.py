"""Injection of a trace into a video file: decode, change the frames, encode with the sound."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.span import convert_to_microseconds
from unreel.core.trace import Category, Trace
from unreel.curation.inject.frame_injection import UnsuitableClip, inject_trace_into_frames
from unreel.media.decode import Rgb
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, SoundTrackSettings, VideoTrackSettings
from unreel.media.reader import MediaReader, SampledFrame
from unreel.media.sound import ClipSound, NoSound

LONGEST_SIDE: Final = 1280
"""Maximum side of a frame in pixels, because the changed frames of a span are kept in memory."""
LONGEST_S: Final = 3600
"""Maximum length as in `MAX_SAMPLES`, because the sound of the whole clip is kept in memory."""
_EVERY_FRAME: Final = "fps-1000"
_JPEG_QUALITY: Final = 95
"""JPEG quality with which all frames of a clip fit into memory and hardly differ."""
_AT_HAND: Final = 4
"""Number of decoded frames in the cache: effects read a frame several times."""
_FINE: Final = Fraction(1, 90_000)
# One quantiser for all frames and key frames at fixed distances: changed frames neither affect the
# coding of the others, nor cause a key frame at the start of the trace.
_CODING: Final = {"qp": "16", "preset": "veryfast", "bf": "0", "g": "48", "sc_threshold": "0"}


@dataclass(frozen=True, slots=True, eq=False)
class LoadedClip:
    """Clip in memory: all frames as JPEG images that are decoded on access, and the sound."""

    pictures: "JpegFrames"
    ticks: tuple[int, ...]
    """Timestamp of each frame in units of `time_base`, relative to the first frame."""
    time_base: Fraction
    rate: Fraction
    sound: NDArray[np.int16] | None
    """Samples at 48 kHz, one channel, from the first frame on; `None` without sound."""

    @property
    def instants_us(self) -> tuple[int, ...]:
        """Return the timestamp of each frame of the clip in microseconds, counted from the first frame."""
        return tuple(convert_to_microseconds(tick * self.time_base) for tick in self.ticks)


class JpegFrames(Sequence[Rgb]):
    """Sequence of frames that are decoded on access and cropped to an even width and height."""

    def __init__(self, frames: Sequence[SampledFrame]) -> None:
        self._frames = frames
        self._rgb = lru_cache(maxsize=_AT_HAND)(self._decode)

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, index: int) -> Rgb: ...
    @overload
    def __getitem__(self, index: slice) -> "JpegFrames": ...
    def __getitem__(self, index: int | slice) -> "Rgb | JpegFrames":
        if isinstance(index, slice):
            return JpegFrames(self._frames[index])
        return self._rgb(index)

    def _decode(self, index: int) -> Rgb:
        rgb = self._frames[index].rgb()
        return rgb[: rgb.shape[0] // 2 * 2, : rgb.shape[1] // 2 * 2]


def inject_trace_into_clip(
    path: Path,
    *,
    reader: MediaReader,
    category: Category,
    seed: int,
    into: Path,
    strength: float = 0.7,
) -> Trace | UnsuitableClip | Failure:
    """Write the clip at `path` with a trace of `category` to `into`, and return the trace.

    Equal seeds give equal bytes. Frames larger than `LONGEST_SIDE` are scaled down. The times of
    the trace refer to the written clip, whose first frame appears at 0. Nothing is written if the
    clip is unsuitable or cannot be read.
    """
    clip = load_clip_frames(path, reader=reader)
    if isinstance(clip, Failure):
        return clip
    injected = inject_trace_into_frames(
        clip.pictures,
        instants_us=clip.instants_us,
        category=category,
        seed=seed,
        strength=strength,
    )
    if isinstance(injected, UnsuitableClip):
        return injected
    changed = injected.frames
    indices = range(len(clip.pictures))
    pictures = (changed[i] if i in changed else clip.pictures[i] for i in indices)
    OutputDirectory(into.parent).write(into.name, encode_loaded_clip(clip, pictures))
    return injected.trace


def write_clean_twin(path: Path, *, reader: MediaReader, into: Path) -> Failure | None:
    """Write the clip at `path` to `into`, encoded like `inject_trace_into_clip` but without a trace."""
    clip = load_clip_frames(path, reader=reader)
    if isinstance(clip, Failure):
        return clip
    OutputDirectory(into.parent).write(into.name, encode_loaded_clip(clip, iter(clip.pictures)))
    return None


def load_clip_frames(
    path: Path, *, reader: MediaReader, longest_side: int = LONGEST_SIDE
) -> LoadedClip | Failure:
    """Load the clip at `path` into memory: its frames, scaled down to `longest_side`, and its sound."""
    facts = reader.probe(path)
    if isinstance(facts, Failure):
        return facts
    frames = reader.frames(
        path, sampling=_EVERY_FRAME, quality=_JPEG_QUALITY, longest_side=longest_side
    )
    if isinstance(frames, Failure):
        return frames
    decoded = reader.sound(path) if facts.audio else NoSound()
    if isinstance(decoded, Failure):
        return decoded
    rate = facts.video.average_rate
    if facts.video.variable_rate or len(frames.frames) != facts.video.n_frames:
        time_base = _FINE
        ticks = tuple(round(frame.at_s / _FINE) for frame in frames.frames)
    else:
        time_base, ticks = 1 / rate, tuple(range(len(frames.frames)))
    end_s = (ticks[-1] + 1 / (rate * time_base)) * time_base
    if end_s > LONGEST_S:
        return Failure(FailureReason.TOO_LONG, f"a clip to inject into lasts {LONGEST_S} s at most")
    sound = None if isinstance(decoded, NoSound) else align_clip_sound(decoded, end_s=end_s)
    return LoadedClip(JpegFrames(frames.frames), ticks, time_base, rate, sound)


def encode_loaded_clip(clip: LoadedClip, pictures: Iterator[Rgb]) -> bytes:
    """Return an MP4 file of `pictures` with the timestamps and the sound of `clip`."""
    height, width, _ = clip.pictures[0].shape
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=clip.rate.limit_denominator(1 << 16),
        time_base=clip.time_base,
        options=_CODING,
    )
    sound = None if clip.sound is None else SoundTrackSettings(codec="aac", channels=1)
    done = 0
    with ClipWriter("mp4", track, sound=sound) as writer:
        for tick, rgb in zip(clip.ticks, pictures, strict=True):
            writer.add_picture(rgb, tick=tick)
            if clip.sound is not None:
                until = int(tick * clip.time_base * SOUND_RATE_HZ)
                writer.add_sound(clip.sound[done:until])
                done = until
        if clip.sound is not None:
            writer.add_sound(clip.sound[done:])
        return writer.finish()


def align_clip_sound(sound: ClipSound, *, end_s: Fraction) -> NDArray[np.int16]:
    """Return the sound at 48 kHz from the start of the first frame to the end of the last frame."""
    finer = signal.resample_poly(
        sound.samples.astype(np.float64), SOUND_RATE_HZ // sound.rate_hz, 1
    )
    samples = np.zeros((int(end_s * SOUND_RATE_HZ), 1), np.int16)
    start = round(sound.start_s * SOUND_RATE_HZ)
    piece = finer[max(0, -start) : len(samples) - start]
    begin = max(0, start)
    samples[begin : begin + len(piece), 0] = np.clip(np.rint(piece), -32_768, 32_767)
    return samples
