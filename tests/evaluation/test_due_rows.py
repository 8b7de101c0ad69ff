"""Which rows of an eval are due, and who may ask them: one driver at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.core.errors import UnreadableSourceError
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.run_job import DRIVER, evaluate
from unreel.evaluation.table_schemas import ANSWERS

QUESTIONS = [{"key": key} for key in ("answered", "refused", "too-slow", "new")]


@pytest.fixture
def table(tmp_path: Path) -> LanceTable:
    """Table with an answer and two failures."""
    table = LanceTable(StorageLocation(str(tmp_path / "answers.lance")), ANSWERS)
    with build_writer_lock(table.place) as lock:
        TableWriter(table, lock=lock, observe=lambda _step, _rows: None).append(
            [
                {"key": "answered", "text": "yes"},
                {"key": "refused", "failure_reason": "refused"},
                {"key": "too-slow", "failure_reason": "out-of-time"},
            ]
        )
    return table


@pytest.mark.parametrize(
    ("retry", "due"),
    [
        ((), ["new"]),
        (("refused",), ["refused", "new"]),
        (("refused", "out-of-time"), ["refused", "too-slow", "new"]),
    ],
)
def test_a_failed_row_is_due_only_for_a_reason_that_is_retried(
    table: LanceTable, retry: tuple[str, ...], due: list[str]
) -> None:
    assert [row["key"] for row in PendingQuestionFilter(table, retry).sift(2 * QUESTIONS)] == due
    keys = 2 * [row["key"] for row in QUESTIONS]
    assert PendingQuestionFilter(table, retry).are_due(keys) == [key in due for key in keys]


def test_a_second_driver_of_an_eval_is_refused_before_it_writes(start: Callable[..., Any]) -> None:
    run = start()
    with (
        build_writer_lock(run.place / DRIVER),
        pytest.raises(UnreadableSourceError, match="another run writes it"),
    ):
        evaluate(run)
    assert [file.name for file in run.place.path.rglob("*") if file.is_file()] == ["run.lock"]
