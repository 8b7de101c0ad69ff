"""`unreel train` as people type it."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")  # examples are kept in tables

from browser import Watched
from training.sets import clip, fake, real, write_set


@pytest.fixture
def root(tmp_path: Path) -> Path:
    entries = [(real(f"r{n}", group=f"g{n}"), clip(n)) for n in range(3)]
    entries += [(fake(f"f{n}", group=f"g{n}"), clip(10 + n)) for n in range(3)]
    entries.append((real("<b>broken", location="broken.mp4", group="x"), b"nothing"))
    return write_set(tmp_path / "set", entries)


def typed(root: Path, *more: str) -> list[Any]:
    plain = ("data.layout=video-folder", "holdout={share=0.4, near_duplicates=false}")
    changes = [word for change in plain for word in ("--set", change)]
    return ["train", "examples", "dtr-qwen2.5-vl-7b", "--data", root, "--trusted", *changes, *more]


def test_examples_are_written_as_one_page_that_anybody_can_read(
    run: Any, root: Path, tmp_path: Path, watched: Watched
) -> None:
    done = run(*typed(root, "--out", "shown", "--n", "4", "--json"))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["n_train"] + told["n_held_out"], len(told["examples"])) == (6, 4)
    assert told["left_out"] == {"format-refused": 1}
    assert "rule of the qwen2.5-vl family" in told["view"]
    first = told["examples"][0]
    assert first["side"] == "train"
    assert "The unnatural part is at [" in first["target"]
    assert first["box_space"] == f"model-input {first['width']}x{first['height']}"
    assert first["prompt_tokens"] > 50
    page = watched.open(tmp_path / told["page"])
    assert page.locator("article.lesson").count() == 4
    assert page.locator("article.lesson img").first.get_attribute("width") == str(first["width"])
    assert first["target"] in page.locator("article.lesson").first.inner_text()
    assert watched.violations() == []


def test_data_that_nobody_named_and_unknown_recipes_are_told_with_what_to_do(run: Any) -> None:
    unnamed = run("train", "examples", "dtr-qwen2.5-vl-7b")
    assert unnamed.returncode == 2
    assert "--data PATH" in unnamed.stderr
    unknown = run("train", "examples", "dtr-qwen")
    assert unknown.returncode == 2
    assert "Did you mean" in unknown.stderr


def test_the_shipped_recipes_are_listed_with_their_numbers(run: Any) -> None:
    rows = {row["recipe"]: row for row in json.loads(run("train", "recipes", "--json").stdout)}
    assert rows["dtr-videollama3-7b"]["published"]["overall"] == 70.2
    assert rows["dtr-qwen3-vl-8b"]["published"] == {}


def test_two_runs_are_compared_as_checkpoints_are(run: Any, root: Path) -> None:
    for name in ("always-real", "always-generated"):
        run("eval", root, "--model", name, "--protocol", "reality", "--out", name, "--trusted")
    done = run("train", "compare", "always-real", "always-generated", "--json")
    (found,) = json.loads(done.stdout)["comparisons"]
    assert {each["metric"] for each in found["differences"]} >= {"accuracy"}


def test_a_checkpoint_is_compared_on_a_benchmark_that_must_be_named(
    run: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    taught = {"family": "qwen3-vl", "input": "frames", "box_space": "permille"}
    (folder / "unreel.json").write_text(json.dumps(taught), encoding="utf-8")
    done = run("train", "compare", folder, folder)
    assert done.returncode == 2
    assert "--benchmark" in done.stderr


def test_words_below_train_are_found_by_the_nearest_and_load_nothing_heavy(run: Any) -> None:
    assert "Did you mean 'examples'?" in run("train", "exampels").stderr
    shown = run("train", "--help")
    assert shown.returncode == 0
    assert "examples" in shown.stdout
