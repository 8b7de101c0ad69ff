from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from scripted import ScriptedReviewer
from synthesise import ClipRecipe, synthesise


@pytest.fixture(scope="session")
def clip_bytes() -> Callable[[int], bytes]:
    """Small clips of one second, by seed."""
    made: dict[int, bytes] = {}

    def make(seed: int = 0) -> bytes:
        if seed not in made:
            made[seed] = synthesise(ClipRecipe(n_frames=8, rate=Fraction(8), seed=seed))
        return made[seed]

    return make


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory, clip_bytes: Callable[[int], bytes]) -> Path:
    path = tmp_path_factory.mktemp("clips") / "a.mp4"
    path.write_bytes(clip_bytes(0))
    return path


@pytest.fixture
def scripted() -> ScriptedReviewer:
    return ScriptedReviewer()
