"""Safety is cheap enough to be the default."""

from pathlib import Path

import pytest
from tiny_clips import AVI, GIF, MKV, MP4, TS, WEBM, Recipe, make

from unreel.media.reader import MediaReader, SampledFrames, run_trusted_task
from unreel.media.sandbox import FileSandbox

DECODERS = {
    "h264.mp4": MP4,
    "h264.mkv": MKV,
    "vp9.webm": WEBM,
    "gif.gif": GIF,
    "mpeg2.ts": TS,
    "mpeg4.avi": AVI,
    "hevc.mp4": Recipe(codec="libx265", codec_options=(("x265-params", "log-level=none"),)),
    "vp8.webm": Recipe(container="webm", codec="libvpx"),
    "av1.mp4": Recipe(codec="libsvtav1", frames=40),
    "mjpeg.avi": Recipe(container="avi", codec="mjpeg", pixel_format="yuvj420p"),
}


@pytest.mark.parametrize("name", DECODERS)
def test_both_paths_see_the_same(sandbox: FileSandbox, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(make(DECODERS[name]))
    hardened, trusted = MediaReader(sandbox), MediaReader(run_trusted_task)
    assert hardened.probe(path) == trusted.probe(path)
    here = trusted.frames(path, sampling="uniform-4", encoding="rgb24")
    there = hardened.frames(path, sampling="uniform-4", encoding="rgb24")
    assert isinstance(here, SampledFrames)
    assert isinstance(there, SampledFrames)
    assert [frame.data for frame in there.frames] == [frame.data for frame in here.frames]
