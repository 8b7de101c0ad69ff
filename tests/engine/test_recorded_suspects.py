"""A row that two earlier processes left unfinished runs in a process of its own, and is stored."""

import os
from pathlib import Path

from unreel.engine.run import run
from unreel.engine.stage import Resources, Row, Stage
from unreel.engine.start_log import DEATHS_IN_COMPANY
from unreel.engine.table import Table


class ProcessNumber(Stage):
    """Stage that answers with the number of the process in which it runs."""

    resources = Resources(cpus=1, in_flight=1)

    def __call__(self, row: Row) -> Row:
        return row | {"text": str(os.getpid())}


def test_a_recorded_suspect_runs_alone_and_is_stored(table: Table, tmp_path: Path) -> None:
    book = tmp_path / "book"
    book.write_text("+b/1\n" * DEATHS_IN_COMPANY)
    questions = [{"key": key} for key in "abc"]
    summary = run(questions, [ProcessNumber()], table=table, ledger=book)
    assert (summary.done, summary.failed) == (3, 0)
    process = {row["key"]: row["text"] for row in table.rows()}
    assert process["a"] == process["c"] == str(os.getpid())
    assert process["b"] != process["a"]
