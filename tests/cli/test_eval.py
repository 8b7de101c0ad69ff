"""`unreel eval` as people type it: ask, come back, score again, list."""

import json
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Two real clips, and one of each of two creators."""
    for number, folder in enumerate(("real", "real", "generated/Sora", "generated/Veo")):
        path = tmp_path / "bench" / folder / f"c{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(synthesise(ClipRecipe(n_frames=10, seed=number)))
    return tmp_path / "bench"


def test_flags_go_before_the_recipe_and_unknown_keys_are_refused(
    run, benchmark: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'benchmark = "{benchmark}"\nprotocol = "reality"\nmodel = "coin"\nlimit = 1\n'
        '[[condition]]\nsampling = "paper-8"\n',
        encoding="utf-8",
    )
    done = run("eval", "--recipe", recipe, "--limit", 2, "--nframe", 3, "--out", "r", "--json")
    assert done.returncode == 0, done.stderr
    (score,) = json.loads(done.stdout)["scores"]
    assert score["condition"]["sampling"] == "uniform-3"
    assert score["scorecard"]["n_questions"] == 2
    recipe.write_text("modle = 'coin'\n", encoding="utf-8")
    wrong = run("eval", benchmark, "--protocol", "reality", "--model", "coin", "--recipe", recipe)
    assert wrong.returncode == 2
    assert "modle" in wrong.stderr


def test_failures_end_with_status_1_unless_few_enough(run, benchmark: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    told.write_text('{"clip": "c0.mp4", "text": "<answer>1</answer>"}\n', encoding="utf-8")
    asked = (
        "eval",
        benchmark,
        "--protocol",
        "reality",
        "--model",
        "recorded",
        "--recorded",
        told,
        "--trusted",
    )
    assert run(*asked).returncode == 1
    assert run(*asked, "--fail-on-error", 0.75).returncode == 0
    assert run(*asked, "--fail-on-error", 0.7).returncode == 1


@pytest.mark.parametrize(
    "options",
    [("--nframe", "4", "--fps", "2"), ("--condition", "sampling"), ("--condition", "sound=on")],
)
def test_conditions_that_cannot_be_used_are_refused(run, benchmark: Path, options) -> None:
    done = run("eval", benchmark, "--protocol", "reality", "--model", "coin", *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
