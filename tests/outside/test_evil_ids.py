"""Ids, names and splits that strangers put into tables and recipes never reach beyond their folder."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

lance = pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pa = pytest.importorskip("pyarrow")

GOOD = "0123456789abcdef" * 4
EVIL = {
    "up": "../../../victim/holiday",
    "up-in-the-midst": "x/../../../../victim/holiday",
    "absolute": "{victim}/holiday",
    "suffix-and-all": "../../../victim/holiday.mp4",
    "hidden": "../../../victim/.ssh/authorized_keys",
    "below": "a/b/c",
    "empty-part": "//victim",
    "dot": ".",
    "two-dots": "..",
    "newline": GOOD[:63] + "\n",
    "newline-after": GOOD + "\n",
    "nul": GOOD[:63] + "\0",
    "upper": GOOD.upper(),
    "short": GOOD[:63],
    "long": GOOD + "0",
    "very-long": "a" * 100_000,
    "escape": "\x1b]0;owned\x07",
    "other-digits": "\u0663" * 64,
    "tilde": "~/victim/holiday",
    "backslash": "..\\..\\victim\\holiday",
    "url": "file:///victim/holiday",
    "glob": "*",
    "null": None,
    "number": 7,
    "bytes": b"../../../victim/holiday",
    "list": ["../../../victim/holiday"],
}
READERS = {
    "report-link": ("report", "run", "--out", "page"),
    "report-copy": ("report", "run", "--out", "page", "--media", "copy"),
    "score": ("score", "run"),
    "export-jsonl": ("export", "run", "--to", "jsonl", "--out", "rows.jsonl"),
    "export-parquet": ("export", "run", "--to", "parquet", "--out", "rows.parquet"),
    "eval": ("eval", "{bench}", "--protocol", "reality", "--model", "always-real", "--out", "run"),
}


def tamper(table: Path, column: str, change: Callable[[Any], Any]) -> None:
    """Write another version of a table, in which every value of `column` is changed."""
    rows = lance.dataset(str(table)).to_table().drop_columns(["seal"])
    changed = pa.array([change(value) for value in rows.column(column).to_pylist()])
    at = rows.schema.get_field_index(column)
    lance.write_dataset(rows.set_column(at, column, changed), str(table), mode="overwrite")


@pytest.mark.parametrize(
    ("evil", "words"),
    [(EVIL["up"], words) for words in READERS.values()]
    + [(evil, READERS["score"]) for evil in EVIL.values()],
)
def test_an_evil_id_of_a_clip_is_refused_by_every_reader(
    evil: object, words: tuple[str, ...], run, bench, world, call
) -> None:
    if isinstance(evil, str):
        evil = evil.replace("{victim}", str(world.victim))
    tamper(run / "clips.lance", "clip", lambda _id: evil)
    said = call(*(word.replace("{bench}", str(bench)) for word in words))
    world.unharmed()
    said.refused()
    assert "make it again" in said.err
    assert said.err.replace("\n", "").isprintable()


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
@pytest.mark.parametrize("evil", ["up"])
def test_an_evil_id_beside_an_answer_is_refused_by_every_reader(
    evil: str, words: tuple[str, ...], run, bench, world, call
) -> None:
    tamper(run / "answers.lance", "clip", lambda _id: EVIL[evil])
    said = call(*(word.replace("{bench}", str(bench)) for word in words))
    world.unharmed()
    said.refused()
    assert "answers.lance" in said.err


@pytest.fixture
def recipe(world, bench) -> Path:
    """A curation with a step that makes files, and one that draws splits."""
    path = world.work / "recipe.toml"
    path.write_text(
        f'name = "set"\n[source]\npath = "{bench}"\nlicence = "CC0"\n[normalise]\nwidth = 64\nheight = 48\n'
        '[freeze]\nversion = "1"\nfirst_frames = true\nlabels = []\n'
    )
    return path


def _set(key: str, value: object) -> Callable[[str], str]:
    return lambda found: json.dumps(json.loads(found) | {key: value})


@pytest.mark.parametrize(
    ("step", "key"),
    [("ingest", "clip"), ("render", "made"), ("first_frame", "sha256"), ("splits", "split")],
)
@pytest.mark.parametrize("evil", ["up", "null"])
def test_an_evil_finding_of_a_step_is_refused_by_the_next(
    step: str, key: str, evil: str, recipe, world, call
) -> None:
    assert call("curate", "run", recipe, "--trusted", "--out", "set").code == 0
    value = EVIL[evil]
    if isinstance(value, str):
        value = value.replace("{victim}", str(world.victim))
    tamper(world.work / "set" / "steps" / f"{step}.lance", "found", _set(key, value))
    said = call("curate", "run", recipe, "--trusted", "--out", "set")
    world.unharmed()
    said.refused()
    assert "make it again" in said.err


def test_the_name_of_a_stored_file_is_not_taken_from_a_table(recipe, world, call) -> None:
    assert call("curate", "run", recipe, "--trusted", "--out", "set").code == 0
    for step in ("render", "first_frame"):
        table = world.work / "set" / "steps" / f"{step}.lance"
        tamper(table, "found", _set("name", "../../victim/holiday.mp4"))
    assert call("curate", "run", recipe, "--trusted", "--out", "set").code == 0
    world.unharmed()


@pytest.mark.parametrize("name", ["..", ".", "../../victim", "{victim}", "", "a" * 300, "x/../.."])
def test_the_name_of_a_recipe_is_one_folder_below_the_curations(
    name: str, recipe, world, call
) -> None:
    mine = world.work / "benchmark" / "README.md"
    mine.parent.mkdir()
    mine.write_text("my own")
    shown = json.dumps(name.replace("{victim}", str(world.victim)))
    recipe.write_text(recipe.read_text().replace('"set"', shown, 1))
    call("curate", "run", recipe, "--trusted")
    world.unharmed()
    assert mine.read_text() == "my own"
    assert {path.name for path in world.work.iterdir()} <= {"recipe.toml", "benchmark", "curations"}
    assert len(list((world.work / "curations").iterdir())) == 1


@pytest.mark.parametrize("model", ["openai/../../../victim", "openai/" + "m" * 300, "openai/.."])
def test_the_name_of_a_model_is_one_folder_below_the_runs(model: str, bench, world, call) -> None:
    asked = ("--protocol", "reality", "--deadline", "0.2", "--trusted", "--max-requests", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        unanswered = f"{model}@http://127.0.0.1:{silent.getsockname()[1]}/v1"
        call("eval", bench, "--model", unanswered, *asked)
    world.unharmed()
    assert [path.name for path in world.work.iterdir()] == ["runs"]
    assert len(list((world.work / "runs").iterdir())) == 1
