"""Display time of every frame of a clip, read from the packets without decoding pictures.

There is one exception: a clip that was cut in the middle of a group of pictures. Its first
packets depend on removed frames and are never shown. Only the decoder knows their number, so
the first frame is decoded.
"""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Self, cast

from av.stream import Stream
from av.video.frame import VideoFrame

from unreel.core.errors import InvalidValueError, MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import OpenClip, get_decoder_name, open_clip, translate_media_errors
from unreel.media.messages import FASTEST, MAX_PACKETS, MAX_S

if TYPE_CHECKING:
    from av.packet import Packet  # generic for the type checker only

_NO_FRAME = "the video stream gives no frame"
_VP8_SHOWN = 0x10
_REORDERED = frozenset({"h264", "hevc"})
"""Decoders for which FFmpeg cannot compute the times that AVI does not store; for MPEG-4 it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTimeline:
    """Display times of all frames of a clip, in display order and exact.

    Timestamps start at the first frame. Only the ticks, and values derived from them for FFmpeg,
    use the container's clock, which may start anywhere.
    """

    time_base: Fraction
    ticks: tuple[int, ...]
    last_ticks: int
    keys: tuple[int, ...]
    """Indices of the frames from which decoding can begin."""
    declared_frames: int
    """Number of frames in the container's header; 0 if missing. The samplings of other tools use it."""
    declared_rate: Fraction
    """Frames per second in the container's header; computed if missing. The samplings of other tools use it."""
    declared_s: Fraction
    """Length in seconds in the container's header; computed if missing. The samplings of other tools use it."""

    def __post_init__(self) -> None:
        if not self.ticks or self.last_ticks < 1 or self.time_base <= 0 or self.declared_rate <= 0:
            raise InvalidValueError(
                "a timeline needs frames, a time base, a rate and a lasting end. Check them"
            )
        if any(before > after for before, after in pairwise(self.ticks)):
            raise InvalidValueError("the ticks of a timeline must not fall. Sort them")

    @classmethod
    def at_rate(cls, rate: Fraction, *, n_frames: int) -> Self:
        """Build a timeline of `n_frames` at a constant rate from 0; only the first frame is a key frame."""
        return cls(
            time_base=1 / rate,
            ticks=tuple(range(n_frames)),
            last_ticks=1,
            keys=(0,),
            declared_frames=n_frames,
            declared_rate=rate,
            declared_s=n_frames / rate,
        )

    @property
    def n_frames(self) -> int:
        """Return the number of shown frames of the clip."""
        return len(self.ticks)

    @property
    def first_at_s(self) -> Fraction:
        """Return when the first frame appears, in seconds on the container's clock."""
        return self.presented_s(0)

    @property
    def duration_s(self) -> Fraction:
        """Return the time from the first frame's start to the last frame's end, in seconds."""
        return (self.ticks[-1] + self.last_ticks - self.ticks[0]) * self.time_base

    def at_s(self, index: int) -> Fraction:
        """Return when frame `index` appears, in seconds after the first frame."""
        return (self.ticks[index] - self.ticks[0]) * self.time_base

    def presented_s(self, index: int) -> Fraction:
        """Return when frame `index` appears, in seconds on the container's clock; a decoder must agree."""
        return self.ticks[index] * self.time_base

    def shown_at(self, instant_s: Fraction) -> int:
        """Return the index of the frame shown at `instant_s`; 0 before the clip begins."""
        tick = self.ticks[0] + instant_s / self.time_base
        return max(0, bisect_right(self.ticks, tick) - 1)

    def key_before(self, index: int) -> int:
        """Return the index of the last key frame at or before frame `index`; 0 if there is none."""
        position = bisect_right(self.keys, index)
        return self.keys[position - 1] if position else 0


@dataclass(slots=True)
class PacketTimes:
    """Display times of all packets of a clip. Ticks are in each stream's own time base."""

    shown: "array[int]" = field(default_factory=lambda: array("q"))
    key_ticks: list[int] = field(default_factory=list)
    latest: int | None = None
    latest_lasts: int = 0
    sound_ticks: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Start and end of each sound stream in ticks, by the stream's index."""
    first_frame: VideoFrame | None = None
    """First frame that the decoder returns, if it was requested."""

    def add_picture(self, packet: "Packet[Stream]", *, decoder: str) -> None:
        """Record a packet's display time, unless it is never shown; raise `MediaError` if it has none."""
        if packet.is_discard or (decoder == "vp8" and not memoryview(packet)[0] & _VP8_SHOWN):
            return
        if packet.pts is None:
            raise MediaError(FailureReason.UNDECODABLE, "a frame carries no time")
        self.shown.append(packet.pts)
        if packet.is_keyframe:
            self.key_ticks.append(packet.pts)
        if self.latest is None or packet.pts >= self.latest:
            self.latest, self.latest_lasts = packet.pts, packet.duration or 0

    def add_sound(self, packet: "Packet[Stream]") -> None:
        """Record the time span of a sound packet for its stream."""
        if packet.is_discard or packet.pts is None:
            return
        ends = packet.pts + (packet.duration or 0)
        first, last = self.sound_ticks.get(packet.stream_index, (packet.pts, ends))
        self.sound_ticks[packet.stream_index] = (min(first, packet.pts), max(last, ends))


def read_frame_timeline(
    file: BinaryIO, *, max_pixels: int, max_packets: int = MAX_PACKETS
) -> FrameTimeline:
    """Read the display time of every frame of the clip in `file`."""
    with open_clip(file, max_pixels=max_pixels) as clip:
        return read_open_clip_timeline(clip, file, max_pixels=max_pixels, max_packets=max_packets)


def read_open_clip_timeline(
    clip: OpenClip, file: BinaryIO, *, max_pixels: int, max_packets: int = MAX_PACKETS
) -> FrameTimeline:
    """Read every frame's display time of `clip`, opened from `file`; it is at its end afterwards."""
    with translate_media_errors():
        packets = read_packet_times(clip, (clip.stream,), max_packets=max_packets)
    first = None
    if packets.key_ticks and min(packets.shown) < packets.key_ticks[0]:
        with open_clip(file, max_pixels=max_pixels) as again:
            frame = next(iter(again.container.decode(again.stream)), None)
            if frame is None:
                raise MediaError(FailureReason.NO_VIDEO, _NO_FRAME)
            first = frame.pts
    return build_frame_timeline(
        packets,
        time_base=get_stream_time_base(clip.stream),
        declared=read_declared_timing(clip),
        first_tick=first,
    )


def read_packet_times(
    clip: OpenClip, streams: tuple[Stream, ...], *, max_packets: int, decode_first: bool = False
) -> PacketTimes:
    """Read the times of all packets of `streams` in one pass, from the start of the clip.

    With `decode_first` the first frame is decoded too, and a clip without one is rejected.
    """
    packets = PacketTimes()
    decoder = get_decoder_name(clip.stream)
    if clip.format_name == "avi" and decoder in _REORDERED and clip.stream.has_b_frames:
        raise MediaError(
            FailureReason.UNDECODABLE, "AVI keeps no times for frames that are stored out of order"
        )
    for count, packet in enumerate(clip.container.demux(*streams)):
        if count >= max_packets:
            raise MediaError(
                FailureReason.TOO_LONG, f"the clip has more than {max_packets} packets"
            )
        is_picture = packet.stream_index == clip.stream.index
        if decode_first and is_picture and packets.first_frame is None:
            packets.first_frame = cast("VideoFrame | None", next(iter(packet.decode()), None))
        if not packet.size:
            continue
        if is_picture:
            packets.add_picture(packet, decoder=decoder)
        else:
            packets.add_sound(packet)
    if not packets.shown:
        raise MediaError(FailureReason.NO_VIDEO, "the video stream contains no frame")
    if decode_first and packets.first_frame is None:
        raise MediaError(FailureReason.NO_VIDEO, _NO_FRAME)
    return packets


@dataclass(frozen=True, slots=True)
class DeclaredTiming:
    """Frame count, frame rates and length that a container's header declares."""

    n_frames: int
    average_rate: Fraction | None
    nominal_rate: Fraction | None
    duration_s: Fraction | None


def read_declared_timing(clip: OpenClip) -> DeclaredTiming:
    """Return the frame count, frame rates and length that the header of `clip` declares."""
    stream = clip.stream
    length = stream.duration * get_stream_time_base(stream) if stream.duration else None
    if length is None and clip.container.duration:
        length = Fraction(clip.container.duration, 1_000_000)
    return DeclaredTiming(
        max(0, stream.frames),
        _get_if_positive(stream.average_rate),
        _get_if_positive(stream.guessed_rate),
        _get_if_positive(length),
    )


def get_stream_time_base(stream: Stream) -> Fraction:
    """Return the seconds per tick of `stream`."""
    time_base = _get_if_positive(stream.time_base)
    if time_base is None:
        raise MediaError(FailureReason.UNDECODABLE, "the stream has no time base")
    return time_base


def _get_if_positive(claim: Fraction | None) -> Fraction | None:
    return claim if claim is not None and claim > 0 else None


def build_frame_timeline(
    packets: PacketTimes, *, time_base: Fraction, declared: DeclaredTiming, first_tick: int | None
) -> FrameTimeline:
    """Build the timeline of a clip from its packet times, without packets before `first_tick`."""
    order = sorted(range(len(packets.shown)), key=packets.shown.__getitem__)
    ticks = tuple(packets.shown[index] for index in order)
    if first_tick is not None:
        ticks = ticks[bisect_left(ticks, first_tick) :]
    if not ticks:
        raise MediaError(FailureReason.UNDECODABLE, "no packet fits the first frame")
    if packets.latest_lasts > 0:
        last = packets.latest_lasts
    elif len(ticks) > 1 and ticks[-1] > ticks[-2]:
        last = ticks[-1] - ticks[-2]
    elif declared.average_rate:
        last = max(1, round(1 / declared.average_rate / time_base))
    else:
        last = 1
    span_s = (ticks[-1] + last - ticks[0]) * time_base
    if max(abs(ticks[0] * time_base), span_s) > MAX_S or len(ticks) > span_s * FASTEST:
        raise MediaError(FailureReason.UNDECODABLE, "the times are out of range")
    return FrameTimeline(
        time_base=time_base,
        ticks=ticks,
        last_ticks=last,
        keys=tuple(
            bisect_left(ticks, tick) for tick in sorted(set(packets.key_ticks)) if tick >= ticks[0]
        ),
        declared_frames=declared.n_frames,
        declared_rate=declared.average_rate or len(ticks) / span_s,
        declared_s=declared.duration_s or span_s,
    )
