"""Committer of a run, the only writer of its table, which collects finished rows from any thread."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from unreel.core.errors import (
    InvalidValueError,
    MachineError,
    raise_if_machine_error,
    require_disk_space,
)
from unreel.engine.location import require_conditional_puts
from unreel.engine.progress import Progress
from unreel.engine.schema import compute_row_text_size
from unreel.engine.stage import Row, drop_scratch_columns
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

COMPACT_EVERY = 32
"""Number of commits between joins of fragments; at the end of a run, a quarter of them is enough to compact."""
_CLEAN_EVERY_S = 900.0
"""Minimum seconds between deletions of old versions, for which the manifests of all others are read."""
_FIRST_ROWS, _LARGEST_ROWS = 256, 100_000
_FIRST_S = 2.0
_ROWS_A_SECOND_CUBED = _FIRST_ROWS / _FIRST_S**3
_WAITS_FOR_A_COMMIT, _LONGEST_S = 4, 60.0
"""Ratio of interval to commit duration, up to 60 s: slow commits, as of replaced rows, take about a fifth of time."""
_DEAR_USD, _DEAR_S = 0.01, 0.2
_LARGEST_BYTES = 32 * 2**20
_PORTION_ROWS = 1_024
"""Number of rows that are converted to Arrow at a time, to save memory."""
_BUFFER_ROWS, _BUFFER_BYTES = 16 * _PORTION_ROWS, 32 * 2**20
"""Maximum number and text size of rows that wait for conversion to Arrow; if exceeded, the runner waits."""
_SPARE_BYTES = 2**20
"""Free disk space that is kept for manifests and for the rows in flight."""
_LOOK_S = 0.1
"""Minimum seconds between checks of the free disk space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPace:
    """Rules for when rows are committed, by number and age; unset values adapt to the rate.

    The first answers, and those of a slow reviewer, are visible within two seconds. At high rates
    commits grow: one may be as large as all before it together, up to 100,000 rows or 32 MiB, and
    the interval grows with the number of waiting rows, up to 15 seconds. If a commit takes long,
    the interval is four times its duration, up to a minute. Rows that cost a cent or more are
    committed after 0.2 seconds, or after the duration of a commit.
    """

    rows: int | None = None
    seconds: float | None = None

    def rows_after(self, committed: int) -> int:
        """Return the maximum number of rows of the next commit after `committed` rows."""
        if self.rows is not None:
            return self.rows
        return min(max(_FIRST_ROWS, committed), _LARGEST_ROWS)

    def seconds_for(self, waiting: int, *, commit_s: float = 0.0, is_dear: bool = False) -> float:
        """Return the seconds that the first row may wait; few if a lost row `is_dear`, that is, paid again."""
        if self.seconds is not None:
            return self.seconds
        if is_dear:
            return max(_DEAR_S, min(commit_s, _LONGEST_S))
        by_rows_s = max(_FIRST_S, math.cbrt(waiting / _ROWS_A_SECOND_CUBED))
        return max(by_rows_s, min(_WAITS_FOR_A_COMMIT * commit_s, _LONGEST_S))


AddUp = Callable[[Sequence[Row], dict[str, float]], None]
"""Function that adds a job's counts of new rows to totals."""


@dataclass(slots=True)
class _PendingCommit:
    """Arrow batches of the next commit, with their number of rows, failures and totals."""

    batches: list[Any] = field(default_factory=list)
    n_rows: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    totals: dict[str, float] = field(default_factory=dict)
    n_bytes: int = 0

    def add(self, rows: Sequence[Row], batch: Any) -> None:
        self.batches.append(batch)
        self.n_bytes += batch.nbytes
        self.n_rows += len(rows)
        self.failures.update(reason for row in rows if (reason := row.get("failure_reason")))


class TableCommitter:
    """Context manager that holds a table's lock and commits rows; leaving it commits all offered rows.

    Rows with `attempt` above 1 replace existing rows. `on_commit` is called after readers can see
    the commit, `observe` at the steps of the table's writer, both from the committing thread.
    """

    def __init__(
        self,
        table: LanceTable,
        *,
        pace: CommitPace,
        on_commit: Callable[[Progress], None],
        add_up: AddUp = lambda _rows, _totals: None,
        observe: Callable[[str, int], None] = lambda _step, _rows: None,
    ) -> None:
        self._table, self._pace = table, pace
        self._on_commit, self._add_up, self._observe = on_commit, add_up, observe
        self.progress = Progress()
        self._buffer: deque[tuple[Row, int]] = deque()
        self._buffer_bytes = 0
        self._oldest_s = 0.0
        self._new, self._again = _PendingCommit(), _PendingCommit()
        self._keep_pace()
        self._change = threading.Condition()
        self._closing = False
        self._error: BaseException | None = None
        self._commits, self._commit_s = 0, 0.0
        self._n_offered, self._is_dear, self._checked_at_s = 0, False, -math.inf
        self._held = ExitStack()

    def __enter__(self) -> "TableCommitter":
        require_conditional_puts(self._table.place)
        lock = self._held.enter_context(build_writer_lock(self._table.place))
        with self._held:
            self._table.check()
            self._writer = TableWriter(self._table, lock=lock, observe=self._observe)
            self._cleaned_s = time.monotonic()
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
            if self._error is not None and (error is None or isinstance(error, Exception)):
                n_lost = self._n_offered - self.progress.done - self.progress.failed
                try:
                    raise_if_machine_error(self._error)
                except MachineError as refusal:
                    if n_lost:
                        problem = (
                            f"{refusal.problem}; {n_lost} results came and could not be stored"
                        )
                        raise MachineError(problem, refusal.remedy) from error
                raise self._error from error

    def offer(self, row: Row) -> bool:
        """Add a row to the next commit, or return `False` if full; raise `UnreelError` after a failed one."""
        with self._change:
            if self._error is not None:
                self._n_offered += 1
                raise self._error
            if len(self._buffer) >= self._max_buffered or self._buffer_bytes >= _BUFFER_BYTES:
                return False
            self._n_offered += 1
            if not self._buffer and not self._n_drafted:
                self._oldest_s = time.monotonic()
            stored = drop_scratch_columns(row)
            n_bytes = compute_row_text_size(stored)
            self._buffer.append((stored, n_bytes))
            self._buffer_bytes += n_bytes
            turns_dear = not self._is_dear and (row.get("cost_usd") or 0) >= _DEAR_USD
            self._is_dear |= turns_dear
            if len(self._buffer) == 1 or turns_dear or self._has_portion():
                self._change.notify_all()
            return True

    def require_ready(self) -> None:
        """Raise `UnreelError` if a commit failed or the disk has no room: results would be lost."""
        with self._change:
            if self._error is not None:
                raise self._error
            n_bytes = self._buffer_bytes + self._new.n_bytes + self._again.n_bytes
        now_s = time.monotonic()
        if self._table.place.is_local and now_s >= self._checked_at_s + _LOOK_S:
            self._checked_at_s = now_s
            require_disk_space(self._table.place.path, _SPARE_BYTES + 2 * n_bytes)

    def add(self, row: Row) -> None:
        """Add the row to the buffer of the next commit; wait while the buffer is full."""
        while not self.offer(row):
            time.sleep(0.002)

    @property
    def _n_drafted(self) -> int:
        return self._new.n_rows + self._again.n_rows

    def _has_portion(self) -> bool:
        return len(self._buffer) >= self._portion or self._buffer_bytes >= _BUFFER_BYTES

    def _keep_pace(self) -> None:
        """Update the maximum number of rows in the next commit, the buffer and the next Arrow conversion."""
        self._max_rows = self._pace.rows_after(self.progress.done + self.progress.failed)
        self._max_buffered = min(_BUFFER_ROWS, 2 * self._max_rows)
        self._portion = min(_PORTION_ROWS, self._max_rows - self._n_drafted)

    def _left_s(self) -> float:
        """Return the seconds after which the oldest buffered row must be committed."""
        n_waiting = self._n_drafted + len(self._buffer)
        may_wait_s = self._pace.seconds_for(
            n_waiting, commit_s=self._commit_s, is_dear=self._is_dear
        )
        return self._oldest_s + may_wait_s - time.monotonic()

    def _work(self) -> None:
        try:
            while (rows := self._take()) is not None:
                new = [row for row in rows if row.get("attempt", 1) == 1]
                retries = [row for row in rows if row.get("attempt", 1) > 1]
                for part, draft in ((new, self._new), (retries, self._again)):
                    for portion, batch in self._to_arrow(part):
                        draft.add(portion, batch)
                        self._add_up(portion, draft.totals)
                n_bytes = self._new.n_bytes + self._again.n_bytes
                is_full = self._n_drafted >= self._max_rows or n_bytes >= _LARGEST_BYTES
                if is_full or self._left_s() <= 0:
                    self._commit()
                self._keep_pace()
            self._commit()
            if self._commits >= COMPACT_EVERY // 4:
                self._writer.compact()
            elif self._commits:
                self._writer.join(min_fragments=COMPACT_EVERY)
        except BaseException as error:  # noqa: BLE001  handed to the thread that offers rows
            with self._change:
                self._error = error

    def _take(self) -> list[Row] | None:
        """Return the next rows to commit: a full portion, or all if the oldest is due; `None` at the end."""
        with self._change:
            while not self._closing and not self._has_portion():
                waits = self._buffer or self._n_drafted
                left_s = self._left_s() if waits else None
                if left_s is not None and left_s <= 0:
                    break
                self._change.wait(left_s)
            if self._closing and not self._buffer:
                return None
            portion = [self._buffer.popleft() for _ in range(min(self._portion, len(self._buffer)))]
            self._buffer_bytes -= sum(n_bytes for _, n_bytes in portion)
            return [row for row, _ in portion]

    def _to_arrow(self, rows: list[Row]) -> list[tuple[list[Row], Any]]:
        schema = self._table.schema
        if not rows:
            return []
        try:
            return [(rows, schema.batch(rows))]
        except InvalidValueError:
            try:
                return [(portion, schema.batch(portion)) for portion in schema.portions(rows)]
            except InvalidValueError:
                self._commit()  # commit the finished rows before these, so that they are not lost
                raise

    def _commit(self) -> None:
        with self._change:
            drafts = (self._new, self._writer.add), (self._again, self._writer.replace)
            self._new, self._again = _PendingCommit(), _PendingCommit()
            began_s = self._oldest_s = time.monotonic()
            self._is_dear = False
        if not any(draft.n_rows for draft, _ in drafts):
            return
        for draft, write in drafts:
            if draft.n_rows:
                write(draft.batches)
                self.progress.failures.update(draft.failures)
                self.progress.done += draft.n_rows - draft.failures.total()
                for name, value in draft.totals.items():
                    self.progress.totals[name] = self.progress.totals.get(name, 0.0) + value
                self._on_commit(self.progress)
        self._commit_s = time.monotonic() - began_s
        self._commits += 1
        if self._commits % COMPACT_EVERY == 0:
            self._writer.join()
            if time.monotonic() > self._cleaned_s + _CLEAN_EVERY_S:
                self._writer.let_go()
                self._cleaned_s = time.monotonic()
