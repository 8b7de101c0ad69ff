import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from warm import Warm

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, warm: Warm) -> Run:
    """Runs `unreel` as a person would, in an empty folder."""
    return partial(warm.run, cwd=tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Run:
    """Runs `unreel` in an interpreter of its own, for what one reads only when it starts."""

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        code = "from unreel.cli.main import main; main()"
        typed = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(typed, check=False, capture_output=True, text=True, cwd=tmp_path)

    return command


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A second of film at 30000/1001 frames, with sound."""
    path = tmp_path / "clip.mp4"
    recipe = ClipRecipe(rate=Fraction(30000, 1001), n_frames=30, tone_hz=440)
    path.write_bytes(synthesise(recipe))
    return path
