"""Find the rows that crash a worker: rows that ran together are retried in isolation.

A crash shows that a worker ended, not why. Any row that was begun in it and not finished may be the
cause; so may the out-of-memory killer, a lost node, or a `kill -9`. Two facts decide:

- a row that crashes its worker does so each time it runs;
- an innocent row returns the first time it is left to run.

So a row with `DEATHS_IN_COMPANY` crashes (see `ledger`) is a suspect. It runs in a fresh worker of
its own, whose crash counts for no other row and only after the row was begun there. `DEATHS_ALONE`
such crashes in sequence are the proof; one return clears it. Between two attempts the other
suspects run, so that one bad minute of the machine does not condemn one row. These crashes are
counted in the driver's memory: if the driver dies the row is still a suspect, and its trial starts
again.

Limit: a row that was killed from outside in each of `DEATHS_ALONE` fresh workers cannot be
distinguished from a crashing one. All causes of a crash have the same weight, because a row that
uses all memory ends by the same SIGKILL as its innocent neighbour. The reasons are in
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
    """A suspect, and how often it died alone in a row."""

    row: Row
    deaths: int = 0


class CrashSuspects:
    """Rows that wait to be run alone, and what their deaths have shown so far."""

    def __init__(self) -> None:
        self._waiting: deque[IsolatedRetry] = deque()
        self._false_starts = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, row: Row) -> None:
        """Let a row wait for its turn."""
        self._waiting.append(IsolatedRetry(row))

    def take(self) -> IsolatedRetry:
        """The suspect whose turn it is."""
        return self._waiting.popleft()

    def judge(self, trial: IsolatedRetry, outcome: Row | WorkerCrashed) -> Row | None:
        """The row that came back or is condemned; `None` where it has to run alone once more.

        Raises:
            InvalidSettingError: No worker of this engine begins any more.
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
