"""Re-encoding of clips in one format, so that the encoding does not reveal their origin."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.errors import InvalidSettingError, MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import open_clip
from unreel.media.decode import Rgb, decode_frames
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, SoundTrackSettings, VideoTrackSettings
from unreel.media.messages import MAX_PIXELS
from unreel.media.sound import iter_sound_blocks
from unreel.media.timeline import FrameTimeline, read_frame_timeline

LONGEST_WITH_SOUND_S = 900
"""Maximum duration of a clip whose sound is kept, in seconds. The sound is in memory: 173 MB for this duration."""

MAX_FRAMES = 200_000
"""Maximum number of output frames, two hours at 24 frames a second: a limit for files that declare no end."""

CHANNELS = 2
"""Number of sound channels: sound is written in stereo."""
_SIDES = range(16, 4097, 2)
_FINEST_CRF = 51
_FASTEST = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedClipFormat:
    """Format that all clips are re-encoded in: H.264 in mp4, the picture fitted and centred on black.

    `sound="kept"` gives every clip a stereo AAC track, silent if the clip has no sound, so that the
    presence of a track reveals nothing.
    """

    width: int = 1280
    height: int = 720
    rate: Fraction = Fraction(24)
    crf: int = 18
    sound: Literal["dropped", "kept"] = "dropped"

    def __post_init__(self) -> None:
        for name, side in (("width", self.width), ("height", self.height)):
            if side not in _SIDES:
                raise InvalidSettingError(
                    name,
                    f"cannot encode {side} pixels",
                    f"Give an even number from {_SIDES[0]} to {_SIDES[-1]}",
                )
        if not 0 < self.rate <= _FASTEST:
            raise InvalidSettingError(
                _RATE, f"cannot encode {self.rate} frames a second", f"Give up to {_FASTEST}"
            )
        if not 0 <= self.crf <= _FINEST_CRF:
            raise InvalidSettingError(
                _CRF, f"{self.crf} is no quality", f"Give 0 (best) to {_FINEST_CRF}"
            )


_RATE = "rate"
_CRF = "crf"


def normalise_clip(
    file: BinaryIO, clip_format: NormalisedClipFormat, *, max_pixels: int = MAX_PIXELS
) -> bytes:
    """Return the clip in `file` re-encoded in the format of `clip_format`, without tags or signatures.

    The same clip always gives the same bytes. At each time the result shows the same frame as the
    clip, so the duration differs by at most one frame of the output.
    """
    timeline = read_frame_timeline(file, max_pixels=max_pixels)
    indices = select_frames_at_rate(timeline, clip_format.rate)
    sound = _read_matching_sound(
        file, timeline, n_frames=len(indices), clip_format=clip_format, max_pixels=max_pixels
    )
    track = None if sound is None else SoundTrackSettings(codec="aac", channels=CHANNELS)
    with ClipWriter("mp4", _build_video_track(clip_format), sound=track) as writer:
        for tick, rgb in _iter_output_pictures(
            file, timeline, indices, clip_format=clip_format, max_pixels=max_pixels
        ):
            writer.add_picture(rgb, tick=tick)
            if sound is not None:
                start, end = (_count_samples_before(i, clip_format.rate) for i in (tick, tick + 1))
                writer.add_sound(sound[start:end])
        return writer.finish()


def select_frames_at_rate(timeline: FrameTimeline, rate: Fraction) -> list[int]:
    """Return the indices of the frames that are visible 0, 1/`rate`, 2/`rate`, ... s after the first."""
    n_frames = max(1, -(-timeline.duration_s * rate // 1))
    if n_frames > MAX_FRAMES:
        raise MediaError(
            FailureReason.TOO_LONG, f"the clip would have {n_frames} frames, more than {MAX_FRAMES}"
        )
    return [timeline.shown_at(tick / rate) for tick in range(n_frames)]


def fit_picture_inside(rgb: Rgb, *, width: int, height: int) -> Rgb:
    """Return `rgb` scaled to fit into `width` x `height`, centred on black."""
    rows, columns, _ = rgb.shape
    scale = min(Fraction(width, columns), Fraction(height, rows))
    size = (max(1, round(columns * scale)), max(1, round(rows * scale)))
    picture = Image.fromarray(rgb)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    context = np.zeros((height, width, 3), np.uint8)
    left, top = (width - size[0]) // 2, (height - size[1]) // 2
    context[top : top + size[1], left : left + size[0]] = np.asarray(picture)
    return context


def _build_video_track(clip_format: NormalisedClipFormat) -> VideoTrackSettings:
    return VideoTrackSettings(
        codec="libx264",
        width=clip_format.width,
        height=clip_format.height,
        rate=clip_format.rate,
        time_base=1 / clip_format.rate,
        options={"crf": str(clip_format.crf), "preset": "veryfast", "bf": "0", "g": "48"},
    )


def _iter_output_pictures(
    file: BinaryIO,
    timeline: FrameTimeline,
    indices: list[int],
    *,
    clip_format: NormalisedClipFormat,
    max_pixels: int,
) -> Iterator[tuple[int, Rgb]]:
    """Yield each tick of the output with its picture; a frame shown for several ticks is decoded once."""
    ticks = enumerate(indices)
    runs = [[tick for tick, _ in run] for _, run in groupby(ticks, key=lambda pair: pair[1])]
    frames = decode_frames(
        file, timeline, indices=list(dict.fromkeys(indices)), max_pixels=max_pixels
    )
    for run, frame in zip(runs, frames, strict=True):
        rgb = fit_picture_inside(frame.rgb, width=clip_format.width, height=clip_format.height)
        for tick in run:
            yield tick, rgb


def _count_samples_before(tick: int, rate: Fraction) -> int:
    return int(tick / rate * SOUND_RATE_HZ)


def _read_matching_sound(
    file: BinaryIO,
    timeline: FrameTimeline,
    *,
    n_frames: int,
    clip_format: NormalisedClipFormat,
    max_pixels: int,
) -> NDArray[np.int16] | None:
    """Return the sound samples for the duration of the output; `None` if the sound is dropped.

    Raises:
        MediaError: The clip is longer than 900 s.
    """
    if clip_format.sound == "dropped":
        return None
    if timeline.duration_s > LONGEST_WITH_SOUND_S:
        raise MediaError(
            FailureReason.TOO_LONG,
            f"the clip is longer than {LONGEST_WITH_SOUND_S} s, too long to keep its sound",
        )
    n_samples = _count_samples_before(n_frames, clip_format.rate)
    return read_stereo_samples(
        file, from_s=timeline.first_at_s, n_samples=n_samples, max_pixels=max_pixels
    )


def read_stereo_samples(
    file: BinaryIO, *, from_s: Fraction, n_samples: int, max_pixels: int
) -> NDArray[np.int16]:
    """Return `n_samples` stereo samples from `from_s` in container time; missing sound is silence."""
    samples = np.zeros((n_samples, CHANNELS), np.int16)
    n_read = 0
    with open_clip(file, max_pixels=max_pixels) as clip:
        for part in iter_sound_blocks(clip, rate_hz=SOUND_RATE_HZ, layout="stereo"):
            offset = round((part.start_s - from_s) * SOUND_RATE_HZ)
            _copy_samples_at(samples, part.samples, offset + n_read)
            n_read += len(part.samples)
    return samples


def _copy_samples_at(samples: NDArray[np.int16], part: NDArray[np.int16], index: int) -> None:
    """Copy `part` into `samples` from `index` on; samples outside the array are dropped."""
    first, last = max(0, index), min(len(samples), index + len(part))
    if first < last:
        samples[first:last] = part[first - index : last - index]
