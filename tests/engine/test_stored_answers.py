"""Every row of a commit is stored, with its text unchanged, before the commit is reported."""

from collections.abc import Callable
from functools import partial

import lance
import pytest
from lance.fragment import write_fragments

from unreel.core.errors import UnreadableSourceError
from unreel.engine import table_writer
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

Observe = Callable[[str, int], None]
LONG = "".join(f"{number:06d} " for number in range(10_000))
"""A text of 70,000 characters in which no two parts are equal; it ends with a space."""
TEXTS = ("x", LONG, f"\n\t {LONG}\n\n", "no newline\x00at the end \u3000", "é 手 \U0001f600", "")


def commit(
    table: LanceTable, rows: list[Row], observe: Observe = lambda _step, _rows: None
) -> None:
    """Write all rows in one commit."""
    pace = CommitPace(rows=100_000, seconds=60)
    with TableCommitter(table, pace=pace, on_commit=lambda _: None, observe=observe) as sink:
        for row in rows:
            sink.add(row)


def test_texts_are_stored_character_by_character(table: LanceTable) -> None:
    commit(table, [{"key": f"{place}", "text": text} for place, text in enumerate(TEXTS)])
    stored = {row["key"]: row["text"] for row in table.rows()}
    assert [stored[f"{place}"] for place in range(len(TEXTS))] == list(TEXTS)


def test_a_replaced_text_is_stored_character_by_character(table: LanceTable) -> None:
    commit(table, [{"key": "a", "failure_reason": "refused"}])
    commit(table, [{"key": "a", "text": LONG, "attempt": 2}])
    assert [row["text"] for row in table.rows()] == [LONG]


def test_every_batch_of_a_commit_is_stored(table: LanceTable) -> None:
    batches = [table.schema.batch([{"key": f"{n}", "text": f"answer {n}"}]) for n in range(3)]
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        writer.add(batches)
        assert sorted(row["text"] for row in table.rows()) == [f"answer {n}" for n in range(3)]
        again = [table.schema.batch([{"key": f"{n}", "text": f"try {n}"}]) for n in range(3)]
        writer.replace(again)
    assert sorted(row["text"] for row in table.rows()) == [f"try {n}" for n in range(3)]


def test_every_portion_of_a_commit_is_stored(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unreel.engine.committer._PORTION_ROWS", 4)
    keys = [f"{number:02d}" for number in range(10)]
    commit(table, [{"key": key} for key in keys])
    assert sorted(row["key"] for row in table.rows()) == keys
    commit(table, [{"key": key, "text": key, "attempt": 2} for key in keys])
    assert sorted(row["text"] for row in table.rows()) == keys


def test_every_fragment_of_a_commit_is_stored(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = partial(write_fragments, max_rows_per_file=4, max_rows_per_group=4)
    monkeypatch.setattr(table_writer, "write_fragments", small)
    keys = [f"{number:02d}" for number in range(10)]
    commit(table, [{"key": key} for key in keys])
    assert len(lance.dataset(table.place.uri).get_fragments()) == 3
    assert sorted(row["key"] for row in table.rows()) == keys


def test_a_commit_is_reported_once_readers_see_its_rows(table: LanceTable) -> None:
    seen: list[tuple[str, int]] = []

    def look(step: str, _rows: int) -> None:
        seen.append((step, table.count()))

    commit(table, [{"key": key} for key in "abc"], look)
    assert seen == [("written", 0), ("committed", 3)]


def test_a_store_is_checked_before_its_lock_is_taken(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(place: StorageLocation) -> None:
        raise UnreadableSourceError(place.uri, "no conditional puts", "Use another store")

    monkeypatch.setattr("unreel.engine.committer.require_conditional_puts", refuse)
    with pytest.raises(UnreadableSourceError, match="no conditional puts"):
        commit(table, [{"key": "a"}])
    assert list(table.place.path.parent.iterdir()) == []
