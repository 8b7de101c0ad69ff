"""Tables of one's own that name files anywhere: refused, unless a person says otherwise, each time."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

import unreel
from unreel.benchmarks.cells import parse_clip_location
from unreel.core.errors import InvalidSettingError

Typed = Callable[..., Any]
COIN = ("--protocol", "reality", "--model", "coin", "--out", "run")


@pytest.fixture
def table(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table in a folder of its own that names its clips by absolute paths and by `..`."""
    films = Path(shutil.copytree(clips.parent, tmp_path / "films"))
    head, *rows = (films / "manifest.csv").read_text().splitlines()
    lines = [f"{films if i % 2 else '../films'}/{row}" for i, row in enumerate(rows)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "clips.csv").write_text("\n".join([head, *lines]))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine" / "clips.csv"


def test_a_run_over_files_outside_is_asked_kept_and_read_when_allowed(
    table: Path, typed: Typed
) -> None:
    refused = typed("eval", table, *COIN)
    assert refused.status == 2
    assert "none of its 8 rows can be used" in refused.err
    assert "--allow-outside" in refused.err
    done = typed("eval", table, *COIN, "--allow-outside", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["outcome"]["answers"]["done"] == 8
    assert json.loads(Path("run", "recipe.json").read_bytes())["allow_outside"] is True
    for command in (
        ("score", "run"),
        ("report", "run", "--out", "page"),
        ("export", "run", "--to", "jsonl", "--out", "rows.jsonl"),
    ):
        asked = typed(*command)
        assert asked.status == 2, command
        assert "--allow-outside: run was started with it" in asked.err
        assert typed(*command, "--allow-outside").status == 0, command
    again = typed("eval", table, *COIN)
    assert again.status == 2
    with pytest.raises(InvalidSettingError, match="was started with it"):
        unreel.open_run("run").score()
    assert unreel.open_run("run", allow_outside=True).score().n_answered == 8


def test_rows_that_were_refused_are_asked_once_they_are_allowed(table: Path, typed: Typed) -> None:
    (table.parent / "c0.mp4").write_bytes(Path("films/c0.mp4").read_bytes())
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], "c0.mp4,real,,g00", *lines[2:]]))
    assert typed("eval", table, *COIN).status == 0
    more = typed("eval", table, *COIN, "--allow-outside", "--json")
    assert more.status == 0, more.err
    assert json.loads(more.out)["outcome"]["answers"]["done"] == 7


def test_a_recipe_cannot_allow_it(table: Path, typed: Typed) -> None:
    recipe = table.with_name("recipe.toml")
    recipe.write_text(f'benchmark = "{table}"\nallow_outside = true\n')
    said = typed("eval", "--recipe", recipe, *COIN)
    assert said.status == 2
    assert "allow_outside: no such setting" in said.err


def test_scores_and_exports_of_such_a_table_are_allowed_too(table: Path, typed: Typed) -> None:
    first = table.read_text().splitlines()[1].partition(",")[0]
    answers = table.with_name("told.jsonl")
    answers.write_text(json.dumps({"name": first, "text": "<answer>1</answer>"}) + "\n")
    scored = ("score", answers, "--benchmark", table, "--protocol", "reality", "--json")
    assert typed(*scored).status == 2
    assert json.loads(typed(*scored, "--allow-outside").out)["scorecard"]["n_answered"] == 1
    task = ("export", table, "--to", "vlmevalkit", "--protocol", "reality", "--out", "task")
    assert typed(*task, "--allow-outside").status == 0


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("/films/../other/c.mp4", "/other/c.mp4"),
        ("../films/./c.mp4", "../films/c.mp4"),
        ("a/../../c.mp4", "../c.mp4"),
        ("../../c.mp4", "../../c.mp4"),
        ("a//c.mp4", "a/c.mp4"),
    ],
)
def test_a_path_that_leads_out_is_made_plain(written: str, read: str) -> None:
    assert parse_clip_location(written, "file", outside=True) == read
