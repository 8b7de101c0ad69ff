"""An eval stores what the model answered, character by character, and a failure without a score."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.asking.answer_table import ANSWERS
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.scoring import score_run

LONG = "".join(f"{number:06d} " for number in range(5_000)) + "é 手\n<answer>1</answer> \n"
"""A text of 35,000 characters in which no two parts are equal; it ends with white space."""


@pytest.mark.parametrize("text", ["<answer>0</answer>", LONG], ids=["short", "long"])
def test_an_answer_is_stored_character_by_character(
    start: Callable[..., Any], server: Any, text: str
) -> None:
    server.text = text
    run = start(model=server.model, limit=1)
    evaluate(run)
    assert [row["text"] for row in run.answers.rows()] == [text]


def test_a_failed_request_is_stored_with_its_reason_and_without_an_answer(
    start: Callable[..., Any], server: Any
) -> None:
    server.status = 400
    run = start(model=server.model, limit=1)
    evaluate(run)
    (row,) = run.answers.rows()
    assert row["failure_reason"] is not None
    assert row["text"] is None


@pytest.fixture
def run(start: Callable[..., Any], server: Any) -> EvalRun:
    """A run with one long answer."""
    server.text = LONG
    asked: EvalRun = start(model=server.model, limit=1)
    evaluate(asked)
    return asked


def rewrite(run: EvalRun, **changes: Any) -> EvalRun:
    """Store the only answer again with changed values and the seal that belongs to them."""
    (row,) = run.answers.rows()
    with build_writer_lock(run.answers.place) as lock:
        writer = TableWriter(run.answers, lock=lock, observe=lambda _step, _rows: None)
        writer.replace([ANSWERS.batch([row | changes])])
    return replace(run)


@pytest.mark.parametrize("text", [LONG.replace("002500", "002501", 1), LONG.rstrip()])
def test_a_text_that_is_not_the_received_reply_counts_as_failed(
    run: EvalRun, typed: Callable[..., Any], text: str
) -> None:
    (score,) = score_run(rewrite(run, text=text))
    assert score.scorecard.failures == {"unstated": 1}
    assert score.scorecard.n_answered == 0
    check = typed("runs", "check", run.place.uri)
    assert check.status == 1
    assert "the text differs from the received reply" in check.out + check.err
    typed("runs", "restore", run.place.uri)
    restored = LanceTable(run.answers.place, ANSWERS)
    assert [row["text"] for row in restored.rows()] == [LONG], "the version before is still there"


def test_a_table_of_an_earlier_release_is_read_and_widened(
    start: Callable[..., Any], server: Any
) -> None:
    run = start(model=server.model, limit=1, choice="first")
    evaluate(run)
    rewrite(run, reply_digest=None)
    table = LanceTable(run.answers.place, ANSWERS)
    table.open().drop_columns(["answered_by", "reply_digest"])
    (score,) = score_run(replace(run))
    assert score.scorecard.n_answered == 1
    more = start(model=server.model, limit=2, choice="first")
    evaluate(more)
    assert sorted(row["reply_digest"] is None for row in table.rows()) == [False, True]
    (score,) = score_run(more)
    assert score.scorecard.n_answered == 2
