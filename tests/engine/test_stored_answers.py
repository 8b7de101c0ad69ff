"""Every row of a commit is stored, with its text unchanged, before the commit is reported."""

from collections.abc import Callable

import pytest

from unreel.core.errors import UnreadableSourceError
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable

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


def test_a_commit_is_reported_once_readers_see_its_rows(table: LanceTable) -> None:
    seen: list[tuple[str, int]] = []

    def look(step: str, _rows: int) -> None:
        seen.append((step, table.count()))

    commit(table, [{"key": key} for key in "abc"], look)
    assert seen == [("written", 0), ("committed", 3)]


def test_a_store_is_checked_before_its_lock_is_taken(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(location: StorageLocation) -> None:
        raise UnreadableSourceError(location.uri, "no conditional puts", "Use another store")

    monkeypatch.setattr("unreel.engine.committer.require_conditional_puts", refuse)
    with pytest.raises(UnreadableSourceError, match="no conditional puts"):
        commit(table, [{"key": "a"}])
    assert list(table.place.path.parent.iterdir()) == []
