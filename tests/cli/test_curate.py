"""`unreel curate` as a person types it."""

import json
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

RECIPE = """
name = "my set"
[source]
path = "films"
licence = "CC0"
[freeze]
version = "1.0"
shares = [1, 0, 1]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    for number, side in enumerate(("real", "real", "generated/Veo", "generated/Sora")):
        path = tmp_path / "films" / side / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(synthesise(ClipRecipe(width=96, height=64, n_frames=24, seed=number)))
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path / "recipe.toml"


def test_a_flag_changes_the_recipe_and_a_wrong_one_is_refused(run, recipe) -> None:
    done = run("curate", "run", recipe, "--trusted", "--json", "--set", "freeze.shares=[1, 0, 0]")
    assert json.loads(done.stdout)["frozen"]["clips"] == {"train": 4, "val": 0, "test": 0}
    wrong = run("curate", "run", recipe, "--set", "freeze.share=3")
    assert wrong.returncode == 2
    assert "Known: version, shares" in wrong.stderr


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the drawn sample."""
    from unreel.curation.recipe_template import write_sample_curation

    folder = tmp_path_factory.mktemp("drawn")
    write_sample_curation(folder)
    return folder


def test_a_check_that_could_not_run_is_status_two_and_says_so_in_json(run, drawn) -> None:
    done = run(
        "curate", "check", drawn / "curate.toml", "--set", "freeze.shares=[98,1,1]", "--json"
    )
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert told["can_run"] is False
    assert "a split without one of the labels" in told["problems"][0]


def test_settings_are_listed_and_a_wrong_section_names_the_nearest(run) -> None:
    told = run("curate", "settings", "split")
    assert "shortest_s" in told.stdout
    assert "seconds" in told.stdout
    wrong = run("curate", "settings", "splits")
    assert wrong.returncode == 2
    assert "Did you mean 'split'" in wrong.stderr
