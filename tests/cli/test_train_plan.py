"""`unreel train plan` and `unreel train export` as people type them."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")  # examples are kept in tables

from training.sets import clip, fake, real, write_set


@pytest.fixture
def root(tmp_path: Path) -> Path:
    entries = [(real(f"r{n}", group=f"g{n}"), clip(n)) for n in range(3)]
    entries += [(fake(f"f{n}", group=f"g{n}"), clip(10 + n)) for n in range(3)]
    return write_set(tmp_path / "set", entries)


def _typed(command: str, root: Path, *more: str) -> list[Any]:
    plain = ("data.layout=video-folder", "holdout={share=0.4, near_duplicates=false}")
    changes = [word for change in plain for word in ("--set", change)]
    return ["train", command, "dtr-qwen2.5-vl-7b", "--data", root, "--trusted", *changes, *more]


def test_a_shipped_recipe_is_planned_without_its_data(run: Any) -> None:
    done = run("train", "plan", "dtr-videollama3-7b", "--price", "2.5", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counted"] == "as the recipe declares them"
    assert told["fits"] is True
    assert 40 / 1.5 < told["plan"]["hours"] * 60 < 40 * 1.5
    assert float(told["plan"]["cost_usd"]) == pytest.approx(
        told["plan"]["hours"] * 8 * 2.5, abs=0.01
    )


def test_a_plan_is_told_with_its_formula_and_what_would_make_it_fit(run: Any) -> None:
    done = run("train", "plan", "dtr-qwen2.5-vl-7b", "--gpu", "rtx4090", "--gpus", "1")
    assert done.returncode == 1
    assert "memory of a device" in done.stdout
    assert "6 x parameters x tokens" in done.stderr
    assert "published: 70 minutes on 8 x H100" in done.stderr
    assert "model.tune=lora" in done.stderr


def test_clips_that_are_here_are_counted_as_they_are(run: Any, root: Path) -> None:
    told = json.loads(run(*_typed("plan", root, "--json")).stdout)
    assert told["counted"] == "as the benchmark holds them"
    assert 2 <= told["plan"]["examples"] <= 5
    assert told["plan"]["mean"]["frames"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--price", "cheap"), "--price: 'cheap' is not a price"),
        (("--set", "model.name=my-model"), "model.name: the size of"),
    ],
)
def test_nonsense_is_told_with_what_to_do(run: Any, words: tuple[str, ...], said: str) -> None:
    done = run("train", "plan", "dtr-qwen2.5-vl-7b", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_recipe_leaves_as_a_folder_for_another_trainer(
    run: Any, root: Path, tmp_path: Path
) -> None:
    done = run(*_typed("export", root, "--to", "llamafactory", "--out", "there", "--json"))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["exported"]
    assert told["n_train"] + told["n_held_out"] == 6
    assert told["sampling"] == "llamafactory-1-max-20"
    there = tmp_path / "there"
    assert {"train.yaml", "dataset_info.json", "unreel-export.json"} <= {
        path.name for path in there.iterdir()
    }
    again = run(*_typed("export", root, "--to", "llamafactory", "--out", "there"))
    assert again.returncode == 2
    assert "not an empty folder" in again.stderr


def test_what_another_trainer_does_otherwise_is_told(run: Any, root: Path) -> None:
    done = run(*_typed("export", root, "--to", "ms-swift", "--out", "there"))
    assert done.returncode == 0, done.stderr
    assert "differences from unreel:" in done.stderr
    assert "swift sft train.json" in done.stderr
