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


def test_a_run_freezes_a_benchmark_and_prints_where(run, recipe, tmp_path) -> None:
    done = run("curate", "run", recipe, "--trusted")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert folder == tmp_path / "curations" / "my-set" / "benchmark"
    assert (folder / "checksums.sha256").is_file()
    assert "frozen: " in done.stderr
    again = run("curate", "diff", folder, folder)
    assert again.returncode == 0
    assert again.stdout == ""
    assert "4 clips are the same, 0 differences" in again.stderr


@pytest.mark.slow
def test_a_store_is_read_and_written_as_a_folder_is(run, recipe, tmp_path, s3, monkeypatch) -> None:
    monkeypatch.setenv("UNREEL_S3_ENDPOINT", s3.options["aws_endpoint"])
    monkeypatch.setenv("UNREEL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options["aws_secret_access_key"])
    films, work = s3 / "curate" / "films", s3 / "curate" / "work"
    for path in (tmp_path / "films").rglob("*.mp4"):
        films.objects().put(path.relative_to(tmp_path / "films").as_posix(), path)
    forms = ("--set", "normalise.width=48", "--set", "normalise.height=32", "--trusted")
    here = run("curate", "run", recipe, *forms, "--out", "work")
    assert here.returncode == 0, here.stderr
    stored = ("--set", f'source.path="{films.uri}"', "--out", work.uri)
    for _ in range(2):  # the second time nothing is left to do
        there = run("curate", "run", recipe, *forms, *stored)
        assert there.returncode == 0, there.stderr
        assert there.stdout.strip() == f"{work.uri}/benchmark"
    media = {path.name for path in (tmp_path / "work/benchmark").rglob("*.mp4")}
    listed = (work / "benchmark").objects().list().collect()
    assert {Path(one["path"]).name for one in listed if one["path"].endswith("mp4")} == media


def test_a_step_alone_tells_what_is_left_out_and_fails_for_broken_files(
    run, recipe, tmp_path
) -> None:
    (tmp_path / "films/real/bad.mp4").write_text("no video")
    done = run("curate", "step", "ingest", recipe, "--trusted", "--out", "work", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["steps"] == ["ingest"]
    assert told["clips"] == 4
    assert told["left_out"] == {"ingest: format-refused": 1}
    assert told["frozen"] is None


def test_a_flag_changes_the_recipe_and_a_wrong_one_is_refused(run, recipe) -> None:
    done = run("curate", "run", recipe, "--trusted", "--json", "--set", "freeze.shares=[1, 0, 0]")
    assert json.loads(done.stdout)["frozen"]["clips"] == {"train": 4, "val": 0, "test": 0}
    wrong = run("curate", "run", recipe, "--set", "freeze.share=3")
    assert wrong.returncode == 2
    assert "Known: version, shares" in wrong.stderr


def test_a_difference_is_data_on_stdout(run, recipe, tmp_path) -> None:
    run("curate", "run", recipe, "--trusted", "--out", "one", "--set", "freeze.shares=[1, 0, 0]")
    (tmp_path / "films/real/0.mp4").unlink()
    run("curate", "run", recipe, "--trusted", "--out", "two", "--set", "freeze.shares=[1, 0, 0]")
    done = run("curate", "diff", "one/benchmark", "two/benchmark", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["removed"] == ["real/0.mp4"]
    assert told["changed"] == []


def test_a_few_clips_cannot_be_audited_and_nothing_leaks_by_that(run, recipe, tmp_path) -> None:
    done = run("curate", "audit", tmp_path / "films", "--no-texts", "--trusted", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finding"] == "inconclusive"


def test_a_trace_is_put_into_a_clip_and_its_truth_is_printed(run, recipe, tmp_path) -> None:
    clip = tmp_path / "plain.mp4"
    clip.write_bytes(synthesise(ClipRecipe(width=192, height=128, n_frames=48, seed=3)))
    done = run("curate", "inject", clip, "--category", "sudden-blurring", "--trusted", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (tmp_path / told["file"]).is_file()
    assert told["trace"]["categories"] == ["sudden-blurring"]
    assert told["trace"]["explanation"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the drawn sample."""
    from unreel.curation.recipe_template import write_sample_curation

    folder = tmp_path_factory.mktemp("drawn")
    write_sample_curation(folder)
    return folder


def test_the_sample_goes_all_the_way_to_a_folder_for_a_hub(run, drawn, tmp_path) -> None:
    recipe = drawn / "curate.toml"
    looked = run("curate", "check", recipe)
    assert looked.returncode == 0, looked.stderr
    assert "1 no-licence" in looked.stdout
    assert "test: " in looked.stdout
    done = run("curate", "run", recipe, "--out", "work", "--trusted")
    assert done.returncode == 0, done.stderr
    assert "require_licence = false" in done.stderr
    assert "unreel curate sheet" in done.stderr
    sheet = run("curate", "sheet", "work", "--trusted")
    assert sheet.returncode == 0, sheet.stderr
    assert Path(sheet.stdout.strip()) == tmp_path / "work" / "contact-sheet.html"
    assert "12 clips frozen, 3 excluded" in sheet.stderr
    assert "3 of them without a picture" in sheet.stderr  # they lie outside this folder
    hub = run("curate", "publish", "work", "--repo", "lab/drawn")
    assert hub.returncode == 0, hub.stderr
    assert hub.stdout.splitlines()[-1].startswith("hf upload lab/drawn ")
    assert "missing: [freeze.citation] names no authors" in hub.stderr
    again = run("curate", "publish", "work")
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_a_check_that_could_not_run_is_status_two_and_says_so_in_json(run, drawn) -> None:
    done = run(
        "curate", "check", drawn / "curate.toml", "--set", "freeze.shares=[98,1,1]", "--json"
    )
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert told["can_run"] is False
    assert "a split without one of the labels" in told["problems"][0]


def test_a_recipe_is_started_for_a_folder_and_never_replaced(run, recipe, tmp_path) -> None:
    done = run("curate", "init", "films", "--out", "mine.toml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "mine.toml"
    assert "unreel curate check mine.toml" in done.stderr
    looked = run("curate", "check", "mine.toml")
    assert looked.returncode == 2
    assert "source.licence" in looked.stderr
    again = run("curate", "init", "films", "--out", "mine.toml")
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_settings_are_listed_and_a_wrong_section_names_the_nearest(run) -> None:
    told = run("curate", "settings", "split")
    assert "shortest_s" in told.stdout
    assert "seconds" in told.stdout
    wrong = run("curate", "settings", "splits")
    assert wrong.returncode == 2
    assert "Did you mean 'split'" in wrong.stderr
