"""Execution of stages inside one process: limits of rows in flight, threads, failure rows."""

import asyncio
import inspect
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from unreel.core.errors import raise_if_key_rejected, raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.engine.stage import (
    Row,
    Stage,
    convert_error_to_failure,
    convert_to_failed_row,
    is_failed_row,
)


class StageWorker:
    """Worker that applies one stage to at most `in_flight` rows at once; by default the stage's limit.

    An exception of the stage becomes a failure row. The worker belongs to the event loop in which
    it is entered.
    """

    def __init__(self, stage: Stage, *, in_flight: int | None = None) -> None:
        self._stage = stage
        self._limit = in_flight or stage.resources.in_flight
        self._permits = asyncio.Semaphore(self._limit)
        self._threads: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> "StageWorker":
        self._stage.setup()
        if not inspect.iscoroutinefunction(type(self._stage).__call__):
            self._threads = ThreadPoolExecutor(self._limit, type(self._stage).__name__)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
        closing = self._stage.close()
        if inspect.isawaitable(closing):
            await closing

    async def enter(self) -> None:
        """Wait for a permit to run one row through the stage; the caller returns it with `leave`."""
        await self._permits.acquire()

    def leave(self) -> None:
        """Return the permit of one row."""
        self._permits.release()

    async def apply(self, row: Row) -> Row:
        """Return the result of the stage for `row`; a row that has already failed is returned unchanged."""
        if is_failed_row(row):
            return row
        try:
            if self._threads is None:
                done = await self._stage(row)
            else:
                loop = asyncio.get_running_loop()
                done = await loop.run_in_executor(self._threads, self._stage, row)
            if not isinstance(done, dict) or done.get("key") != row["key"]:
                name = type(self._stage).__name__
                detail = f"{name} must return a dict with the key it was given; it did not"
                return convert_to_failed_row(row, Failure(FailureReason.STAGE_FAILED, detail))
            # A stage may not decide whether a row is new or replaces another.
            if "attempt" in row:
                done = done | {"attempt": row["attempt"]}
            if not is_failed_row(done):
                return done
            reason = FailureReason(done["failure_reason"])
            failure = Failure(reason, str(done.get("failure_detail") or ""))
            raise_if_key_rejected(failure)
            return convert_to_failed_row(done, failure)
        except Exception as error:  # noqa: BLE001  a failed item is a row, whatever it raised
            raise_if_machine_error(error)
            return convert_to_failed_row(row, convert_error_to_failure(error))


class StageChain:
    """Sequence of stages for a worker that runs a single suspect row."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._loop = asyncio.new_event_loop()
        self._workers = [self._wait(StageWorker(stage).__aenter__()) for stage in stages]

    def ready(self) -> None:
        """Do nothing: the reply shows that the stages are set up, so that only the row can cause a crash."""

    def take(self, row: Row) -> Row:
        """Return the row after all stages."""
        for worker in self._workers:
            row = self._wait(worker.apply(row))
        return row

    def close(self) -> None:
        """Close all stages after a normal end."""
        for worker in self._workers:
            self._wait(worker.__aexit__(None, None, None))

    def _wait(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)
