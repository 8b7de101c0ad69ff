"""Rows that crash a worker: rows that ran together are retried, each in a process of its own.

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
docs/decisions/decisions-of-0.1.md#0013.
"""

import asyncio
import fcntl
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any

from unreel.core.errors import InvalidSettingError, InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.engine.stage import Row, Stage, convert_to_failed_row
from unreel.engine.stage_worker import StageChain

DEATHS_ALONE = 5
_FALSE_STARTS = 10


@dataclass(frozen=True, slots=True)
class WorkerCrash:
    """Crash of the worker that ran one suspect row in isolation."""

    how: str
    began: bool
    """Whether the row was started; a worker that ends before that says nothing about the row."""


CrashSuspect = tuple[Row, int]
"""Row that may crash its worker, and the number of its consecutive crashes in isolation."""


class CrashSuspectQueue:
    """Queue of rows that wait to run in isolation, with their crash counts."""

    def __init__(self) -> None:
        self._waiting: deque[CrashSuspect] = deque()
        self._false_starts = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, row: Row) -> None:
        """Add a row to the end of the queue."""
        self._waiting.append((row, 0))

    def take(self) -> CrashSuspect:
        """Remove and return the next suspect row from the queue."""
        return self._waiting.popleft()

    def judge(self, suspect: CrashSuspect, outcome: Row | WorkerCrash) -> Row | None:
        """Return the finished or quarantined row; `None` if the row must run in isolation again.

        Raise `InvalidSettingError` if ten workers in sequence ended before they began a row.
        """
        if isinstance(outcome, WorkerCrash) and not outcome.began:
            self._false_starts += 1
            if self._false_starts == _FALSE_STARTS:
                raise InvalidSettingError(
                    "engine",
                    f"{_FALSE_STARTS} workers in a row ended before they began, by {outcome.how}",
                    "Read their output and run again: committed results are kept",
                )
            self._waiting.append(suspect)
            return None
        self._false_starts = 0
        if not isinstance(outcome, WorkerCrash):
            return outcome
        row, deaths = suspect[0], suspect[1] + 1
        if deaths >= DEATHS_ALONE:
            detail = f"{deaths} workers that ran nothing else died of it, the last by {outcome.how}"
            return convert_to_failed_row(row, Failure(FailureReason.QUARANTINED, detail))
        self._waiting.append((row, deaths))
        return None


_BEGAN, _DONE = "began", "done"
_PEACE_S = 10.0
"""Timeout for the exit of a process that has returned its row."""


class IsolatedProcess:
    """Callable that runs one row through the stages in a new process, killed on cancellation.

    The stages are pickled by the constructor: create the object before their `setup` is called.
    Raise `InvalidValueError` if a stage cannot be pickled.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        try:
            self._stages = pickle.dumps(list(stages))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InvalidValueError(
                f"rows whose worker died run in a process of their own, and a stage cannot be sent "
                f"there: {error}. Define it in a module, without open files in `__init__`"
            ) from error

    async def __call__(self, row: Row) -> Row | WorkerCrash:
        """Run the row in a fresh process; return the finished row, or how the process crashed."""
        # Spawned, because a fork of a process with threads can deadlock.
        spawn = multiprocessing.get_context("spawn")
        pipe, child_end = spawn.Pipe()
        process = spawn.Process(
            target=_run_stages_in_child, args=(child_end, self._stages, row), name="suspect"
        )
        process.start()
        child_end.close()
        try:
            messages, done = await asyncio.to_thread(_receive_child_messages, pipe)
            await asyncio.to_thread(process.join, _PEACE_S)
        finally:
            process.kill()
            process.join()
            pipe.close()
        if done is not None:
            return done
        code = process.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        return WorkerCrash(how, began=messages == [_BEGAN])


def _receive_child_messages(pipe: Any) -> tuple[list[str], Row | None]:
    messages: list[str] = []
    try:
        while True:
            word, row = pipe.recv()
            if word == _DONE:
                return messages, row
            messages.append(word)
    except (EOFError, OSError):
        return messages, None


def _run_stages_in_child(pipe: Any, stages: bytes, row: Row) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles Ctrl-C
    fcntl.fcntl(pipe.fileno(), fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    threading.Thread(target=_exit_when_driver_ends, daemon=True).start()
    walk = StageChain(pickle.loads(stages))  # noqa: S301  made by the driver, a moment ago
    pipe.send((_BEGAN, None))
    pipe.send((_DONE, walk.take(row)))
    walk.close()


def _exit_when_driver_ends() -> None:
    driver = multiprocessing.parent_process()
    if driver is not None:
        connection.wait([driver.sentinel])
        os._exit(1)
