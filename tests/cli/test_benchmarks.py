"""`unreel benchmarks` as people type it."""

import json
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("file,label\na.mp4,0\n", "no usable clip"),
        ("clip_file,kind\na.mp4,fake\n", "--map location=clip_file --map label=kind"),
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
    assert lines[1] == ""
    assert lines[-1] != ""


def test_a_table_alone_has_a_head_and_its_rows_in_a_pipe(run, clip: Path) -> None:
    shown = run("frames", clip, "--sampling", "uniform-2")
    assert shown.stdout.splitlines() == [
        "index\tat_s\tat_us\twidth\theight",
        "7\t0.233567\t233567\t192\t128",
        "22\t0.734067\t734067\t192\t128",
    ]


def test_seconds_stand_beside_microseconds_in_json(run) -> None:
    (clip,) = json.loads(run("review", "--sample", "--json").stdout)["clips"]
    verdict = clip["opinions"][0]["verdict"]
    assert (verdict["start_us"], verdict["start_s"]) == (3_000_000, 3.0)
