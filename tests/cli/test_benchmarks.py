"""`unreel benchmarks` as people type it."""

import json
from pathlib import Path

import pytest

from unreel.benchmarks.entry import BenchmarkLayout


def test_without_a_command_every_layout_is_shown_with_an_example(run) -> None:
    shown = run("benchmarks")
    assert shown.returncode == 0
    assert all(f"{layout}: " in shown.stdout for layout in BenchmarkLayout)
    assert "file,label,creator,split,group" in shown.stdout
    assert "unreel benchmarks check PATH" in shown.stderr
    assert set(json.loads(run("benchmarks", "--json").stdout)) == set(BenchmarkLayout)


def test_check_tells_what_is_understood(run, tmp_path: Path) -> None:
    made = run("benchmarks", "example", "list", "--out", "mine")
    assert made.stdout == "mine/clips.csv\n"
    told = run("benchmarks", "check", "mine/clips.csv")
    assert told.returncode == 0, told.stderr
    for words in ("layout list", "path or URL of the clip", "2 real, 2 generated", "2 pairs"):
        assert words in told.stdout
    document = json.loads(run("benchmarks", "check", "mine/clips.csv", "--json").stdout)
    assert document["layout"] == "list"
    assert (document["n_independent"], document["detectable"]) == (2, None)
    assert "2 independent clips are too few" in told.stdout
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


def test_no_line_of_a_review_in_a_pipe_ends_with_blanks(run) -> None:
    lines = run("review", "--sample").stdout.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_strangers_columns_and_cells_cannot_steer_the_terminal(run, tmp_path: Path) -> None:
    head, row = "file,label,creator,\x1b[2J", "a\x1b]0;x\x07.mp4,fake,\x1b[31mVeo,1"
    (tmp_path / "l.csv").write_text(f"{head}\n{row}\nb.mp4,fake,\x1b[31mVeo\u202e,2\n")
    told = run("benchmarks", "check", "l.csv")
    assert told.returncode == 1
    assert not {"\x1b", "\x07", "\u202e"} & {*told.stdout, *told.stderr}


def test_seconds_stand_beside_microseconds_in_json(run) -> None:
    (clip,) = json.loads(run("review", "--sample", "--json").stdout)["clips"]
    verdict = clip["opinions"][0]["verdict"]
    assert (verdict["start_us"], verdict["start_s"]) == (3_000_000, 3.0)
