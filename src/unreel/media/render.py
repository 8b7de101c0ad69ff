"""Re-encoding of clips in one format, and rendering of a part of a clip, as mp4 files.

The format does not reveal the origin of a clip. The same clip always gives the same bytes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby, repeat
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.errors import InvalidSettingError, MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import open_clip
from unreel.media.decode import Rgb, decode_frames
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, VideoTrackSettings
from unreel.media.messages import MAX_PIXELS
from unreel.media.sound import iter_sound_blocks
from unreel.media.timeline import FrameTimeline, read_frame_timeline

LONGEST_WITH_SOUND_S = 900
"""Maximum duration of a clip whose sound is kept, in seconds. The sound is in memory: 173 MB for this duration."""
MAX_FRAMES = 200_000
"""Maximum number of output frames, two hours at 24 frames a second: a limit for files that declare no end."""
CHANNELS = 2
_LENGTHS = range(16, 4097, 2)
_MAX_CRF = 51
_MAX_RATE = 240
OWN_CRF = 14
"""Quality (CRF) of a segment with its original size and timestamps: visually lossless."""
OWN_SPEED = Fraction(1)
_FINE = Fraction(1, 90_000)
"""Tick in seconds to which the timestamps of a segment with another speed are rounded."""


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
            if side not in _LENGTHS:
                raise InvalidSettingError(
                    name,
                    f"cannot encode {side} pixels",
                    f"Give an even number from {_LENGTHS[0]} to {_LENGTHS[-1]}",
                )
        if not 0 < self.rate <= _MAX_RATE:
            raise InvalidSettingError(
                "rate", f"cannot encode {self.rate} frames a second", f"Give up to {_MAX_RATE}"
            )
        if not 0 <= self.crf <= _MAX_CRF:
            raise InvalidSettingError(
                "crf", f"must be 0 (best) to {_MAX_CRF}, got {self.crf}", "Correct it"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelCrop:
    """A crop rectangle of the displayed frame, in pixels."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CroppedFrameRange:
    """Part of a clip to render: frames `first_frame` to `end_frame` (exclusive; `None`: all) and crop."""

    first_frame: int = 0
    end_frame: int | None = None
    length_s: Fraction | None = None
    """Maximum length in seconds from the first frame on; `None` for no limit."""
    crop: PixelCrop | None = None


WHOLE = CroppedFrameRange()


@dataclass(frozen=True, slots=True)
class _ScheduledPicture:
    """Picture of a rendered segment: tick in the output, and the index of its source frame."""

    tick: int
    index: int
    end_s: Fraction
    """Time at which the next picture follows, in seconds from the start of the segment."""


def normalise_clip(
    file: BinaryIO, clip_format: NormalisedClipFormat, *, max_pixels: int = MAX_PIXELS
) -> bytes:
    """Return the clip in `file` re-encoded in the format of `clip_format`, without tags or signatures.

    At each time the result shows the same frame as the clip, so the duration differs by at most one
    frame of the output.
    """
    return render_clip_segment(file, WHOLE, clip_format=clip_format, max_pixels=max_pixels)


def render_clip_segment(
    file: BinaryIO,
    frame_range: CroppedFrameRange,
    *,
    clip_format: NormalisedClipFormat | None = None,
    speed: Fraction = OWN_SPEED,
    max_pixels: int = MAX_PIXELS,
) -> bytes:
    """Render a part of a clip as an mp4 file: deterministic bytes, without tags or signatures.

    Without `clip_format` each frame keeps its size, reduced to even numbers, and its timestamp, and the
    segment has sound if its source has. `speed` is the seconds of the source per second of the
    segment; the pitch of the sound changes with it.
    """
    timeline = read_frame_timeline(file, max_pixels=max_pixels)
    first = frame_range.first_frame
    end = timeline.n_frames if frame_range.end_frame is None else frame_range.end_frame
    if not 0 <= first < end <= timeline.n_frames:
        detail = f"frames {first} to {end} do not exist: the clip has {timeline.n_frames}"
        raise MediaError(FailureReason.UNDECODABLE, detail)
    start_s, end_s = timeline.at_s(first), _get_frame_start_s(timeline, end)
    if frame_range.length_s is not None and start_s + frame_range.length_s < end_s:
        end_s = start_s + frame_range.length_s
        end_tick = timeline.ticks[0] + end_s / timeline.time_base
        end = max(first + 1, bisect_left(timeline.ticks, end_tick))
    time_base = timeline.time_base if speed == OWN_SPEED else _FINE
    crf, rate = OWN_CRF, timeline.n_frames / timeline.duration_s * speed
    if clip_format is not None:
        crf, rate, time_base = clip_format.crf, clip_format.rate, 1 / clip_format.rate
    schedule = schedule_pictures(
        timeline,
        range(first, end),
        end_s,
        time_base,
        rate=rate if clip_format else None,
        speed=speed,
    )
    # Read completely before the first picture, because both readers share the file's position.
    if clip_format is None:
        with open_clip(file, max_pixels=max_pixels) as clip:
            with_sound = bool(clip.container.streams.audio)
    else:
        with_sound = clip_format.sound == "kept"
    sound = None
    if with_sound:
        if end_s - start_s > LONGEST_WITH_SOUND_S:
            detail = f"the clip is longer than {LONGEST_WITH_SOUND_S} s, too long to keep its sound"
            raise MediaError(FailureReason.TOO_LONG, detail)
        n_samples = int(schedule[-1].end_s * speed * SOUND_RATE_HZ)
        from_s = timeline.presented_s(first)
        sound = _read_stereo_samples(
            file, from_s=from_s, n_samples=n_samples, max_pixels=max_pixels
        )
        if speed != OWN_SPEED:  # a higher speed raises the pitch
            positions = np.arange(int(schedule[-1].end_s * SOUND_RATE_HZ)) * float(speed)
            channels = [np.interp(positions, np.arange(n_samples), row) for row in sound.T]
            sound = np.rint(np.stack(channels, axis=1)).astype(np.int16)
    pictures = _iter_output_pictures(
        file, timeline, schedule, crop=frame_range.crop, form=clip_format, max_pixels=max_pixels
    )
    first_picture = next(pictures)
    height, width, _ = first_picture.shape
    video = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=rate.limit_denominator(1 << 16),
        time_base=time_base,
        options={"crf": str(crf), "preset": "veryfast", "bf": "0", "g": "48"},
    )
    done = 0
    with ClipWriter("mp4", video, n_channels=CHANNELS if with_sound else 0) as writer:
        for showing, rgb in zip(schedule, chain([first_picture], pictures), strict=True):
            writer.add_picture(rgb, tick=showing.tick)
            if sound is not None:
                until = int(showing.end_s * SOUND_RATE_HZ)
                writer.add_sound(sound[done:until])
                done = until
        return writer.finish()


def schedule_pictures(
    timeline: FrameTimeline,
    frames: range,
    end_s: Fraction,
    time_base: Fraction,
    *,
    rate: Fraction | None,
    speed: Fraction = OWN_SPEED,
) -> list[_ScheduledPicture]:
    """Return the pictures of a segment in output order: at the constant `rate`, or at their own times.

    Raise `MediaError` if the segment has more than 200,000 frames.
    """
    start_s = timeline.at_s(frames.start)
    n_pictures = len(frames)
    if rate is not None:
        n_pictures = max(1, -(-(end_s - start_s) / speed * rate // 1))
    if n_pictures > MAX_FRAMES:
        detail = f"the clip would have {n_pictures} frames, more than {MAX_FRAMES}"
        raise MediaError(FailureReason.TOO_LONG, detail)
    if rate is not None:
        return [
            _ScheduledPicture(
                tick,
                min(
                    frames[-1], max(frames.start, timeline.shown_at(start_s + tick * speed / rate))
                ),
                (tick + 1) / rate,
            )
            for tick in range(n_pictures)
        ]
    schedule: dict[int, _ScheduledPicture] = {}
    ticks_a_tick = timeline.time_base / speed / time_base
    for index in frames:  # of several frames with one tick, the last is shown
        tick = round((timeline.ticks[index] - timeline.ticks[frames.start]) * ticks_a_tick)
        next_s = (_get_frame_start_s(timeline, index + 1) - start_s) / speed
        schedule[tick] = _ScheduledPicture(tick, index, next_s)
    return list(schedule.values())


def _get_frame_start_s(timeline: FrameTimeline, index: int) -> Fraction:
    return timeline.at_s(index) if index < timeline.n_frames else timeline.duration_s


def _iter_output_pictures(
    file: BinaryIO,
    timeline: FrameTimeline,
    schedule: Sequence[_ScheduledPicture],
    *,
    crop: PixelCrop | None,
    form: NormalisedClipFormat | None,
    max_pixels: int,
) -> Iterator[Rgb]:
    runs = [list(run) for _, run in groupby(schedule, key=lambda showing: showing.index)]
    indices = [run[0].index for run in runs]
    frames = decode_frames(file, timeline, indices=indices, max_pixels=max_pixels)
    for run, frame in zip(runs, frames, strict=True):
        rgb = crop_picture(frame.rgb, crop)
        if form is None:
            rgb = rgb[: rgb.shape[0] // 2 * 2, : rgb.shape[1] // 2 * 2]
        else:
            rgb = fit_picture_inside(rgb, width=form.width, height=form.height)
        yield from repeat(rgb, len(run))


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


def crop_picture(rgb: Rgb, crop: PixelCrop | None) -> Rgb:
    """Return the part of `rgb` inside `crop`; all of `rgb` if `crop` is `None`."""
    if crop is None:
        return rgb
    height, width, _ = rgb.shape
    right, bottom = crop.left + crop.width, crop.top + crop.height
    inside = min(crop.left, crop.top) >= 0 and right <= width and bottom <= height
    if not inside or min(crop.width, crop.height) < 2:  # noqa: PLR2004  one block of colour
        detail = f"{crop} does not lie in a frame of {width} x {height}"
        raise MediaError(FailureReason.UNDECODABLE, detail)
    return rgb[crop.top : bottom, crop.left : right]


def _read_stereo_samples(
    file: BinaryIO, *, from_s: Fraction, n_samples: int, max_pixels: int
) -> NDArray[np.int16]:
    """Return `n_samples` stereo samples from `from_s` in container time; missing sound is silence."""
    samples = np.zeros((n_samples, CHANNELS), np.int16)
    n_read = 0
    with open_clip(file, max_pixels=max_pixels) as clip:
        for block, start_s in iter_sound_blocks(clip, rate_hz=SOUND_RATE_HZ, layout="stereo"):
            offset = round((start_s - from_s) * SOUND_RATE_HZ)
            index = offset + n_read
            first, last = max(0, index), min(n_samples, index + len(block))
            if first < last:  # samples outside the array are dropped
                samples[first:last] = block[first - index : last - index]
            n_read += len(block)
    return samples
