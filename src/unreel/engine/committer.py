"""The one writer of a run: takes finished rows from any thread, commits them in small batches."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from unreel.core.errors import InvalidValueError
from unreel.engine.lock import writer_lock
from unreel.engine.place import require_conditional_puts
from unreel.engine.progress import Progress
from unreel.engine.stage import Row, stored
from unreel.engine.table import Table, TableWriter

COMPACT_EVERY: Final = 32
_ROOM: Final = 2
"""Batches that may wait for the committer before the runner must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPace:
    """When rows are committed: so many, or so old."""

    rows: int = 256
    seconds: float = 2.0


AddUp = Callable[[Sequence[Row], dict[str, float]], None]
"""Adds what a job counts of committed rows to its totals."""


class Committer:
    """Holds the table's lock from `with` to its end; leaving commits what was offered.

    Args:
        table: Where the rows go. Rows whose `attempt` is above 1 replace, the others are added.
        pace: When to commit.
        add_up: Adds what the job counts of new rows to the totals.
        on_commit: Told the keys of each commit, and the progress, after readers can see them.
        observe: Told the steps of the table's writer, from the committing thread.
    """

    def __init__(
        self,
        table: Table,
        *,
        pace: CommitPace,
        on_commit: Callable[[Sequence[str], Progress], None],
        add_up: AddUp = lambda _rows, _totals: None,
        observe: Callable[[str, int], None] = lambda _step, _rows: None,
    ) -> None:
        self._table, self._pace = table, pace
        self._on_commit, self._add_up, self._observe = on_commit, add_up, observe
        self.progress = Progress()
        self._buffer: list[Row] = []
        self._oldest_s = 0.0
        self._change = threading.Condition()
        self._closing = False
        self._error: BaseException | None = None
        self._commits = 0
        self._held = ExitStack()

    def __enter__(self) -> "Committer":
        require_conditional_puts(self._table.place)
        lock = self._held.enter_context(writer_lock(self._table.place))
        with self._held:
            self._table.check()
            self._writer = TableWriter(self._table, lock=lock, observe=self._observe)
            self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
            self._thread.start()
            self._held = self._held.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._held:
            with self._change:
                self._closing = True
                self._change.notify_all()
            self._thread.join()
            if self._error is not None and error is None:
                raise self._error

    def offer(self, row: Row) -> bool:
        """Take the row, or say that there is no room now.

        Raises:
            UnreelError: A commit failed before; the run cannot go on.
        """
        with self._change:
            if self._error is not None:
                raise self._error
            if len(self._buffer) >= _ROOM * self._pace.rows:
                return False
            if not self._buffer:
                self._oldest_s = time.monotonic()
            self._buffer.append(stored(row))
            if len(self._buffer) == 1 or len(self._buffer) >= self._pace.rows:
                self._change.notify_all()
            return True

    def add(self, row: Row) -> None:
        """Take the row, waiting for room."""
        while not self.offer(row):
            time.sleep(0.002)

    def _work(self) -> None:
        try:
            while True:
                rows = self._next_batch()
                if not rows:
                    break
                self._commit(rows)
            if self._commits >= COMPACT_EVERY // 4:
                self._writer.compact()
        except BaseException as error:  # noqa: BLE001  handed to the thread that offers rows
            with self._change:
                self._error = error

    def _next_batch(self) -> list[Row]:
        with self._change:
            while not self._closing and len(self._buffer) < self._pace.rows:
                if not self._buffer:
                    self._change.wait()
                    continue
                left_s = self._oldest_s + self._pace.seconds - time.monotonic()
                if left_s <= 0:
                    break
                self._change.wait(left_s)
            rows, self._buffer = self._buffer, []
            return rows

    def _commit(self, rows: list[Row]) -> None:
        new = [row for row in rows if row.get("attempt", 1) == 1]
        again = [row for row in rows if row.get("attempt", 1) > 1]
        for part, write in ((new, self._writer.append), (again, self._writer.replace)):
            if part:
                self._write(part, write)
        if self._commits % COMPACT_EVERY == COMPACT_EVERY - 1:
            self._writer.compact()
        self._commits += 1

    def _write(self, rows: list[Row], write: Callable[[Sequence[Row]], None]) -> None:
        try:
            write(rows)
        except InvalidValueError:  # nothing is written before all rows fit
            for portion in self._table.schema.portions(rows):
                write(portion)
                self._report(portion)
        else:
            self._report(rows)

    def _report(self, rows: list[Row]) -> None:
        reasons = [row["failure_reason"] for row in rows if row.get("failure_reason")]
        self.progress.failures.update(reasons)
        self.progress.done += len(rows) - len(reasons)
        self._add_up(rows, self.progress.totals)
        self._on_commit([row["key"] for row in rows], self.progress)
