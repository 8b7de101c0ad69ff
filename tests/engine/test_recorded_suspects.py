"""Rows in flight are on record; one that two processes left unfinished runs in a process of its own."""

import os
import signal
from pathlib import Path

import pytest

from unreel.engine import crash_suspects
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.start_log import DEATHS_IN_COMPANY, ItemStartLog
from unreel.engine.table import LanceTable

QUESTIONS = [{"key": key} for key in "abc"]
TWO_STARTS = "+b/1\n" * DEATHS_IN_COMPANY


class ProcessNumber(Stage):
    """Stage that answers with the number of the process in which it runs."""

    resources = WorkerResources(cpus=1, in_flight=1)

    def __call__(self, row: Row) -> Row:
        return row | {"text": str(os.getpid())}


class DeadlyElsewhere(ProcessNumber):
    """Stage that kills every process but the one in which it was made."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def __call__(self, row: Row) -> Row:
        if os.getpid() != self._pid:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(row)


class StartLogReader(ProcessNumber):
    """Stage that answers with the lines of the start log at the time of its call."""

    def __init__(self, book: Path) -> None:
        self._book = book

    def __call__(self, row: Row) -> Row:
        return row | {"text": self._book.read_text()}


def test_a_row_in_flight_is_on_record_until_it_is_finished(
    table: LanceTable, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    run_pending_questions(QUESTIONS, [StartLogReader(book)], table=table, ledger=book)
    for row in table.rows():
        lines = row["text"].splitlines()
        assert f"+{row['key']}/1" in lines
        assert f"-{row['key']}/1" not in lines
    with ItemStartLog(book) as log:
        assert [log.deaths(f"{key}/1") for key in "abc"] == [0, 0, 0]


def test_a_suspect_runs_alone_and_is_stored(table: LanceTable, tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.write_text(TWO_STARTS)
    summary = run_pending_questions(QUESTIONS, [ProcessNumber()], table=table, ledger=book)
    assert (summary.done, summary.failed) == (3, 0)
    process = {row["key"]: row["text"] for row in table.rows()}
    assert process["a"] == process["c"] == str(os.getpid())
    assert process["b"] != process["a"]
    with ItemStartLog(book) as log:
        assert log.deaths("b/1") == 0


def test_a_suspect_that_kills_its_process_each_time_is_quarantined_and_the_others_are_stored(
    table: LanceTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_suspects, "DEATHS_ALONE", 2)  # each costs a start of Python
    book = tmp_path / "book"
    book.write_text(TWO_STARTS)
    summary = run_pending_questions(QUESTIONS, [DeadlyElsewhere()], table=table, ledger=book)
    assert (summary.done, summary.quarantined) == (2, 1)
    (row,) = table.rows(where="failure_reason IS NOT NULL")
    assert (row["key"], row["failure_reason"]) == ("b", "quarantined")
    assert (
        "2 workers that ran nothing else died of it, the last by SIGKILL" in row["failure_detail"]
    )
