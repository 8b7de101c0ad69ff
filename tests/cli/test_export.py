"""`unreel export` as people type it."""

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


@pytest.mark.skipif(find_spec("lance") is not None, reason="the extra eval is here")
def test_rows_of_a_run_need_the_extra(run, tmp_path: Path) -> None:
    done = run("export", tmp_path, "--to", "jsonl", "--out", "x.jsonl")
    assert done.returncode == 2
    assert "pip install 'unreel[eval]'" in done.stderr
