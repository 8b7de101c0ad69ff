"""The quickstart: its short form reaches the last line, and its recipes can be read."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from studio import _BESIDE

FOLDER = Path(__file__).parents[2] / "examples" / "quickstart"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_short_form_ends_with_its_table_of_times(tmp_path: Path) -> None:
    for package in ("evalica", "fastapi", "pdqhash", "sqlalchemy", "trl"):
        pytest.importorskip(package, reason="needs annotate, arena, curate, reward and train")
    studio = str(_BESIDE) if _BESIDE.exists() else ""
    command = [sys.executable, str(FOLDER / "run.py"), "--short", "--out", "cycle"]
    done = subprocess.run(
        [*command, "--label-studio", studio],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "seconds  command" in done.stdout
    assert (tmp_path / "cycle" / "report" / "index.html").exists()
    assert (tmp_path / "cycle" / "rewards.jsonl").read_text().count("\n") == 2
    assert ("NOT ANNOTATED" in done.stdout) is not bool(studio)


def test_its_recipes_are_accepted() -> None:
    pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
    from unreel.training.recipe import validate_train_recipe

    recipe = validate_train_recipe(tomllib.loads((FOLDER / "train.toml").read_text()))
    assert [data.protocol for data in recipe.data] == ["reality", "trace"]
