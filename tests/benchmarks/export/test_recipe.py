import json
from pathlib import Path

import pytest

from unreel.benchmarks.export.exported_question import (
    RECIPE_FILE,
    BenchmarkExportRecipe,
    load_export_recipe,
    save_export_recipe,
)
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnknownNameError,
    UnreadableSourceError,
)

TRACE = BenchmarkExportRecipe(
    name="t", protocol="trace", box_space="model-input 448x252", sampling="fps-2", seed=7
)


def test_a_recipe_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    save_export_recipe(TRACE, tmp_path, media=tmp_path / "clips")
    recipe, media = load_export_recipe(tmp_path)
    assert recipe == TRACE
    assert media == (tmp_path / "clips").resolve()


def test_unknown_words_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="reality"):
        BenchmarkExportRecipe(name="t", protocol="realty")
    with pytest.raises(UnknownNameError, match="direct"):
        BenchmarkExportRecipe(name="t", protocol="reality", prompt="dirct")
    with pytest.raises(InvalidValueError, match="box space"):
        BenchmarkExportRecipe(name="t", protocol="trace", box_space="percent")
    with pytest.raises(InvalidSettingError, match="letters"):
        BenchmarkExportRecipe(name="../t", protocol="reality")


def test_an_export_of_another_version_of_the_instrument_is_refused(tmp_path: Path) -> None:
    save_export_recipe(TRACE, tmp_path, media=tmp_path)
    path = tmp_path / RECIPE_FILE
    saved = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(saved | {"instrument": "trace@0"}), encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match=r"trace@0.*again"):
        load_export_recipe(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"recipe": {"name": "x"}}'])
def test_a_folder_without_a_recipe_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / RECIPE_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match="not a recipe"):
        load_export_recipe(tmp_path)
