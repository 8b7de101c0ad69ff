"""`[[creator]]` of a recipe: what it refuses, what it opens, and what its stable name holds."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipClass, CreatorInput
from unreel.recipes.validation import validate_recipe_sections


def section(**keys: Any) -> CreatorRecipeSection:
    return validate_recipe_sections(
        CreatorRecipeSection, {"name": "Wan 2.2", "kind": "folder"} | keys
    )


def test_a_misspelt_key_is_told_with_the_nearest_of_its_kind() -> None:
    with pytest.raises(InvalidSettingError, match=r"foldr of Wan 2.2: .*Did you mean 'folder'"):
        section(foldr="clips")


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'folder'"):
        section(kind="foldr")


def test_the_usual_setting_is_taken_where_none_is_named() -> None:
    opener = section(folder="clips").opener(settings=EnvironmentSettings())
    assert opener.settings == (CreatorInput.IMAGE_AND_TEXT,)
    assert opener.side is ClipClass.GENERATED
    assert opener.title == "Wan 2.2"


def test_an_opener_travels_to_workers_and_opens_the_same_creator() -> None:
    opener = section(folder="clips").opener(settings=EnvironmentSettings())
    creator = pickle.loads(pickle.dumps(opener)).open()
    assert creator.name == opener.name


def test_a_path_is_from_the_recipe_and_no_part_of_the_name(tmp_path: Path) -> None:
    told = section(folder="clips")
    moved = told.resolve_paths(tmp_path)
    assert moved.model_extra == {"folder": str(tmp_path / "clips")}
    assert moved.stable_name == told.stable_name


def test_another_version_or_title_of_a_folder_is_another_name() -> None:
    names = {
        section(folder="clips").stable_name,
        section(folder="clips", version="2").stable_name,
        section(folder="clips", name="Wan 2.3").stable_name,
        section(folder="clips", name="Wan-2.2").stable_name,
    }
    assert len(names) == 4


def test_clips_that_the_benchmark_holds_are_not_made() -> None:
    told = section(kind="frozen", creator="Sora")
    assert told.held == "Sora"
    assert section(kind="frozen").held == "Wan 2.2"
    assert section(folder="clips").held is None
    with pytest.raises(InvalidSettingError, match="are in the benchmark"):
        told.opener(settings=EnvironmentSettings()).open()


@given(st.text(min_size=1, max_size=300))
def test_whatever_its_title_a_stable_name_is_one_short_line(title: str) -> None:
    try:
        name = section(folder="clips", name=title).stable_name
    except InvalidSettingError:
        return
    assert name.isprintable()
    assert len(name) < 110
    assert "/" not in name
