"""A table as the source of a run: the driver reads keys, workers read rows, at one version."""

import pickle
from pathlib import Path

import pytest

from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.engine.location import StorageLocation
from unreel.engine.run import run_pending_questions
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row, Stage
from unreel.engine.table import LanceTable
from unreel.engine.table_questions import DueTableQuestions, TableQuestionSource

PIECES = TableSchema(name="pieces", version=1, columns={"text": "string", "length": "int64"})


class Keep(Stage):
    async def __call__(self, row: Row) -> Row:
        return row


class Echo(Stage):
    async def __call__(self, row: Row) -> Row:
        return row | {"text": row["_said"]}


def ask(row: Row) -> Row:
    if row["length"] == 13:
        msg = "thirteen is no length. Take another"
        raise InvalidValueError(msg)
    return {"key": "not looked at", "_said": row["text"].upper(), "reviewer": "r"}


def by_length(row: Row) -> str:
    return f"q{row['length']}"


@pytest.fixture
def pieces(tmp_path: Path) -> LanceTable:
    return LanceTable(StorageLocation(str(tmp_path / "pieces.lance")), PIECES)


def put(pieces: LanceTable, first: int, last: int) -> None:
    rows = [{"key": f"p{n}", "text": f"piece {n}", "length": n} for n in range(first, last)]
    run_pending_questions(rows, [Keep()], table=pieces)


def test_rows_of_a_table_are_questions_under_a_key_of_their_own(
    pieces: LanceTable, table: LanceTable
) -> None:
    put(pieces, 0, 600)
    questions = TableQuestionSource(pieces, ask, key=by_length, columns=["length"])
    summary = run_pending_questions(questions, [Echo()], table=table)
    assert (summary.done, dict(summary.failures)) == (599, {"stage-failed": 1})
    rows = {row["key"]: row for row in table.rows()}
    assert rows["q599"]["text"] == "PIECE 599"
    assert {row["reviewer"] for key, row in rows.items() if key != "q13"} == {"r"}
    assert rows["q13"]["failure_detail"].endswith("Take another")


def test_what_has_an_answer_is_not_read_again(pieces: LanceTable, table: LanceTable) -> None:
    put(pieces, 0, 40)
    run_pending_questions(
        TableQuestionSource(pieces, ask, where="length < 10"), [Echo()], table=table
    )
    read: list[str] = []

    def noting(row: Row) -> Row:
        read.append(row["key"])
        return ask(row)

    summary = run_pending_questions(
        TableQuestionSource(pieces, noting, where="length < 12"), [Echo()], table=table
    )
    assert (summary.already, summary.done) == (10, 2)
    assert read == ["p10", "p11"]


def test_the_driver_sends_a_key_and_an_address_and_no_row(pieces: LanceTable) -> None:
    put(pieces, 0, 300)
    source = TableQuestionSource(pieces, ask)
    sent = [len(pickle.dumps(row | {"attempt": 1})) for row in source]
    assert len(sent) == 300
    assert max(sent) < 100
    fetched = list(DueTableQuestions(iter(source), source))
    assert [row["key"] for row in fetched] == [f"p{n}" for n in range(300)]
    assert fetched[7]["_said"] == "PIECE 7"


def test_a_failed_row_is_no_question_and_an_absent_table_says_so(
    pieces: LanceTable, table: LanceTable
) -> None:
    put(pieces, 13, 15)
    source = TableQuestionSource(pieces, ask)
    run_pending_questions(source, [Echo()], table=table)
    again = TableQuestionSource(LanceTable(table.place, ANSWERS), lambda row: row)
    assert [row["key"] for row in again] == ["p14"]
    nowhere = LanceTable(StorageLocation(str(pieces.place.path.with_name("none.lance"))), PIECES)
    with pytest.raises(UnreadableSourceError, match="no pieces table"):
        list(TableQuestionSource(nowhere, ask))
