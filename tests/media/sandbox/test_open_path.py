"""Only regular files are opened, and nothing else makes the caller wait."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from unreel.core.failure import Failure, FailureReason
from unreel.media.sandbox import FileSandbox
from unreel.media.sandbox.file_sandbox import open_regular_file


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "clip.mp4")
    return folder / "clip.mp4"


def _socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "clip.mp4"))
    return folder / "clip.mp4"


def _link_to(target: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "real.mp4").write_bytes(b"real")
        (folder / "clip.mp4").symlink_to(target)
        return folder / "clip.mp4"

    return make


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a FIFO": (_fifo, "a FIFO"),
    "a socket": (_socket, "a socket"),
    "a folder": (lambda folder: folder, "a directory"),
    "an endless device": (lambda _: Path("/dev/zero"), "a character device"),
    "a terminal": (lambda _: Path("/dev/tty"), "a character device"),
    "a link to a file": (_link_to("real.mp4"), "a symbolic link"),
    "a link to a device": (_link_to("/dev/zero"), "a symbolic link"),
    "a link to nothing": (_link_to("nowhere"), "a symbolic link"),
    "a link to itself": (_link_to("clip.mp4"), "a symbolic link"),
    "nothing": (lambda folder: folder / "absent.mp4", "No such file"),
    "a name that cannot be": (lambda _: Path("a\0b"), "null"),
    "a name that is too long": (lambda folder: folder / ("x" * 5000), "too long"),
    "a file used as a folder": (lambda _: Path("/etc/passwd/clip.mp4"), "Not a directory"),
    "an URL": (lambda _: Path("http://127.0.0.1/clip.mp4"), "No such file"),
    "a list of files": (lambda _: Path("concat:/etc/passwd|/etc/group"), "No such file"),
    "a part of a file": (lambda _: Path("subfile,,start,0,end,9,,:/etc/passwd"), "No such file"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_without_waiting(hostile: FileSandbox, tmp_path: Path, kind: str) -> None:
    make, said = REFUSED[kind]
    result = hostile("echo", make(tmp_path), {})
    assert isinstance(result, Failure)
    assert result.reason is FailureReason.NOT_A_FILE
    assert said in result.detail


def test_a_fifo_that_takes_the_place_of_a_checked_file_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, honest = tmp_path / "clip.mp4", tmp_path / "honest.mp4"
    honest.write_bytes(b"x")
    os.mkfifo(path)
    monkeypatch.setattr(Path, "lstat", lambda _: os.lstat(honest))
    result = open_regular_file(path)
    assert isinstance(result, Failure)
    assert result.detail == "it is a FIFO"


def test_refused_paths_leave_no_descriptor_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    path = _fifo(tmp_path)
    for _ in range(10):
        open_regular_file(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_link_that_takes_the_place_of_a_checked_file_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, honest = tmp_path / "clip.mp4", tmp_path / "honest.mp4"
    honest.write_bytes(b"x")
    path.symlink_to(honest)
    monkeypatch.setattr(Path, "lstat", lambda _: os.lstat(honest))
    result = open_regular_file(path)
    assert isinstance(result, Failure)
    assert result.reason is FailureReason.NOT_A_FILE
