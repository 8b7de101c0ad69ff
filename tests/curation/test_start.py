"""A recipe to start with: written for what lies there, never over another, and one that runs anywhere."""

import importlib.util
import json
import tomllib
from pathlib import Path

import pytest

from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.settings import read_environment_settings
from unreel.curation.curation_run import forecast_curation, run_curation
from unreel.curation.recipe import read_curation_recipe
from unreel.curation.recipe_template import (
    describe_recipe_sections,
    find_recipe_sections,
    write_folder_recipe,
    write_sample_curation,
)
from unreel.engine.storage_access import ClipAccessSettings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe of the drawn sample; nobody may change it or its clips."""
    recipe, n_clips = write_sample_curation(tmp_path_factory.mktemp("drawn"))
    assert n_clips == 15
    return recipe


def looked_at(recipe: Path, *changes: str):
    access = ClipAccessSettings(settings=read_environment_settings())
    return forecast_curation(
        read_curation_recipe(recipe, changes), root=recipe.parent, access=access
    )


def test_the_pages_and_the_example_say_what_the_sections_say() -> None:
    spec = importlib.util.spec_from_file_location("m", DOCS / "reference" / "make_curate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = "run python docs/reference/make_curate.py"
    assert module.PAGE.read_text(encoding="utf-8") == module.write_page(), run
    assert module.EXAMPLE.read_text(encoding="utf-8") == module.write_example(), run


def test_every_key_has_a_type_and_a_meaning_and_numbers_that_count_something_a_unit() -> None:
    told = {f"{one.name}.{key.key}": key for one in describe_recipe_sections() for key in one.keys}
    assert [name for name, key in told.items() if not (key.kind and key.meaning)] == []
    assert told["split.shortest_s"].unit == "seconds"
    assert told["normalise.width"].unit == "pixels"
    assert told["freeze.shares"].default == "[8, 1, 1]"
    assert told["source.path"].default is None
    assert told["screen.screens.motion.least"].default == "5.0"


def test_an_unknown_section_names_the_nearest() -> None:
    assert [one.name for one in find_recipe_sections("freeze")] == ["freeze", "freeze.citation"]
    with pytest.raises(UnknownNameError, match="Did you mean 'freeze'"):
        find_recipe_sections("freze")


def test_the_drawn_sample_is_curated_anywhere_and_shows_what_is_left_out(
    sample, curation, quarantine, tmp_path
) -> None:
    values = tomllib.loads(sample.read_text())
    source = values.pop("source")
    job = curation(
        source | {"path": str(sample.parent / source["path"])},
        **(values | {"require_licence": True}),
    )
    state = run_curation(job)
    assert quarantine(job) == {
        "real/again.mp4": "ingest: duplicate",
        "real/still.mp4": "screen: motion",
        "real/whose.mp4": "ingest: no-licence",
    }
    assert sum(state.frozen.clips.values()) == 12


def test_a_check_leaves_out_the_names_that_a_run_leaves_out(sample, curation, tmp_path) -> None:
    film = next(sample.parent.rglob("*.mp4")).read_bytes()
    for number in (1, 2):
        (tmp_path / f"films{number}").mkdir()
        (tmp_path / f"films{number}/a.mp4").write_bytes(film)
    without = {"path": "films1", "label": "real"}
    job = curation([without, without | {"path": "films2", "licence": "CC0"}], require_licence=True)
    checked = forecast_curation(job.recipe, root=tmp_path, access=job.context.access)
    assert [count.left_out for count in checked.sources] == [{"no-licence": 1}, {"rejected": 1}]
    with pytest.raises(InvalidSettingError, match="no clip is left"):
        run_curation(job)
    lines = (job.context.place.path / "quarantine.jsonl").read_text().splitlines()
    assert [json.loads(line)["reason"] for line in lines] == ["no-licence", "rejected"]


def test_a_check_counts_what_is_known_and_opens_nothing(sample, tree) -> None:
    before = tree(sample.parent)
    checked = looked_at(sample)
    assert checked.problems == ()
    (count,) = checked.sources
    assert count.labels == {"real": 8, "generated": 6}
    assert count.left_out == {"no-licence": 1}
    assert "require_licence = false" in count.examples[0]
    assert checked.steps[:2] == ("ingest", "scan")
    assert (checked.n_clips, checked.n_questions) == (14, 0)
    assert set(checked.splits) == {"train", "val", "test"}
    assert tree(sample.parent) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("freeze.shares=[98, 1, 1]", "a split without one of the labels"),
        ("screen.screens.blur={}", "no screen is named 'blur'"),
        ("screen.decisions=none.jsonl", "none.jsonl"),
        ("describe.model=openai/gpt-5", "OPENAI_API_KEY"),
        ('source=[{path="nowhere"}]', "no such file or folder"),
    ],
)
def test_what_could_not_run_is_told_beforehand(sample, change, words, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    checked = looked_at(sample, change)
    assert words in " ".join(checked.problems)


def test_missing_files_and_missing_packages_are_told(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("unreel.curation.curation_run.find_spec", lambda _name: None)
    (tmp_path / "clips.csv").write_text("file,label\na.mp4,real\n")
    recipe = 'name = "x"\n[source]\npath = "clips.csv"\nlicence = "CC0"\n[duplicates]\n[audit]\n'
    (tmp_path / "r.toml").write_text(recipe)
    checked = looked_at(tmp_path / "r.toml")
    assert checked.sources[0].left_out == {"no-file": 1}
    told = " ".join(checked.problems)
    assert "'pdqhash' is not installed" in told
    assert "'rapidocr' is not installed" in told


def test_a_folder_with_sides_needs_its_licence_alone(footage, tmp_path) -> None:
    guess = write_folder_recipe(footage, recipe=tmp_path / "curate.toml")
    (question,) = guess.open_questions
    assert "require_licence = false" in question
    recipe = read_curation_recipe(tmp_path / "curate.toml", ['source=[{path="x", licence="CC0"}]'])
    assert recipe.name == footage.name
    made = read_curation_recipe(tmp_path / "curate.toml")
    assert (tmp_path / made.source[0].path).resolve() == footage.resolve()
    assert str(tmp_path) not in (tmp_path / "curate.toml").read_text()


def test_a_recipe_that_is_there_is_never_replaced(footage, tmp_path) -> None:
    (tmp_path / "curate.toml").write_text("mine")
    with pytest.raises(InvalidSettingError, match="is there already"):
        write_folder_recipe(footage, recipe=tmp_path / "curate.toml")
    assert (tmp_path / "curate.toml").read_text() == "mine"


def test_a_folder_that_holds_something_gets_no_sample(tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").write_text("keep")
    with pytest.raises(InvalidSettingError, match="is there already"):
        write_sample_curation(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["note"]


def test_folders_of_other_names_become_sources_whose_label_is_asked_for(footage, tmp_path) -> None:
    for name in ("phones", "fake"):
        (tmp_path / "films" / name).mkdir(parents=True)
        (tmp_path / "films" / name / "a.mp4").write_bytes(b"")
    guess = write_folder_recipe(tmp_path / "films", recipe=tmp_path / "curate.toml")
    assert [source.get("label") for source in guess.sources] == ["generated", None]
    assert "phones" in guess.open_questions[0]
    assert (tmp_path / "curate.toml").read_text().count("# licence = ") == 2
    assert "the label of a.mp4 is unknown" in looked_at(tmp_path / "curate.toml").problems[0]


def test_nothing_to_curate_is_told_with_the_sample(tmp_path) -> None:
    with pytest.raises(UnreadableSourceError, match="unreel curate init --sample"):
        write_folder_recipe(tmp_path, recipe=tmp_path / "curate.toml")
    assert not (tmp_path / "curate.toml").exists()
