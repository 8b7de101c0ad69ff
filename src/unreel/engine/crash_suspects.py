"""Find the rows that crash a worker: rows that ran together are retried in isolation.

A crash shows that a worker ended, not why. The cause may be any row that the worker began and
did not finish, the out-of-memory killer, a lost node, or a `kill -9`. Two assumptions decide:

- a row that crashes its worker crashes it each time;
- any other row finishes the first time that it can run undisturbed.

A row with `DEATHS_IN_COMPANY` crashes (see `start_log`) is therefore a suspect. It runs in a
fresh worker of its own. A crash of this worker counts only for this row, and only after the row
began there. After `DEATHS_ALONE` such crashes in sequence the row is quarantined. A row that
finishes once is no longer a suspect. Between two attempts the other suspects run, so that a
short problem of the machine does not affect all attempts of one row. These crashes are counted
in the driver's memory: if the driver dies, the row is still a suspect and its count starts
again.

Limit: a row that was killed from outside in each of `DEATHS_ALONE` fresh workers cannot be
distinguished from a row that crashes. All causes of a crash have the same weight, because a row
that uses all memory ends by the same SIGKILL as other rows of its worker. The reasons are in
docs/decisions/0013-suspects-alone.md.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.engine.stage import Row, to_failed_row

DEATHS_ALONE: Final = 5
_FALSE_STARTS: Final = 10


@dataclass(frozen=True, slots=True)
class WorkerCrashed:
    """A worker of a suspect's own ended before it gave the row back."""

    how: str
    began: bool
    """Whether the row was begun: a worker that ends before it says nothing about the row."""


@dataclass(frozen=True, slots=True)
class IsolatedRetry:
    """Suspect row, and the number of its consecutive crashes in isolation."""

    row: Row
    deaths: int = 0


class CrashSuspects:
    """Queue of rows that wait to run in isolation, with their crash counts."""

    def __init__(self) -> None:
        self._waiting: deque[IsolatedRetry] = deque()
        self._false_starts = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, row: Row) -> None:
        """Let a row wait for its turn."""
        self._waiting.append(IsolatedRetry(row))

    def take(self) -> IsolatedRetry:
        """Remove and return the next suspect row from the queue."""
        return self._waiting.popleft()

    def judge(self, trial: IsolatedRetry, outcome: Row | WorkerCrashed) -> Row | None:
        """Return the finished or quarantined row; `None` if the row must run in isolation again.

        Raises:
            InvalidSettingError: Ten workers in sequence ended before they began a row.
        """
        if isinstance(outcome, WorkerCrashed) and not outcome.began:
            self._note_false_start(outcome)
            self._waiting.append(trial)
            return None
        self._false_starts = 0
        if not isinstance(outcome, WorkerCrashed):
            return outcome
        trial = replace(trial, deaths=trial.deaths + 1)
        if trial.deaths >= DEATHS_ALONE:
            return _build_quarantined_row(trial, outcome)
        self._waiting.append(trial)
        return None

    def _note_false_start(self, died: WorkerCrashed) -> None:
        self._false_starts += 1
        if self._false_starts == _FALSE_STARTS:
            setting = "engine"
            problem = f"{_FALSE_STARTS} workers in a row ended before they began, by {died.how}"
            remedy = "Read what they printed and run again: what is committed stays"
            raise InvalidSettingError(setting, problem, remedy)


def _build_quarantined_row(trial: IsolatedRetry, died: WorkerCrashed) -> Row:
    """Return the row as a failure that is not retried automatically."""
    detail = f"{trial.deaths} workers that ran nothing else died of it, the last by {died.how}"
    return to_failed_row(trial.row, Failure(FailureReason.QUARANTINED, detail))
