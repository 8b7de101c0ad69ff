"""What pipelines are asked for: sizes and lengths that they take, near to those of the real clip."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidSettingError
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.pipeline_families import FAMILIES, fit_frame_count, fit_frame_size
from unreel.recipes.validation import validate_recipe_sections

COMMIT = "0123456789abcdef0123456789abcdef01234567"
families = st.sampled_from(sorted(FAMILIES.values(), key=lambda family: family.from_text))
sides = st.integers(16, 8192)


def section(**keys: Any) -> CreatorRecipeSection:
    named = {"name": "LTX", "kind": "diffusers", "family": "ltx", "model": "Lightricks/LTX-Video"}
    return validate_recipe_sections(CreatorRecipeSection, named | keys)


@given(families, sides, sides)
def test_every_side_is_one_that_the_family_takes(family: Any, width: int, height: int) -> None:
    fitted = fit_frame_size(family, width, height)
    assert all(side >= family.multiple and side % family.multiple == 0 for side in fitted)
    longest = max(width, height) / min(width, height)
    if longest < 4:
        assert fitted[0] * fitted[1] <= 1.3 * family.area


def test_a_real_clips_shape_is_kept() -> None:
    assert fit_frame_size(FAMILIES["wan"], 1920, 1080) == (832, 480)
    assert fit_frame_size(FAMILIES["wan"], 1080, 1920) == (480, 832)
    assert fit_frame_size(FAMILIES["ltx"], 320, 192) == (320, 192)


@given(families, st.integers(0, 10**9), st.fractions(1, 240))
def test_every_length_is_one_that_the_family_takes(
    family: Any, duration_us: int, rate: Fraction
) -> None:
    n_frames = fit_frame_count(family, duration_us, rate)
    assert 1 < n_frames <= family.most_frames
    assert (n_frames - 1) % family.frames_multiple == 0


def test_a_model_of_the_hub_is_named_with_its_commit() -> None:
    told = section(revision=COMMIT)
    assert told.stable_name.startswith("diffusers:Lightricks-LTX-Video-")
    assert told.stable_name != section(revision=COMMIT[::-1]).stable_name
    assert told.beside(Path("recipes")).stable_name == told.stable_name
    with pytest.raises(InvalidSettingError, match="revision"):
        section(revision="main")


def test_a_folder_without_a_pipeline_is_told_when_it_is_needed(tmp_path: Path) -> None:
    told = section(model="weights")
    assert told.stable_name.startswith("diffusers:weights-")
    with pytest.raises(InvalidSettingError, match=r"model_index\.json"):
        told.opener(settings=EnvironmentSettings()).open()
    with pytest.raises(InvalidSettingError, match=r"model_index\.json"):
        told.beside(tmp_path).opener(settings=EnvironmentSettings())


def test_a_pipeline_of_another_family_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "WanPipeline"}')
    opener = section(model=str(tmp_path)).opener(settings=EnvironmentSettings())
    with pytest.raises(InvalidSettingError, match="WanPipeline"):
        opener.open()
    (tmp_path / "model_index.json").write_text("[]")
    with pytest.raises(InvalidSettingError, match="family"):
        section(model=str(tmp_path)).opener(settings=EnvironmentSettings()).open()


@pytest.mark.parametrize("keys", [{"width": 64}, {"width": 50, "height": 64}, {"n_frames": 10}])
def test_frames_that_no_pipeline_of_the_family_makes_are_refused(keys: dict[str, int]) -> None:
    with pytest.raises(InvalidSettingError):
        section(revision=COMMIT, **keys)


def test_a_folder_here_does_not_pass_for_a_commit_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Lightricks" / "LTX-Video").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidSettingError, match="folder here"):
        section(revision=COMMIT).opener(settings=EnvironmentSettings()).open()
