"""Rulings as commands keep, check and mend them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import accuse, ask, entry, lay_out, record, trace
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.run_job import EvalRun

NAMES = ("veo-1", "veo-2", "veo-3")
Type = Callable[..., Any]


@pytest.fixture
def accused(tmp_path: Path) -> EvalRun:
    """A run with three explanations to judge."""
    bench = lay_out(tmp_path / "bench", [entry(name, "Veo", traces=[trace()]) for name in NAMES])
    told = record(tmp_path / "told.jsonl", {name: accuse(why=f"{name} melts") for name in NAMES})
    return ask(tmp_path / "run", bench, protocol="trace", model="recorded", recorded=str(told))


def test_a_score_tells_what_this_call_spent_and_what_all_rulings_took(
    accused: EvalRun, server: Any, typed: Type
) -> None:
    server.text = "0.5"
    told = [
        json.loads(typed("score", accused.place.uri, "--judge", server.model, "--json").out)
        for _ in range(2)
    ]
    nothing = {"n_questions": 0, "n_requests": 0, "input_tokens": 0, "output_tokens": 0}
    nothing |= {"cost_usd": None, "n_uncounted": 0}
    all_three = {"input_tokens": 300, "output_tokens": 30}
    spent = nothing | all_three | {"n_questions": 3, "n_requests": 3}
    tokens = all_three | {"is_estimated": False}
    judge = {"judge": "compatible/tiny", "scored": 3, "unscored": {}, "tokens": tokens}
    assert [one["judges"] for one in told] == [
        [judge | {"spent": spent}],
        [judge | {"spent": nothing}],
    ]
    assert len(server.asked) == 3
    (whole,) = [
        table
        for table in json.loads(typed("runs", "check", accused.place.uri, "--json").out)["parts"]
        if table["name"] == "rulings"
    ]
    assert (whole["content"].partition(",")[0], whole["problem"]) == ("3 rows", "")


def test_a_ruling_that_is_none_is_found_set_aside_and_asked_again(
    accused: EvalRun, server: Any, typed: Type
) -> None:
    server.text = "1"
    run = accused.place.uri
    assert typed("score", run, "--judge", server.model).status == 0
    row, *_ = accused.rulings.rows()
    with build_writer_lock(accused.rulings.place) as lock:
        writer = TableWriter(accused.rulings, lock=lock, observe=lambda _step, _n: None)
        writer.replace([accused.rulings.schema.batch([row | {"score": 0.7}])])
    found = typed("runs", "check", run)
    assert found.status == 1
    assert "neither a score nor a reason why there is none" in found.out
    assert typed("runs", "restore", run).status == 0
    server.asked.clear()
    restored = typed("score", run, "--judge", server.model, "--json")
    assert json.loads(restored.out)["judges"][0]["scored"] == 3
    assert server.asked == []


def test_a_score_is_told_who_else_has_the_run_judged(
    accused: EvalRun, server: Any, typed: Type
) -> None:
    with build_writer_lock(accused.rulings.place):
        refused = typed("score", accused.place.uri, "--judge", server.model)
        assert typed("score", accused.place.uri).status == 0
    assert refused.status == 2
    assert "rulings.lance" in refused.err
    assert "another run writes it" in refused.err
    assert "Wait for it to end" in refused.err
    assert server.asked == []


@pytest.mark.parametrize("model", ["coin", "nobody"])
def test_a_judge_is_a_model_behind_a_server(accused: EvalRun, typed: Type, model: str) -> None:
    refused = typed("score", accused.place.uri, "--judge", model)
    assert refused.status == 2
    assert "provider/name" in refused.err
