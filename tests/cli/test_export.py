"""`unreel export` as people type it."""

import csv
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A real clip and a generated one of the same scene."""
    lines = ["file,kind,generator,group", "a.mp4,real,,g", "b.mp4,generated,Veo,g"]
    folder = tmp_path / "bench"
    folder.mkdir()
    for number, name in enumerate("ab"):
        (folder / f"{name}.mp4").write_bytes(synthesise(ClipRecipe(n_frames=8, seed=number)))
    (folder / "clips.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "clips.csv"


@pytest.mark.parametrize(
    ("kit", "files"),
    [
        ("lmms-eval", {"clips-reality.yaml", "unreel_task.py"}),
        ("vlmevalkit", {"clips-reality.tsv", "unreel_dataset.py"}),
    ],
)
def test_a_benchmark_becomes_a_task(run, benchmark: Path, tmp_path: Path, kit, files) -> None:
    asked = ("export", benchmark, "--map", "label=kind", "--protocol", "reality")
    done = run(*asked, "--to", kit, "--out", "task", "--sampling", "uniform-2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_questions"] == 2
    written = {path.name for path in (tmp_path / "task").iterdir()}
    assert written == files | {"questions.jsonl", "unreel.json", "frames"}
    again = run(*asked, "--to", kit, "--out", "task")
    assert again.returncode == 2
    assert "not an empty folder" in again.stderr


def test_the_name_and_the_whole_files_can_be_chosen(run, benchmark: Path, tmp_path: Path) -> None:
    done = run(
        *("export", benchmark, "--map", "label=kind", "--protocol", "preference"),
        *("--to", "vlmevalkit", "--out", "task", "--name", "pairs", "--sampling", "whole"),
    )
    assert done.returncode == 0, done.stderr
    with (tmp_path / "task" / "pairs.tsv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file, delimiter="\t")
    assert {row["video_path"], row["video_path_2"]} == {"a.mp4", "b.mp4"}


def test_rows_that_cannot_be_exported_end_with_status_1(run, benchmark: Path) -> None:
    (benchmark.parent / "b.mp4").unlink()
    done = run(
        *("export", benchmark, "--map", "label=kind", "--protocol", "reality"),
        *("--to", "lmms-eval", "--out", "task"),
    )
    assert done.returncode == 1
    assert "1 rows cannot be exported" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--to", "lmms-eval"), "--protocol"),
        (("--to", "lmms-eval", "--protocol", "trace"), "box_space"),
        (("--to", "lmms-eval", "--protocol", "reality", "--sampling", "some-8"), "uniform-N"),
        (("--to", "lmms-eval", "--protocol", "reality", "--max-pixels", "9"), "256 or more"),
        (("--to", "jsonl", "--protocol", "reality"), "--protocol: cannot be used with --to jsonl"),
        (("--to", "excel"), "excel"),
    ],
)
def test_what_cannot_be_exported_is_said(run, benchmark: Path, options, said: str) -> None:
    done = run("export", benchmark, "--map", "label=kind", "--out", "o", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(find_spec("lance") is None, reason="needs the extra eval")
def test_a_run_becomes_rows_and_a_file_is_never_overwritten(
    run, benchmark: Path, tmp_path: Path
) -> None:
    asked = ("eval", benchmark, "--map", "label=kind", "--protocol", "reality", "--model", "coin")
    assert run(*asked, "--trusted", "--out", "r").returncode == 0
    done = run("export", "r", "--to", "jsonl", "--out", "rows.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_rows"] == 2
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["answered", "answered"]
    again = run("export", "r", "--to", "jsonl", "--out", "rows.jsonl")
    assert again.returncode == 2
    assert "exists already" in again.stderr
    wrong = run("export", benchmark.parent, "--to", "parquet", "--out", "x.parquet")
    assert wrong.returncode == 2
    assert "contains no run" in wrong.stderr


@pytest.mark.skipif(find_spec("lance") is not None, reason="the extra eval is here")
def test_rows_of_a_run_need_the_extra(run, tmp_path: Path) -> None:
    done = run("export", tmp_path, "--to", "jsonl", "--out", "x.jsonl")
    assert done.returncode == 2
    assert "pip install 'unreel[eval]'" in done.stderr
