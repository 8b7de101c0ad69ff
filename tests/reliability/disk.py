"""A small disk of a test's own, which can be full or read-only."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, megabytes=4):
        yield folder


@contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """Mount a small disk over an empty folder."""
    size = f"size={megabytes}m"
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", size, "tmpfs", str(folder)):
        pytest.skip("mounting is not permitted here: run as root to see a full disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def mount(*words: str) -> bool:
    """Whether mounting by these words worked."""
    return subprocess.run(["mount", *words], check=False, capture_output=True).returncode == 0


def fill(disk: Path) -> Path:
    """Take all the room there is."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast
