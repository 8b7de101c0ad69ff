"""Rendering of a part of a clip, cut in time and cropped, as an mp4 file."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby, repeat
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import open_clip
from unreel.media.decode import Rgb, decode_frames
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, SoundTrackSettings, VideoTrackSettings
from unreel.media.messages import MAX_PIXELS
from unreel.media.normalise import (
    CHANNELS,
    LONGEST_WITH_SOUND_S,
    MAX_FRAMES,
    NormalisedClipFormat,
    fit_picture_inside,
    read_stereo_samples,
)
from unreel.media.timeline import FrameTimeline, read_frame_timeline

OWN_CRF = 14
"""Quality (CRF) of a segment with its original size and timestamps: visually lossless."""
OWN_SPEED = Fraction(1)
_FINE = Fraction(1, 90_000)
"""Tick in seconds to which the timestamps of a segment with another speed are rounded."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScheduledPicture:
    """Picture of a rendered segment, with its tick in the output and the index of its source frame."""

    tick: int
    index: int
    """Index of the frame in the source."""
    end_s: Fraction
    """Time at which the next picture follows, in seconds from the start of the segment."""


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
    first, end = _resolve_frame_range(frame_range, timeline)
    start_s, end_s = timeline.at_s(first), _get_frame_start_s(timeline, end)
    if frame_range.length_s is not None and start_s + frame_range.length_s < end_s:
        end_s = start_s + frame_range.length_s
        end_tick = timeline.ticks[0] + end_s / timeline.time_base
        end = max(first + 1, bisect_left(timeline.ticks, end_tick))
    if clip_format is None:
        schedule = _schedule_at_original_rate(timeline, first, end, speed=speed)
    else:
        schedule = _schedule_at_constant_rate(
            timeline, (first, end), until_s=end_s, rate=clip_format.rate, speed=speed
        )
    with_sound = clip_format.sound == "kept" if clip_format else _has_sound(file, max_pixels)
    if with_sound and end_s - start_s > LONGEST_WITH_SOUND_S:
        raise MediaError(
            FailureReason.TOO_LONG,
            f"the piece is longer than {LONGEST_WITH_SOUND_S} s, too long to keep its sound",
        )
    # Read completely before the first picture, because both readers share the file's position.
    sound = None
    if with_sound:
        n = _count_samples_until(schedule[-1].end_s * speed)
        from_s = timeline.presented_s(first)
        samples = read_stereo_samples(file, from_s=from_s, n_samples=n, max_pixels=max_pixels)
        sound = _resample_to_speed(
            samples, n_samples=_count_samples_until(schedule[-1].end_s), speed=speed
        )
    pictures = _iter_output_pictures(
        file,
        timeline,
        schedule,
        frame_range=frame_range,
        clip_format=clip_format,
        max_pixels=max_pixels,
    )
    first_picture = next(pictures)
    track = None if sound is None else SoundTrackSettings(codec="aac", channels=CHANNELS)
    done = 0
    with ClipWriter(
        "mp4", _build_video_track(first_picture, timeline, speed, clip_format), sound=track
    ) as writer:
        for showing, rgb in zip(schedule, chain([first_picture], pictures), strict=True):
            writer.add_picture(rgb, tick=showing.tick)
            if sound is not None:
                until = _count_samples_until(showing.end_s)
                writer.add_sound(sound[done:until])
                done = until
        return writer.finish()


def _resolve_frame_range(
    frame_range: CroppedFrameRange, timeline: FrameTimeline
) -> tuple[int, int]:
    end = timeline.n_frames if frame_range.end_frame is None else frame_range.end_frame
    if not 0 <= frame_range.first_frame < end <= timeline.n_frames:
        raise MediaError(
            FailureReason.UNDECODABLE,
            f"no frames {frame_range.first_frame} to {end}: the clip has {timeline.n_frames}",
        )
    if end - frame_range.first_frame > MAX_FRAMES:
        raise MediaError(
            FailureReason.TOO_LONG,
            f"the piece has {end - frame_range.first_frame} frames, more than {MAX_FRAMES}",
        )
    return frame_range.first_frame, end


def _get_frame_start_s(timeline: FrameTimeline, index: int) -> Fraction:
    if index < timeline.n_frames:
        return timeline.at_s(index)
    return timeline.duration_s


def _schedule_at_original_rate(
    timeline: FrameTimeline, first: int, end: int, *, speed: Fraction
) -> list[_ScheduledPicture]:
    start, start_s = timeline.ticks[first], timeline.at_s(first)
    ticks_a_tick = timeline.time_base / speed / _get_output_time_base(timeline, speed)
    schedule: dict[int, _ScheduledPicture] = {}
    for index in range(first, end):  # of several frames with one tick, the last is shown
        tick = round((timeline.ticks[index] - start) * ticks_a_tick)
        schedule[tick] = _ScheduledPicture(
            tick=tick,
            index=index,
            end_s=(_get_frame_start_s(timeline, index + 1) - start_s) / speed,
        )
    return list(schedule.values())


def _get_output_time_base(timeline: FrameTimeline, speed: Fraction) -> Fraction:
    return timeline.time_base if speed == OWN_SPEED else _FINE


def _schedule_at_constant_rate(
    timeline: FrameTimeline,
    frames: tuple[int, int],
    *,
    until_s: Fraction,
    rate: Fraction,
    speed: Fraction,
) -> list[_ScheduledPicture]:
    first, end = frames
    start_s = timeline.at_s(first)
    n_ticks = max(1, -(-(until_s - start_s) / speed * rate // 1))
    if n_ticks > MAX_FRAMES:
        raise MediaError(
            FailureReason.TOO_LONG, f"the piece would have {n_ticks} frames, more than {MAX_FRAMES}"
        )
    return [
        _ScheduledPicture(
            tick=tick,
            index=min(end - 1, max(first, timeline.shown_at(start_s + tick * speed / rate))),
            end_s=(tick + 1) / rate,
        )
        for tick in range(n_ticks)
    ]


def _iter_output_pictures(
    file: BinaryIO,
    timeline: FrameTimeline,
    schedule: Sequence[_ScheduledPicture],
    *,
    frame_range: CroppedFrameRange,
    clip_format: NormalisedClipFormat | None,
    max_pixels: int,
) -> Iterator[Rgb]:
    """Yield the picture of each tick of the output; a frame shown for several ticks is decoded once."""
    runs = [list(run) for _, run in groupby(schedule, key=lambda showing: showing.index)]
    indices = [run[0].index for run in runs]
    frames = decode_frames(file, timeline, indices=indices, max_pixels=max_pixels)
    for run, frame in zip(runs, frames, strict=True):
        rgb = crop_picture(frame.rgb, frame_range.crop)
        if clip_format is None:
            rgb = rgb[: rgb.shape[0] // 2 * 2, : rgb.shape[1] // 2 * 2]
        else:
            rgb = fit_picture_inside(rgb, width=clip_format.width, height=clip_format.height)
        yield from repeat(rgb, len(run))


def crop_picture(rgb: Rgb, crop: PixelCrop | None) -> Rgb:
    """Return the part of `rgb` inside `crop`; all of `rgb` if `crop` is `None`."""
    if crop is None:
        return rgb
    height, width, _ = rgb.shape
    right, bottom = crop.left + crop.width, crop.top + crop.height
    inside = min(crop.left, crop.top) >= 0 and right <= width and bottom <= height
    if not inside or min(crop.width, crop.height) < 2:  # noqa: PLR2004  one block of colour
        raise MediaError(
            FailureReason.UNDECODABLE, f"{crop} does not lie in a frame of {width} x {height}"
        )
    return rgb[crop.top : bottom, crop.left : right]


def _build_video_track(
    picture: Rgb, timeline: FrameTimeline, speed: Fraction, clip_format: NormalisedClipFormat | None
) -> VideoTrackSettings:
    height, width, _ = picture.shape
    own_rate = timeline.n_frames / timeline.duration_s * speed
    rate = own_rate if clip_format is None else clip_format.rate
    crf = OWN_CRF if clip_format is None else clip_format.crf
    return VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=rate.limit_denominator(1 << 16),
        time_base=_get_output_time_base(timeline, speed)
        if clip_format is None
        else 1 / clip_format.rate,
        options={"crf": str(crf), "preset": "veryfast", "bf": "0", "g": "48"},
    )


def _has_sound(file: BinaryIO, max_pixels: int) -> bool:
    with open_clip(file, max_pixels=max_pixels) as clip:
        return bool(clip.container.streams.audio)


def _resample_to_speed(
    samples: NDArray[np.int16], *, n_samples: int, speed: Fraction
) -> NDArray[np.int16]:
    """Resample the sound `samples` to play at `speed`; a higher speed raises the pitch."""
    if speed == OWN_SPEED:
        return samples
    positions = np.arange(n_samples) * float(speed)
    resampled = np.zeros((n_samples, CHANNELS), np.int16)
    for channel in range(CHANNELS):
        values = np.interp(positions, np.arange(len(samples)), samples[:, channel])
        resampled[:, channel] = np.rint(values)
    return resampled


def _count_samples_until(instant_s: Fraction) -> int:
    return int(instant_s * SOUND_RATE_HZ)
