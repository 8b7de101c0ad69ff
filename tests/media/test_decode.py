"""The frames that come out are the frames that were planned."""

import io
import zlib
from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np
import pytest

from scenes.ball import SampleScene, read_index
from unreel.core.failure import FailureReason
from unreel.media.decode import DecodedFrame, decode_frames
from unreel.media.messages import MAX_PIXELS
from unreel.media.timeline import read_frame_timeline

GROWING_GAPS = tuple(Fraction(i * i + 3 * i, 100) for i in range(20))


def take(file: io.BytesIO, indices: Sequence[int]) -> list[DecodedFrame]:
    timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
    return list(decode_frames(file, timeline, indices=indices, max_pixels=MAX_PIXELS))


def reference(data: bytes) -> list[tuple[Fraction, int]]:
    """Instant after the first and checksum of every frame of a plain decode."""
    with av.open(io.BytesIO(data)) as container:
        frames = [
            (frame.pts * frame.time_base, zlib.crc32(frame.to_ndarray(format="rgb24").tobytes()))
            for frame in container.decode(video=0)
        ]
    return [(at_s - frames[0][0], checksum) for at_s, checksum in frames]


def seen(frame: DecodedFrame) -> tuple[Fraction, int]:
    return frame.at_s, zlib.crc32(frame.rgb.tobytes())


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"b_frames": 0},
        {"b_frames": 4, "gop": 16},
        {"container": "mkv", "rate": Fraction(30000, 1001)},
        {"container": "webm"},
        {"container": "gif"},
        {"container": "ts", "tone_hz": 440},
        {"rotation_deg": 90},
        {"rotation_deg": 180, "container": "mkv"},
        {"rotation_deg": 270},
        {"width": 130, "height": 66},
    ],
    ids=str,
)
def test_the_picture_itself_says_which_frame_it_is(make, recipe) -> None:
    wanted = [0, 1, 11, 13, 24, 25, 47]
    frames = take(make(**recipe), wanted)
    assert [read_index(frame.rgb) for frame in frames] == wanted
    assert [frame.index for frame in frames] == wanted


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "gif", "ts"])
def test_a_variable_rate_keeps_each_frame_at_its_instant(make, container) -> None:
    file = make(container=container, n_frames=20, instants_s=GROWING_GAPS)
    frames = take(file, range(20))
    assert [read_index(frame.rgb) for frame in frames] == list(range(20))
    assert [frame.at_s for frame in frames] == list(GROWING_GAPS)


@pytest.mark.parametrize(
    ("muxer", "codec", "options"),
    [
        ("avi", "mpeg4", {"bf": "2", "g": "12"}),
        ("avi", "mjpeg", {"pix_fmt": "yuvj420p"}),
        ("mpegts", "mpeg2video", {"bf": "2", "g": "12"}),
        ("matroska", "mpeg2video", {"bf": "2", "g": "12"}),
        ("webm", "libvpx", {"g": "20", "deadline": "realtime", "cpu-used": "8"}),
        ("mp4", "libsvtav1", {"g": "20", "preset": "12"}),
        ("mp4", "libx264", {"x264": "open-gop=1:keyint=12:min-keyint=1:b-adapt=0:scenecut=0"}),
        ("matroska", "libx264", {"x264": "open-gop=1:keyint=12:min-keyint=1:b-adapt=0:scenecut=0"}),
        ("mp4", "libx264", {"x264": "keyint=2:bframes=3:b-adapt=0"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_jumps_give_the_pixels_of_a_plain_decode(encode, muxer, codec, options) -> None:
    file = encode(muxer, codec, **options)
    plain = reference(file.getvalue())
    for wanted in ([59], [30, 31], [5, 14, 26, 41, 58], [0, 11, 12, 13, 23, 24, 25]):
        assert [seen(frame) for frame in take(file, wanted)] == [plain[i] for i in wanted]


def test_a_turned_clip_shows_the_upright_scene(make) -> None:
    upright = SampleScene(192, 128, 0).draw(5).astype(float)
    for turn in (0, 90, 180, 270):
        (frame,) = take(make(rotation_deg=turn), [5])
        assert frame.rgb.shape == (128, 192, 3)
        assert np.abs(frame.rgb - upright).mean() < 6


def test_a_clip_that_ends_early_is_found_out(make, failure_of) -> None:
    longer = read_frame_timeline(make(n_frames=48), max_pixels=MAX_PIXELS)
    decode = decode_frames(make(n_frames=24), longer, indices=[40], max_pixels=MAX_PIXELS)
    assert "stopped before frame 24" in failure_of(list, decode).detail


def test_half_a_file_is_an_error_and_not_fewer_frames(make, failure_of) -> None:
    data = make(container="mp4").getvalue()
    boxes = data.index(b"moov") - 4
    # The index is kept, the second half of the pictures is not.
    start = data.index(b"mdat") + 4
    middle = (start + boxes) // 2
    broken = io.BytesIO(data[:middle] + bytes(boxes - middle) + data[boxes:])
    timeline = read_frame_timeline(broken, max_pixels=MAX_PIXELS)
    assert timeline.n_frames == 48
    decode = decode_frames(broken, timeline, indices=[47], max_pixels=MAX_PIXELS)
    assert failure_of(list, decode).reason is FailureReason.UNDECODABLE


def test_reordered_frames_without_times_are_refused_and_not_guessed(encode, failure_of) -> None:
    file = encode("avi", "libx264", bf="3", b_strategy="0", g="12")
    failure = failure_of(read_frame_timeline, file, max_pixels=MAX_PIXELS)
    assert failure.reason is FailureReason.UNDECODABLE
    assert "out of order" in failure.detail
