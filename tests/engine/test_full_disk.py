"""Nothing is asked whose result could not be kept, and what a failed commit costs is said."""

import asyncio
import errno
import os
import re
from types import SimpleNamespace
from typing import Any

import pytest

from unreel.core.errors import MachineError
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.run import run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter

QUESTIONS = [{"key": f"{number:04d}"} for number in range(400)]
SOON = CommitPace(rows=8, seconds=0.05)


class CountedStage(Stage):
    """Answers each row, and counts the rows that it was asked."""

    resources = WorkerResources(in_flight=4)

    def __init__(self) -> None:
        self.n_asked = 0

    async def __call__(self, row: Row) -> Row:
        self.n_asked += 1
        await asyncio.sleep(0.002)
        return row | {"text": "real"}


def test_a_failed_commit_ends_the_asking_and_says_what_is_lost(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_writer: TableWriter, _batches: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(TableWriter, "add", fail)
    stage = CountedStage()
    with pytest.raises(MachineError, match="Make room") as raised:
        run_pending_questions(QUESTIONS, [stage], table=table, pace=SOON)
    lost = re.search(r"(\d+) results came and could not be stored", str(raised.value))
    assert lost
    assert 0 < int(lost[1]) <= stage.n_asked < len(QUESTIONS)
    assert table.count() == 0


def test_nothing_is_asked_that_the_disk_has_no_room_for(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimpleNamespace(f_bavail=1000, f_frsize=4096, f_blocks=1000)
    stage = CountedStage()
    run_pending_questions(QUESTIONS[:20], [stage], table=table, pace=SOON)
    monkeypatch.setattr("unreel.core.errors.os.statvfs", lambda _folder: disk)
    disk.f_bavail = 100
    with pytest.raises(MachineError, match=r"No space left on device.*Make room"):
        run_pending_questions(QUESTIONS, [stage], table=table, pace=SOON)
    assert stage.n_asked == table.count() == 20


def test_what_was_asked_before_the_disk_filled_is_stored(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimpleNamespace(f_bavail=1000, f_frsize=4096, f_blocks=1000)
    monkeypatch.setattr("unreel.core.errors.os.statvfs", lambda _folder: disk)
    monkeypatch.setattr("unreel.engine.committer._LOOK_S", 0.0)

    class FillingStage(CountedStage):
        async def __call__(self, row: Row) -> Row:
            done = await super().__call__(row)
            disk.f_bavail = 100 if self.n_asked >= 50 else 1000
            return done

    stage = FillingStage()
    with pytest.raises(MachineError, match="No space left on device") as raised:
        run_pending_questions(QUESTIONS, [stage], table=table, pace=SOON)
    assert "could not be stored" not in str(raised.value)
    assert 50 <= stage.n_asked == table.count() < 60


@pytest.mark.parametrize(("cost_usd", "is_dear"), [(None, False), (0.002, False), (0.02, True)])
def test_dear_rows_are_committed_soon(
    table: LanceTable,
    cost_usd: float | None,
    is_dear: bool,  # noqa: FBT001
) -> None:
    told: list[bool] = []

    class NotedPace(CommitPace):
        def seconds_for(
            self, waiting: int, *, commit_s: float = 0.0, is_dear: bool = False
        ) -> float:
            told.append(is_dear)
            return 0.0

    with TableCommitter(table, pace=NotedPace(), on_commit=lambda _progress: None) as sink:
        sink.add({"key": "0", "text": "real", "cost_usd": cost_usd})
    assert is_dear in told
    assert any(told) is is_dear
    assert CommitPace().seconds_for(1, is_dear=True) < CommitPace().seconds_for(1)
