"""Single files from a server on loopback: what is here stays, and only what fits the hash becomes the file."""

import hashlib
import random
from collections import deque
from pathlib import Path

import pytest

from hub import SHA, Hub, serve_hub
from reliability.disk import fill, small_disk
from unreel.catalogue.hub import RemoteFile, download_file
from unreel.core.errors import MachineError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory

DATA = random.Random(2).randbytes(2_500_000)


def serve_file(hub: Hub, data: bytes = DATA) -> RemoteFile:
    url = f"{hub.url}/datasets/me/clips/resolve/{SHA}/a/b.bin"
    digest = hashlib.sha256(data).hexdigest()
    return RemoteFile(url=url, path="a/b.bin", size=len(DATA), sha256=digest)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch):
    # The complete check sets HF_HUB_OFFLINE, which huggingface_hub reads when it is imported.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with serve_hub(Hub({"me/clips": {"a/b.bin": DATA}})) as served:
        yield served


def test_a_full_disk_keeps_what_is_here_and_the_next_call_continues(
    hub: Hub, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", megabytes=4) as disk:
        output, ballast = OutputDirectory(disk), fill(disk)
        with ballast.open("r+b") as file:
            file.truncate(3 << 20)
        with pytest.raises(MachineError, match="No space left on device"):
            download_file(serve_file(hub), output)
        (part,) = disk.rglob("*.part")
        n_here = part.stat().st_size
        ballast.unlink()
        changes: list[int] = []
        assert 0 < n_here < len(DATA)
        assert download_file(serve_file(hub), output, on_bytes=changes.append) == (
            len(DATA) - n_here,
            0,
        )
        assert (changes[0], sum(changes)) == (n_here, len(DATA))
        assert (disk / "a" / "b.bin").read_bytes() == DATA


def test_a_complete_file_is_checked_and_not_fetched(hub: Hub, tmp_path: Path) -> None:
    output = OutputDirectory(tmp_path)
    assert download_file(serve_file(hub), output) == (len(DATA), 0)
    hub.sent.clear()
    assert download_file(serve_file(hub), output) == (0, 0)
    assert hub.sent.total() == 0
    (tmp_path / "a" / "b.bin").write_bytes(DATA[::-1])
    with pytest.raises(UnreadableSourceError, match="Delete it to download it again"):
        download_file(serve_file(hub), output)


@pytest.mark.parametrize(
    ("mishaps", "words"),
    [
        (["503"] * 5, "the server answered status 503"),
        (["truncated", "404"], "the hub answered status 404"),
    ],
)
def test_a_server_that_stays_broken_ends_the_download(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mishaps: list[str], words: str
) -> None:
    monkeypatch.setattr("unreel.catalogue.hub.time.sleep", lambda _s: None)
    hub.mishaps = {"a/b.bin": deque(mishaps)}
    with pytest.raises(MachineError, match=words):
        download_file(serve_file(hub), OutputDirectory(tmp_path))
    assert download_file(serve_file(hub), OutputDirectory(tmp_path))[1] == 0
    assert (tmp_path / "a" / "b.bin").read_bytes() == DATA


def test_a_link_in_the_folder_is_not_followed(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").symlink_to(tmp_path)
    with pytest.raises(RuntimeError, match="link"):
        download_file(serve_file(hub), OutputDirectory(tmp_path / "in"))
    assert not (tmp_path / "b.bin").exists()
