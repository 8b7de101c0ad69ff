"""`unreel benchmarks` as people type it."""

import json
from pathlib import Path

import pytest

from unreel.benchmarks.opening import Layout


def test_without_a_command_every_layout_is_shown_with_an_example(run) -> None:
    shown = run("benchmarks")
    assert shown.returncode == 0
    assert all(f"{layout}: " in shown.stdout for layout in Layout)
    assert "file,label,creator,split,group" in shown.stdout
    assert "unreel benchmarks check PATH" in shown.stderr
    assert set(json.loads(run("benchmarks", "--json").stdout)) == set(Layout)


def test_check_tells_what_is_understood(run, tmp_path: Path) -> None:
    made = run("benchmarks", "example", "list", "--out", "mine")
    assert made.stdout == "mine/clips.csv\n"
    told = run("benchmarks", "check", "mine/clips.csv")
    assert told.returncode == 0, told.stderr
    for words in ("layout list", "path or URL of the clip", "2 real, 2 generated", "2 pairs"):
        assert words in told.stdout
    document = json.loads(run("benchmarks", "check", "mine/clips.csv", "--json").stdout)
    assert document["layout"] == "list"
    assert document["tables"][0]["read"]["file"] == "location"
    assert len(document["rows"]) == 3


def test_check_ends_with_status_1_when_rows_cannot_be_used(run, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("file,label,genrator\na.mp4,real,\nb.mp4,maybe,\n")
    (tmp_path / "a.mp4").touch()
    told = run("benchmarks", "check", "l.csv")
    assert told.returncode == 1
    assert "label cannot be 'maybe'" in told.stdout
    assert "did you mean generator?" in told.stdout


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("file,label\na.mp4,0\n", "no clip that can be used"),
        ("filename,kind\na.mp4,fake\n", "--map location=filename --map label=kind"),
        ("file;label\na.mp4;fake\n", "Put commas in place of ';'"),
        ("", "no header"),
    ],
)
def test_check_ends_with_status_2_when_nothing_can_be_used(
    run, tmp_path: Path, table: str, words: str
) -> None:
    (tmp_path / "l.csv").write_text(table)
    told = run("benchmarks", "check", "l.csv")
    assert told.returncode == 2
    assert words in told.stderr


def test_what_a_pipe_reads_has_tabs_between_cells_and_no_padding(run) -> None:
    run("benchmarks", "example", "list", "--out", "mine")
    lines = run("benchmarks", "check", "mine/clips.csv").stdout.splitlines()
    assert "file\tlocation\tpath or URL of the clip" in lines
    assert all(line == line.strip() for line in lines)
