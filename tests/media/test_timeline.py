"""When frames are shown, read from packets."""

import io
from dataclasses import replace
from fractions import Fraction

import av
import pytest

from unreel.core.failure import FailureReason
from unreel.media.messages import MAX_PIXELS
from unreel.media.timeline import FrameTimeline, read_frame_timeline

RATE = Fraction(30000, 1001)


def full_decode(data: bytes) -> list[Fraction]:
    with av.open(io.BytesIO(data)) as container:
        return [frame.pts * frame.time_base for frame in container.decode(video=0)]


def instants(timeline: FrameTimeline) -> list[Fraction]:
    return [timeline.presented_s(index) for index in range(timeline.n_frames)]


def cut_before_key(data: bytes, *, key: int, muxer: str) -> io.BytesIO:
    """The packets from key frame number `key` on, copied into a new file."""
    out = io.BytesIO()
    with av.open(io.BytesIO(data)) as source, av.open(out, "w", format=muxer) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        keys = 0
        for packet in source.demux(video=0):
            keys += packet.is_keyframe
            if packet.size and keys > key:
                packet.stream = stream
                target.mux(packet)
    return out


def test_a_constant_rate_gives_exact_instants() -> None:
    timeline = FrameTimeline.at_rate(RATE, n_frames=4)
    assert instants(timeline) == [0, 1 / RATE, 2 / RATE, 3 / RATE]
    assert timeline.duration_s == Fraction(4004, 30000)


def test_instants_count_from_the_first_frame_wherever_the_container_begins() -> None:
    late = FrameTimeline.at_rate(Fraction(10), n_frames=3)
    late = replace(late, ticks=tuple(tick - 70 for tick in late.ticks))
    assert [late.at_s(index) for index in range(3)] == [0, Fraction(1, 10), Fraction(1, 5)]
    assert [late.shown_at(Fraction(n, 20)) for n in range(-1, 7)] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert late.first_at_s == -7


def test_decoding_begins_at_the_last_key_frame_before_the_target() -> None:
    timeline = FrameTimeline(
        time_base=Fraction(1),
        ticks=tuple(range(30)),
        last_ticks=1,
        keys=(2, 12, 24),
        declared_frames=30,
        declared_rate=Fraction(1),
        declared_s=Fraction(30),
    )
    assert [timeline.key_before(i) for i in (0, 2, 11, 12, 29)] == [0, 2, 2, 12, 24]


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "gif", "ts"])
@pytest.mark.parametrize("rate", [Fraction(24), RATE])
def test_packets_and_a_full_decode_agree(make, container, rate) -> None:
    file = make(container=container, rate=rate)
    timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
    assert timeline.n_frames == 48
    assert instants(timeline) == full_decode(file.getvalue())


@pytest.mark.parametrize(
    ("muxer", "codec", "options"),
    [
        ("avi", "mpeg4", {"bf": "2", "g": "12"}),
        ("avi", "mjpeg", {"pix_fmt": "yuvj420p"}),
        ("mpegts", "mpeg2video", {"bf": "2", "g": "12"}),
        ("matroska", "mpeg2video", {"bf": "2", "g": "12"}),
        ("webm", "libvpx", {"g": "20", "deadline": "realtime", "cpu-used": "8"}),
        ("mp4", "mpeg4", {"bf": "2", "g": "12"}),
        ("mp4", "libsvtav1", {"g": "20", "preset": "12"}),
    ],
)
def test_the_rarer_codecs_agree_too(encode, muxer, codec, options) -> None:
    file = encode(muxer, codec, **options)
    timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
    assert timeline.n_frames == 60
    assert instants(timeline) == full_decode(file.getvalue())


OPEN_GROUPS = {"x264": "open-gop=1:keyint=12:min-keyint=1:bframes=3:b-adapt=0:scenecut=0"}


@pytest.mark.parametrize(
    ("codec", "options", "muxer"),
    [
        ("libx264", OPEN_GROUPS, "mp4"),
        ("libx264", OPEN_GROUPS, "matroska"),
        ("mpeg2video", {"bf": "2", "g": "12"}, "mpegts"),
    ],
)
def test_frames_that_lean_on_what_was_cut_away_are_not_counted(
    encode, codec, options, muxer
) -> None:
    whole = encode("matroska", codec, **options)
    file = cut_before_key(whole.getvalue(), key=2, muxer=muxer)
    with av.open(io.BytesIO(file.getvalue())) as container:
        n_packets = sum(1 for packet in container.demux(video=0) if packet.size)
    timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
    assert timeline.n_frames < n_packets
    assert instants(timeline) == full_decode(file.getvalue())


def test_a_hidden_picture_of_vp8_is_not_counted(encode) -> None:
    options = {"g": "60", "deadline": "realtime", "cpu-used": "8"}
    source = encode("webm", "libvpx", **options)
    out = io.BytesIO()
    with av.open(source) as before, av.open(out, "w", format="webm") as after:
        stream = after.add_stream_from_template(before.streams.video[0])
        for place, packet in enumerate(before.demux(video=0)):
            if not packet.size:
                continue
            data = bytearray(bytes(packet))
            if place == 30:
                data[0] &= ~0x10  # the bit that says: show me
            copy = av.Packet(bytes(data))
            copy.pts, copy.dts, copy.time_base = packet.pts, packet.dts, packet.time_base
            copy.is_keyframe, copy.stream = packet.is_keyframe, stream
            after.mux(copy)
    timeline = read_frame_timeline(io.BytesIO(out.getvalue()), max_pixels=MAX_PIXELS)
    assert timeline.n_frames == 59
    assert instants(timeline) == full_decode(out.getvalue())


def test_a_file_without_end_is_left_at_the_cap(make, failure_of) -> None:
    assert read_frame_timeline(make(), max_pixels=MAX_PIXELS, max_packets=49).n_frames == 48
    failure = failure_of(read_frame_timeline, make(), max_pixels=MAX_PIXELS, max_packets=48)
    assert failure.reason is FailureReason.TOO_LONG
    assert "48 packets" in failure.detail
