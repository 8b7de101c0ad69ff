import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from unreel.media.synthesise import ClipRecipe, synthesise

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `unreel` as a person would, in an empty folder."""

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                sys.executable,
                "-c",
                "from unreel.cli.main import main; main()",
                *map(str, arguments),
            ],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    return command


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A second of film at 30000/1001 frames, with sound."""
    path = tmp_path / "clip.mp4"
    recipe = ClipRecipe(rate=Fraction(30000, 1001), n_frames=30, tone_hz=440)
    path.write_bytes(synthesise(recipe))
    return path
