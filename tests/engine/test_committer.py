"""Commits follow the rate of rows: soon where few come, large where many do."""

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import InvalidValueError
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.progress import Progress
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable

ROWS = st.integers(0, 10**10)


def answers(n_rows: int, *, text: str = "real") -> list[Row]:
    return [{"key": f"{number:06d}", "text": text} for number in range(n_rows)]


def commit(table: LanceTable, rows: Sequence[Row], *, pace: CommitPace | None = None) -> list[int]:
    """How many rows went into each commit."""
    told = [0]
    with TableCommitter(
        table, pace=pace or CommitPace(), on_commit=lambda so_far: told.append(so_far.done)
    ) as sink:
        for row in rows:
            sink.add(row)
    return [after - before for before, after in itertools.pairwise(told)]


@given(ROWS, ROWS)
def test_commits_grow_with_what_is_there_and_what_waits_within_bounds(few: int, many: int) -> None:
    few, many = sorted((few, many))
    pace = CommitPace()
    assert 256 <= pace.rows_after(few) <= pace.rows_after(many) <= 100_000
    assert 2 <= pace.seconds_for(few) <= pace.seconds_for(many)
    assert pace.seconds_for(100_000) < 15


@given(ROWS, st.floats(0, 10**6))
def test_where_a_commit_takes_long_rows_wait_longer_but_not_for_ever(
    waiting: int, commit_s: float
) -> None:
    pace = CommitPace()
    at_once_s, waits_s = pace.seconds_for(waiting), pace.seconds_for(waiting, commit_s=commit_s)
    assert at_once_s <= waits_s <= max(at_once_s, 60)
    assert waits_s >= min(4 * commit_s, 60)


def test_long_texts_are_committed_before_they_fill_the_memory(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unreel.engine.committer._LARGEST_BYTES", 100_000)
    monkeypatch.setattr("unreel.engine.committer._BUFFER_BYTES", 50_000)
    sizes = commit(table, answers(100, text="x" * 10_000), pace=CommitPace(rows=1_000, seconds=60))
    assert max(sizes) <= 20
    assert table.count() == 100


def test_offers_find_no_room_while_a_commit_takes_its_time(table: LanceTable) -> None:
    go_on = threading.Event()
    with TableCommitter(
        table,
        pace=CommitPace(rows=10, seconds=60),
        on_commit=lambda _: None,
        observe=lambda step, _n: step != "written" or bool(go_on.wait(60)) or None,
    ) as sink:
        taken, until_s = 0, time.monotonic() + 2
        rows = iter(answers(1_000))
        row = next(rows)
        while time.monotonic() < until_s and taken < 1_000:
            if sink.offer(row):
                row, taken = next(rows), taken + 1
        go_on.set()
    assert 20 <= taken <= 30
    assert table.count() == taken


def test_finished_rows_are_kept_when_a_later_one_cannot_be(table: LanceTable) -> None:
    rows = [*answers(1_500), {"key": "z", "colour": "red"}]
    with pytest.raises(InvalidValueError, match="colour"):
        commit(table, rows, pace=CommitPace(rows=100_000, seconds=60))
    assert table.count() >= 1_024


def test_costs_are_told_with_the_commit_that_holds_them(tmp_path: Path) -> None:
    table = LanceTable(StorageLocation(str(tmp_path / "answers.lance")), ANSWERS)
    told: list[tuple[int, float]] = []

    def count(progress: Progress) -> None:
        told.append((progress.done + progress.failed, progress.totals["n"]))

    def add_up(rows: Sequence[Row], totals: dict[str, float]) -> None:
        totals["n"] = totals.get("n", 0.0) + len(rows)

    with TableCommitter(
        table, pace=CommitPace(rows=10, seconds=60), on_commit=count, add_up=add_up
    ) as sink:
        for row in answers(35):
            sink.add(row)
    assert told == [(10, 10.0), (20, 20.0), (30, 30.0), (35, 35.0)]
