"""Reads the facts of a clip's streams."""

import os
from fractions import Fraction
from itertools import pairwise
from typing import BinaryIO, Final, cast

from av.audio.stream import AudioStream
from av.video.frame import VideoFrame

from unreel.core.facts import AudioFacts, ClipFacts, VideoFacts
from unreel.media.bounds import FASTEST, MAX_PACKETS, MAX_PIXELS, MOST_S
from unreel.media.container import decoder_name, open_clip
from unreel.media.tags import read_tags
from unreel.media.timeline import (
    DeclaredPace,
    FrameTimeline,
    PacketScan,
    build_timeline,
    declared_pace,
    stream_time_base,
    walk_packets,
)

_ROUNDING_S: Final = Fraction(1, 1000)
"""Matroska and FLV keep whole milliseconds, and a copy elsewhere keeps their rounding."""


def probe(file: BinaryIO, *, max_pixels: int = MAX_PIXELS) -> ClipFacts:
    """Return the facts of the clip in `file`; `MediaError` says why there are none."""
    size_bytes = file.seek(0, os.SEEK_END)
    with open_clip(file, max_pixels=max_pixels) as clip:
        sounds = clip.container.streams.audio
        streams = (clip.stream, *sounds)
        packets = walk_packets(clip, streams, max_packets=MAX_PACKETS, decode_first=True)
        first = cast("VideoFrame", packets.first_frame)
        declared = declared_pace(clip)
        timeline = build_timeline(
            packets,
            time_base=stream_time_base(clip.stream),
            declared=declared,
            first_tick=first.pts,
        )
        codec = clip.stream.codec_context.codec.canonical_name
        return ClipFacts(
            container=clip.format_name,
            size_bytes=size_bytes,
            video=_video_facts(first, timeline, codec=codec, declared=declared),
            audio=tuple(_audio_facts(stream, packets) for stream in sounds),
            tags=read_tags(clip, first),
        )


def clockwise_turn(frame: VideoFrame) -> int:
    """Degrees by which a player turns `frame` clockwise before showing it: 0, 90, 180 or 270."""
    return -90 * round(frame.rotation / 90) % 360


def constant_rate(timeline: FrameTimeline, declared: DeclaredPace) -> Fraction | None:
    """The rate at which the frames follow each other; nothing where their distances differ."""
    ticks = timeline.ticks
    steps = {after - now for now, after in pairwise(ticks)}
    if len(steps) == 1 and (step := steps.pop() * timeline.time_base) * FASTEST >= 1:
        return 1 / step
    for rate in (declared.nominal_rate, declared.average_rate):
        if rate and 1 <= rate * MOST_S <= FASTEST * MOST_S and _fits(timeline, rate):
            return rate
    return None


def _fits(timeline: FrameTimeline, rate: Fraction) -> bool:
    """True when every frame is where `rate` puts it, but for the rounding of its container."""
    slack_s = max(timeline.time_base, min(_ROUNDING_S, 1 / rate / 4))
    slack = slack_s / timeline.time_base
    # Whole numbers throughout: a long clip has millions of frames.
    step, per = (1 / rate / timeline.time_base).as_integer_ratio()
    first, most = timeline.ticks[0], int(slack * per)
    return all(
        abs((tick - first) * per - i * step) <= most for i, tick in enumerate(timeline.ticks)
    )


def _video_facts(
    first: VideoFrame, timeline: FrameTimeline, *, codec: str, declared: DeclaredPace
) -> VideoFacts:
    turn = clockwise_turn(first)
    width, height = (first.height, first.width) if turn % 180 else (first.width, first.height)
    rate = constant_rate(timeline, declared)
    return VideoFacts(
        codec=codec,
        pixel_format=first.format.name,
        width=width,
        height=height,
        rotation_deg=turn,
        n_frames=timeline.n_frames,
        average_rate=rate or timeline.n_frames / timeline.duration_s,
        variable_rate=rate is None,
        first_at_s=timeline.first_at_s,
        duration_s=timeline.duration_s,
    )


def _audio_facts(stream: AudioStream, packets: PacketScan) -> AudioFacts:
    first, last = packets.sound_ticks.get(stream.index, (0, 0))
    duration_s = (stream.duration or last - first) * stream_time_base(stream)
    known = decoder_name(stream) != "unknown"
    context = stream.codec_context
    return AudioFacts(
        codec=context.codec.canonical_name if known else "unknown",
        sample_rate_hz=context.sample_rate if known else 0,
        channels=context.channels if known else 0,
        duration_s=duration_s if 0 <= duration_s <= MOST_S else Fraction(0),
    )
