"""Which files are opened, and how the others are refused."""

import io
import random
import struct
import time

import av
import numpy as np
import pytest

from pace import slowness
from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.container import open_clip
from unreel.media.messages import MAX_PIXELS, deliver_task_result
from unreel.media.tasks import TASKS

PLAYLIST = (
    b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n"
)


def giant_gif(side: int) -> bytes:
    screen = b"GIF89a" + struct.pack("<HH", side, side) + b"\x80\x00\x00" + bytes(3) + b"\xff" * 3
    control = b"!\xf9\x04\x00\x0a\x00\x00\x00"
    image = b"," + struct.pack("<HHHH", 0, 0, side, side) + b"\x00\x02\x02\x44\x01\x00;"
    return screen + control + image


def enter(data: bytes, max_pixels: int = MAX_PIXELS) -> str:
    with open_clip(io.BytesIO(data), max_pixels=max_pixels) as clip:
        return clip.format_name


@pytest.mark.parametrize(
    "data",
    [
        PLAYLIST,
        b"ffconcat version 1.0\nfile clip.mp4\n",
        b"\x89PNG\r\n\x1a\n" + bytes(200),
        b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(40),
        b"<svg xmlns='http://www.w3.org/2000/svg'></svg>",
        b"Good morning. " * 100,
    ],
    ids=["playlist", "ffconcat", "png", "wav", "svg", "text"],
)
def test_what_is_no_clip_is_refused_by_its_format(data: bytes, failure_of) -> None:
    assert failure_of(enter, data).reason is FailureReason.FORMAT_REFUSED


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        ({}, "mp4"),
        ({"container": "mkv"}, "matroska"),
        ({"container": "webm"}, "matroska"),
        ({"container": "gif"}, "gif"),
        ({"container": "ts"}, "mpegts"),
    ],
)
def test_every_listed_format_opens(make, recipe, name) -> None:
    assert enter(make(**recipe).getvalue()) == name


def test_a_rare_codec_is_refused_by_name(encode, failure_of) -> None:
    failure = failure_of(enter, encode("avi", "magicyuv", pix_fmt="gbrp").getvalue())
    assert failure.reason is FailureReason.CODEC_REFUSED
    assert "magicyuv" in failure.detail


def test_sixteen_thousand_pixels_square_are_refused_at_once(failure_of) -> None:
    start = time.process_time()
    failure = failure_of(enter, giant_gif(16_000))
    assert failure.reason is FailureReason.TOO_MANY_PIXELS
    assert "16000 x 16000" in failure.detail
    assert time.process_time() - start < slowness()


def test_the_cap_counts_pixels_and_holds_for_every_container(make, failure_of) -> None:
    for container in ("mp4", "mkv", "webm", "gif", "ts"):
        data = make(container=container).getvalue()
        assert failure_of(enter, data, 192 * 128 - 1).reason is FailureReason.TOO_MANY_PIXELS
        assert enter(data, 192 * 128)


def test_a_file_with_sound_alone_has_no_video(failure_of) -> None:
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as output:
        stream = output.add_stream("aac", rate=48_000)
        frame = av.AudioFrame.from_ndarray(
            np.zeros((1, 9_600), np.int16), format="s16", layout="mono"
        )
        frame.sample_rate = 48_000
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    assert failure_of(enter, out.getvalue()).reason is FailureReason.NO_VIDEO


def test_ffmpeg_never_learns_the_name_of_the_file(make, tmp_path) -> None:
    path = tmp_path / "secret-name.mp4"
    path.write_bytes(make().getvalue())
    with path.open("rb") as file, open_clip(file, max_pixels=MAX_PIXELS) as clip:
        assert "secret" not in clip.container.name
        assert not hasattr(clip.container.file, "name")


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "gif", "ts"])
def test_a_damaged_clip_gives_a_result_or_a_media_error_and_nothing_else(make, container) -> None:
    sound = {} if container == "gif" else {"tone_hz": 440}
    whole = make(container=container, n_frames=12, **sound).getvalue()
    rng = random.Random(7)
    request = {"sampling": "uniform-3"}
    outcomes = {"read": 0, "failed": 0}
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 4, 40])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        del data[rng.choice([len(data), rng.randrange(len(data))]) :]
        for task, asked in (("probe", {}), ("frames", request), ("sound", {})):
            try:
                deliver_task_result(TASKS[task](io.BytesIO(bytes(data)), asked), lambda _part: None)
                outcomes["read"] += 1
            except MediaError:
                outcomes["failed"] += 1
    assert min(outcomes.values()) > 0
    assert sum(outcomes.values()) == 180
