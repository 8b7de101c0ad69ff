"""Reading of a clip's facts: container, streams, timing and metadata tags."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, cast

from av.audio.stream import AudioStream
from av.video.frame import VideoFrame

from unreel.core.clip import AudioFacts, ClipFacts, FileTag, VideoFacts
from unreel.media.container import OpenClip, get_decoder_name, open_clip
from unreel.media.messages import (
    FASTEST,
    MAX_NAME,
    MAX_PACKETS,
    MAX_PIXELS,
    MAX_S,
    MAX_TAGS,
    MAX_VALUE,
)
from unreel.media.timeline import (
    DeclaredTiming,
    FrameTimeline,
    PacketTimes,
    build_frame_timeline,
    get_stream_time_base,
    read_declared_timing,
    read_packet_times,
)

if TYPE_CHECKING:
    from av.sidedata.sidedata import SideData


WRITERS = frozenset(
    {
        "brand",
        "compatible_brands",
        "encoder",
        "encoding_tool",
        "handler_name",
        "language",
        "major_brand",
        "minor_version",
        "software",
        "vendor_id",
        "writing_application",
    }
)
"""Names of tags that identify a program or a format; of other tags only the presence is reported."""

_UUID_BYTES = 16
_SIGNATURE = re.compile(rb"(x26[45])[ -~]{0,400}")
_BUILD = re.compile(rb"(?:core|build) ([0-9]{1,6})")
_UNPRINTABLE = re.compile(r"[^ -~]+")


def read_file_tags(clip: OpenClip, first: VideoFrame) -> tuple[FileTag, ...]:
    """Return the tags of the container, its video and first audio stream, and its first frame."""
    tags = set(_iter_metadata_tags(clip.container.metadata))
    # The signatures of x264 and x265 in the first frame. The type stubs declare a mapping of names;
    # iteration yields the items themselves.
    for item in cast("Iterable[SideData]", first.side_data):
        if item.type.name == "SEI_UNREGISTERED":
            signed = _SIGNATURE.search(bytes(item)[_UUID_BYTES:])
            if signed is not None:
                build = _BUILD.search(signed[0])
                parts = [signed[1], build[1]] if build else [signed[1]]
                tags.add(FileTag("signature", b" ".join(parts).decode("ascii")))
    tags |= set(_iter_metadata_tags(clip.stream.metadata, "video "))
    for sound in clip.container.streams.audio[:1]:
        tags |= set(_iter_metadata_tags(sound.metadata, "audio "))
    return tuple(sorted(tags, key=lambda tag: (tag.name, tag.value))[:MAX_TAGS])


def _iter_metadata_tags(metadata: Mapping[str, str], of: str = "") -> Iterator[FileTag]:
    for name, value in metadata.items():
        known = name.lower() in WRITERS
        yield FileTag(
            _truncate_printable(of + name.lower(), MAX_NAME),
            _truncate_printable(value, MAX_VALUE) if known else "",
        )


def _truncate_printable(text: str, limit: int) -> str:
    return _UNPRINTABLE.sub("?", text).strip()[:limit] or "?"


_ROUNDING_S = Fraction(1, 1000)
"""Rounding of timestamps in seconds: Matroska and FLV store whole milliseconds, and copies keep this rounding."""


def probe_clip(file: BinaryIO, *, max_pixels: int = MAX_PIXELS) -> ClipFacts:
    """Read the facts of the clip in `file`; raise `MediaError` if it is not a readable clip."""
    size_bytes = file.seek(0, os.SEEK_END)
    with open_clip(file, max_pixels=max_pixels) as clip:
        sounds = clip.container.streams.audio
        streams = (clip.stream, *sounds)
        packets = read_packet_times(clip, streams, max_packets=MAX_PACKETS, decode_first=True)
        first = cast("VideoFrame", packets.first_frame)
        declared = read_declared_timing(clip)
        timeline = build_frame_timeline(
            packets,
            time_base=get_stream_time_base(clip.stream),
            declared=declared,
            first_tick=first.pts,
        )
        codec = clip.stream.codec_context.codec.canonical_name
        turn = get_clockwise_rotation(first)
        width, height = (first.height, first.width) if turn % 180 else (first.width, first.height)
        rate = find_constant_frame_rate(timeline, declared)
        return ClipFacts(
            container=clip.format_name,
            size_bytes=size_bytes,
            video=VideoFacts(
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
            ),
            audio=tuple(_build_audio_facts(stream, packets) for stream in sounds),
            tags=read_file_tags(clip, first),
        )


def get_clockwise_rotation(frame: VideoFrame) -> int:
    """Return the clockwise rotation in degrees that a player applies to `frame`: 0, 90, 180 or 270."""
    return -90 * round(frame.rotation / 90) % 360


def find_constant_frame_rate(timeline: FrameTimeline, declared: DeclaredTiming) -> Fraction | None:
    """Return the constant frame rate of a clip; `None` if the intervals between its frames differ."""
    ticks = timeline.ticks
    steps = {after - before for before, after in pairwise(ticks)}
    if len(steps) == 1 and (step := steps.pop() * timeline.time_base) * FASTEST >= 1:
        return 1 / step
    for rate in (declared.nominal_rate, declared.average_rate):
        if rate and 1 <= rate * MAX_S <= FASTEST * MAX_S and _fits_constant_rate(timeline, rate):
            return rate
    return None


def _fits_constant_rate(timeline: FrameTimeline, rate: Fraction) -> bool:
    """Return whether every frame is at its time for `rate`, apart from the container's rounding."""
    slack_s = max(timeline.time_base, min(_ROUNDING_S, 1 / rate / 4))
    slack = slack_s / timeline.time_base
    # Only integers, for speed: a long clip has millions of frames.
    step, per = (1 / rate / timeline.time_base).as_integer_ratio()
    first, limit = timeline.ticks[0], int(slack * per)
    return all(
        abs((tick - first) * per - i * step) <= limit for i, tick in enumerate(timeline.ticks)
    )


def _build_audio_facts(stream: AudioStream, packets: PacketTimes) -> AudioFacts:
    first, last = packets.sound_ticks.get(stream.index, (0, 0))
    duration_s = (stream.duration or last - first) * get_stream_time_base(stream)
    known = get_decoder_name(stream) != "unknown"
    context = stream.codec_context
    return AudioFacts(
        codec=context.codec.canonical_name if known else "unknown",
        sample_rate_hz=context.sample_rate if known else 0,
        channels=context.channels if known else 0,
        duration_s=duration_s if 0 <= duration_s <= MAX_S else Fraction(0),
    )
