"""Synthetic clips."""

from fractions import Fraction

import numpy as np
import pytest

from scenes.ball import SampleScene, read_index
from synthesise import ClipRecipe, encode_scene, synthesise
from unreel.core.errors import InvalidValueError


@pytest.mark.parametrize("container", ["mp4", "mkv", "webm", "gif", "ts"])
def test_the_same_recipe_gives_the_same_bytes(container) -> None:
    recipe = ClipRecipe(container=container, width=178, height=100, n_frames=16, seed=3)
    files = set()
    for size in (10, 1_000_003, 77_777):
        # Memory that others have used must not show in the file.
        np.full(size, 255, np.uint8).tobytes()
        files.add(encode_scene(recipe))
    assert len(files) == 1


def test_another_seed_gives_another_clip() -> None:
    one, other = (synthesise(ClipRecipe(n_frames=2, seed=seed)) for seed in (1, 2))
    assert one != other


def test_a_file_does_not_tell_who_wrote_it() -> None:
    data = synthesise(ClipRecipe(n_frames=8, tone_hz=440))
    assert not any(name in data for name in (b"x264", b"Lavc", b"Lavf", b"libx264"))


@pytest.mark.parametrize("size", [(64, 64), (192, 128), (321, 181), (100, 300)])
def test_every_index_can_be_read_off_its_frame(size) -> None:
    scene = SampleScene(*size, seed=0)
    for index in (0, 1, 2, 1000, 5461, 10922, 16383):
        assert read_index(scene.draw(index)) == index


def test_the_scene_moves_and_is_lit() -> None:
    first, later = (SampleScene(192, 128, 0).draw(index).astype(int) for index in (0, 12))
    assert np.abs(first - later).max() > 80
    assert first.std() > 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"container": "gif", "tone_hz": 440},
        {"container": "webm", "rotation_deg": 90},
        {"n_frames": 3, "instants_s": (Fraction(0),)},
        {"n_frames": 0},
    ],
)
def test_a_recipe_that_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(InvalidValueError):
        ClipRecipe(**wrong)


def test_a_scene_too_small_or_too_long_is_refused() -> None:
    with pytest.raises(InvalidValueError):
        SampleScene(32, 32, 0)
    with pytest.raises(InvalidValueError):
        SampleScene(64, 64, 0).draw(1 << 14)
