"""A file that was cut off is called incomplete, with the seconds that can be read."""

import io
from pathlib import Path

import av
import pytest

from footage import film, write_clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.media.access import open_media_reader
from unreel.media.tasks import is_cut_off


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A clip of 2 s whose index is at its start."""
    path = tmp_path_factory.mktemp("fast") / "fast.mp4"
    source = io.BytesIO(write_clip(film(3, n_frames=60, width=320, height=240), rate=30))
    with av.open(source) as read, av.open(path, "w", options={"movflags": "faststart"}) as copy:
        stream = copy.add_stream_from_template(read.streams.video[0])
        for packet in read.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    return path.read_bytes()


@pytest.mark.parametrize("trusted", [True, False])
def test_the_readable_seconds_are_told(fast: bytes, tmp_path: Path, *, trusted: bool) -> None:
    path = tmp_path / "half.mp4"
    path.write_bytes(fast[: len(fast) * 6 // 10])
    with open_media_reader(EnvironmentSettings(), trusted=trusted) as reader:
        found = reader.frames(path, sampling="uniform-8")
        whole = tmp_path / "whole.mp4"
        whole.write_bytes(fast)
        assert not isinstance(reader.frames(whole, sampling="uniform-8"), Failure)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.UNDECODABLE
    beginning, _, seconds = found.detail.partition(" s can be read")[0].rpartition(" ")
    assert beginning == "the file is incomplete:"
    assert 0.5 < float(seconds) < 1.5


def test_a_file_without_its_index_is_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "lost.mp4"
    path.write_bytes(write_clip(film(3, n_frames=24, width=128, height=96))[:5000])
    with open_media_reader(EnvironmentSettings(), trusted=False) as reader:
        found = reader.probe(path)
    assert isinstance(found, Failure)
    assert found.detail == "the file is incomplete: none of it can be read"


@pytest.mark.parametrize(
    "data", [b"", b"ftyp", b"\0\0\0\x08ftyp", b"\0\0\0\0ftyp", b"\x1aE\xdf\xa3" * 9]
)
def test_other_files_are_not_called_incomplete(data: bytes) -> None:
    assert not is_cut_off(io.BytesIO(data))
