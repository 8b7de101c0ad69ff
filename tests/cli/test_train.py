"""`unreel train` as people type it."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance")  # examples are kept in tables


def test_data_that_nobody_named_and_unknown_recipes_are_told_with_what_to_do(run: Any) -> None:
    unnamed = run("train", "examples", "dtr-qwen2.5-vl-7b")
    assert unnamed.returncode == 2
    assert "--data PATH" in unnamed.stderr
    unknown = run("train", "examples", "dtr-qwen")
    assert unknown.returncode == 2
    assert "Did you mean" in unknown.stderr


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
