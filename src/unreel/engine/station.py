"""A stage at work inside one process: its permits, its threads, its catch."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from unreel.core.failure import Failure, FailureReason
from unreel.engine.stage import Row, Stage, failed, failure_of, has_failed


class Station:
    """Applies one stage to rows, at most `in_flight` at once; what it raises becomes a failure row.

    Belongs to the event loop in which it is entered.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._limit = stage.resources.in_flight
        self._permits = asyncio.Semaphore(self._limit)
        self._turn = asyncio.Lock()
        self._threads: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> "Station":
        self._stage.setup()
        if not inspect.iscoroutinefunction(type(self._stage).__call__):
            self._threads = ThreadPoolExecutor(self._limit, type(self._stage).__name__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
        closing = self._stage.close()
        if inspect.isawaitable(closing):
            await closing

    async def enter(self) -> None:
        """Wait for a permit; the caller gives it back with `leave`."""
        await self._permits.acquire()

    def leave(self) -> None:
        """Give a permit back."""
        self._permits.release()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold every permit, so that no other row is in flight here."""
        async with self._turn:
            held = 0
            try:
                for _ in range(self._limit):
                    await self._permits.acquire()
                    held += 1
                yield
            finally:
                for _ in range(held):
                    self._permits.release()

    async def apply(self, row: Row) -> Row:
        """The stage's row for this row; a row that failed before passes untouched."""
        if has_failed(row):
            return row
        try:
            done = await self._call(row)
            if not isinstance(done, dict) or done.get("key") != row["key"]:
                name = type(self._stage).__name__
                detail = f"{name} must return a dict with the key it was given; it did not"
                return failed(row, Failure(FailureReason.STAGE_FAILED, detail))
            # Whether a row is new or takes the place of another is not for a stage to say.
            if "attempt" in row:
                done = done | {"attempt": row["attempt"]}
            return failed(done, _stated(done)) if has_failed(done) else done
        except Exception as error:  # noqa: BLE001  a failed item is a row, whatever it raised
            return failed(row, failure_of(error))

    async def _call(self, row: Row) -> Any:
        if self._threads is None:
            return await self._stage(row)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._stage, row)


def _stated(row: Row) -> Failure:
    reason = FailureReason(row["failure_reason"])
    return Failure(reason, str(row.get("failure_detail") or ""))
