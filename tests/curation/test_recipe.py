"""Recipes: defaults below the file below flags, and nothing unknown."""

from fractions import Fraction

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.curation.curation_run import list_recipe_steps
from unreel.curation.recipe import parse_curation_recipe, read_curation_recipe

SOURCE = {"path": "clips", "label": "real"}


def test_an_absent_section_is_a_step_not_taken() -> None:
    assert list_recipe_steps(parse_curation_recipe({"name": "x", "source": SOURCE})) == ["ingest"]
    everything = {"duplicates": {}, "split": {}, "crop": {}, "screen": {}, "normalise": {}}
    taken = list_recipe_steps(parse_curation_recipe({"name": "x", "source": SOURCE} | everything))
    assert taken == ["ingest", "scan", "duplicates", "split", "crop", "screen", "render"]


@pytest.mark.parametrize(
    ("values", "setting", "remedy"),
    [
        ({"sources": []}, "sources", "Did you mean 'source'? Known: name, seed, require_licence"),
        (
            {"describe": {}},
            "describe.model",
            "Write describe.model = ... in the recipe, or type --set",
        ),
        (
            {"split": {"treshold": 0.4}},
            "split.treshold",
            "Did you mean 'threshold'? Known: detector, threshold, shortest_s",
        ),
        (
            {"source": SOURCE | {"lable": "real"}},
            "source.0.lable",
            "Did you mean 'label'? Known: path, name",
        ),
        ({"split": {"threshold": 2}}, "split.threshold", "a value that it takes"),
    ],
)
def test_what_is_unknown_or_impossible_is_named(values, setting, remedy) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        parse_curation_recipe({"name": "x", "source": SOURCE} | values)
    assert caught.value.setting.startswith(setting)
    assert remedy in caught.value.remedy


def test_flags_go_before_the_file(tmp_path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text('name = "x"\n[source]\npath = "clips"\n[normalise]\nwidth = 640\n')
    recipe = read_curation_recipe(
        file, ["normalise.width=320", "normalise.rate=30000/1001", "freeze.shares=[1, 0, 0]"]
    )
    assert recipe.normalise.form.width == 320
    assert recipe.normalise.form.rate == Fraction(30000, 1001)
    assert recipe.freeze.shares == (1, 0, 0)


@pytest.mark.parametrize("change", ["width", "=3", "name.width=3"])
def test_a_flag_that_names_no_key_is_refused(tmp_path, change) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text('name = "x"\n[source]\npath = "clips"\n')
    with pytest.raises(InvalidSettingError):
        read_curation_recipe(file, [change])
