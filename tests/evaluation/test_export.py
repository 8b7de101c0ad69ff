"""A run as rows for other tools."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.core.errors import UnreadableSourceError
from unreel.evaluation.export import COLUMNS, export_run, iter_question_rows
from unreel.evaluation.run_job import evaluate
from unreel.report.clips.clip_browser import grade_answer
from unreel.report.clips.clip_files import FAILED, RIGHT, UNREADABLE, WRONG
from unreel.report.entrants import read_report_entrants


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_question_is_a_row_with_its_truth_answer_and_cost(start, server, tmp_path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[models."compatible/tiny"]\ninput_usd_per_million = 1\noutput_usd_per_million = 10\n'
    )
    conditions = [{}, {"sampling": "uniform-2", "prompt": "direct"}]
    run = start(
        model=server.model, condition=conditions, prices=str(prices), limit=3, choice="first"
    )
    evaluate(run)
    rows = list(iter_question_rows(run))
    assert Counter(row["prompt"] for row in rows) == {"paper": 3, "direct": 3}
    assert all(list(row) == list(COLUMNS) for row in rows)
    assert [(row["label"], row["creator"]) for row in rows[::2]] == [
        ("real", None),
        ("real", None),
        ("generated", "Sora"),
    ]
    third = [row for row in rows if row["name"] == "c2.mp4"]
    assert [row["truth"] for row in third] == [[{"creator": "Sora", "setting": ""}]] * 2
    assert {row["verdict"]["label"] for row in rows} == {"generated"}
    assert {row["text"] for row in rows} == {"<answer>0</answer>"}
    assert {row["status"] for row in rows} == {"answered"}
    assert {(row["input_tokens"], row["output_tokens"]) for row in rows} == {(100, 10)}
    assert {row["cost_usd"] for row in rows} == {0.0002}
    assert {row["key"] for row in rows} == {row["key"] for row in run.answers.rows()}


def test_what_failed_or_was_not_put_is_a_row_too(start, clips: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clips.parent, tmp_path / "broken")
    (folder / "c0.mp4").write_bytes(b"no video at all")
    told = tmp_path / "told.jsonl"
    told.write_text('{"clip": "c1.mp4", "text": "who knows"}\n', encoding="utf-8")
    settings = {
        "model": "recorded",
        "recorded": str(told),
        "benchmark": folder / "manifest.csv",
        "limit": 3,
        "choice": "first",
    }
    evaluate(start(**settings))
    # The same run with one condition more, which was not asked yet.
    wider = start(**settings, condition=[{}, {"sampling": "uniform-2"}])
    rows = {(row["name"], row["sampling"]): row for row in iter_question_rows(wider)}
    assert {key: row["status"] for key, row in rows.items()} == {
        ("c0.mp4", "uniform-8"): "failed",
        ("c0.mp4", "uniform-2"): "failed",
        ("c1.mp4", "uniform-8"): "answered",
        ("c1.mp4", "uniform-2"): "not-asked",
        ("c2.mp4", "uniform-8"): "failed",
        ("c2.mp4", "uniform-2"): "not-asked",
    }
    assert rows["c0.mp4", "uniform-8"]["failure"] == "format-refused"
    assert rows["c1.mp4", "uniform-8"]["verdict"]["label"]["reason"] == "missing"
    assert rows["c2.mp4", "uniform-8"]["failure"] == "not-recorded"


def test_parquet_and_jsonl_hold_the_same(start, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run = start()
    evaluate(run)
    assert export_run(run, tmp_path / "out" / "a.jsonl", form="jsonl") == 8
    assert export_run(run, tmp_path / "out" / "a.parquet", form="parquet") == 8
    flat = pq.read_table(tmp_path / "out" / "a.parquet").to_pylist()
    for row in flat:
        row["truth"], row["verdict"] = json.loads(row["truth"]), json.loads(row["verdict"])
    assert flat == read_jsonl(tmp_path / "out" / "a.jsonl")


@pytest.mark.parametrize("protocol", ["reality", "trace", "realism", "preference"])
def test_correct_is_what_the_report_says(start, rated: Path, tmp_path: Path, protocol: str) -> None:
    run = start(protocol=protocol, benchmark=rated)
    evaluate(run)
    told = {RIGHT: True, WRONG: False, UNREADABLE: None, FAILED: None}
    (entrant,) = read_report_entrants(run)
    shown = sorted((item.key, told[grade_answer(item)]) for item in entrant.items)
    rows = list(iter_question_rows(run))
    keys = ["+".join(filter(None, (row["clip"], row["second"]))) for row in rows]
    assert sorted(zip(keys, (row["correct"] for row in rows), strict=True)) == shown
    assert {row["correct"] for row in rows} <= {True, False}


@pytest.fixture
def rated(clips: Path, tmp_path: Path) -> Path:
    """The clips with a realism score each."""
    folder = shutil.copytree(clips.parent, tmp_path / "rated")
    head, *lines = (folder / "manifest.csv").read_text().splitlines()
    scored = [f"{line},{1 + number % 5}" for number, line in enumerate(lines)]
    (folder / "manifest.csv").write_text("\n".join([f"{head},score", *scored]))
    return folder / "manifest.csv"


def test_a_file_that_exists_is_kept_and_a_broken_export_leaves_none(start, tmp_path: Path) -> None:
    run = start(limit=1)
    evaluate(run)
    kept = tmp_path / "kept.jsonl"
    kept.write_text("mine", encoding="utf-8")
    with pytest.raises(UnreadableSourceError, match="exists already"):
        export_run(run, kept, form="jsonl")
    assert kept.read_text(encoding="utf-8") == "mine"
    gone = start(limit=1, benchmark=tmp_path / "nowhere.csv")
    with pytest.raises(UnreadableSourceError, match="no such file"):
        export_run(gone, tmp_path / "part.jsonl", form="jsonl")
    assert not list(tmp_path.glob("*part*"))
