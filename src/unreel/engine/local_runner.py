"""Runner of stages in this process: async stages on an event loop, sync stages in threads.

A row that was in flight when earlier drivers died runs at the end, in a separate process.
"""

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from unreel.core.errors import UnreelError
from unreel.engine.crash_suspects import CrashSuspectQueue, IsolatedProcess
from unreel.engine.stage import Row, RowSink, Stage, format_start_log_item
from unreel.engine.stage_worker import StageWorker
from unreel.engine.start_log import ItemStartLog

_PULL_ROWS = 256
_PULL_S = 0.02
_POLL_S = 0.002
_SIGNAL_S = 0.01


class LocalRunner:
    """Runner that executes all stages in this process, without start-up time.

    A row acquires the next stage's permit before it releases its own. At most the sum of all
    `in_flight` rows is therefore in memory, and a slow last stage slows the first.
    """

    def run(
        self, rows: Iterable[Row], stages: Sequence[Stage], *, sink: RowSink, ledger: Path
    ) -> None:
        """Run every row through the stages in this process, and pass finished rows to `sink`.

        After an interrupt the sink has all rows that were finished.
        """
        with ItemStartLog(ledger) as start_log:
            job = _LocalJob(iter(rows), stages, sink=sink, start_log=start_log)
            thread = threading.Thread(target=job.main, name="local-runner", daemon=True)
            thread.start()
            try:
                # The event loop has its own thread, so that Ctrl-C is raised here and not in a stage.
                # A signal handler's exception within `Event.wait` could leave the event locked,
                # which would block the other thread for ever. Only a sleep can be interrupted.
                while not job.ended:
                    time.sleep(_SIGNAL_S)
            except BaseException:
                job.stop()
                thread.join()
                start_log.withdraw()
                raise
            thread.join()
            if job.error is not None:
                start_log.withdraw()
                raise job.error


class _LocalJob:
    def __init__(
        self,
        rows: Iterator[Row],
        stages: Sequence[Stage],
        *,
        sink: RowSink,
        start_log: ItemStartLog,
    ) -> None:
        self.ended = False
        self.error: BaseException | None = None
        self._rows, self._stages, self._sink, self._ledger = rows, stages, sink, start_log
        self._workers: list[StageWorker] = []
        self._suspects = CrashSuspectQueue()
        self._alone = IsolatedProcess(stages) if start_log.has_suspects() else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._source_error: Exception | None = None

    def main(self) -> None:
        try:
            asyncio.run(self._drive())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            self.error = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error
        finally:
            self.ended = True

    def stop(self) -> None:
        self._stopped = True
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _drive(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        async with AsyncExitStack() as stack:
            # A single thread, because each thread keeps the memory of its largest lookup.
            source = stack.enter_context(ThreadPoolExecutor(1, "source"))
            self._workers = [
                await stack.enter_async_context(StageWorker(stage)) for stage in self._stages
            ]
            async with asyncio.TaskGroup() as group:
                while chunk := await self._loop.run_in_executor(source, self._pull):
                    await self._dispatch_all(chunk, group)
        if self._source_error is not None:
            raise self._source_error
        if self._alone is not None:
            while self._suspects:
                suspect = self._suspects.take()
                outcome = await self._alone(suspect[0])
                row = self._suspects.judge(suspect, outcome)
                if row is outcome:
                    self._ledger.finish(format_start_log_item(suspect[0]))
                if row is not None:
                    await self._deliver(row)

    def _pull(self) -> list[Row]:
        chunk: list[Row] = []
        until_s = time.monotonic() + _PULL_S
        try:
            for row in self._rows:
                chunk.append(row)
                if len(chunk) == _PULL_ROWS or time.monotonic() > until_s or self._stopped:
                    break
        except Exception as error:  # noqa: BLE001  raised once the rows before it are through
            self._source_error, self._rows = error, iter(())
        return chunk

    async def _dispatch_all(self, chunk: list[Row], group: asyncio.TaskGroup) -> None:
        """Start the rows of a chunk; if the sink is not ready, start no more and finish those in flight."""
        for row in chunk:
            await self._workers[0].enter()
            try:
                self._sink.require_ready()
            except UnreelError as error:
                self._source_error, self._rows = error, iter(())
                return
            if self._ledger.is_suspect(format_start_log_item(row)):
                self._suspects.add(row)
                self._workers[0].leave()
            else:
                group.create_task(self._walk(row))

    async def _walk(self, row: Row) -> None:
        """Run `row` through all stages into the sink; the caller holds a permit of the first worker."""
        item, worker = format_start_log_item(row), self._workers[0]
        self._ledger.begin(item)
        try:
            row = await worker.apply(row)
            for following in self._workers[1:]:
                await following.enter()
                worker.leave()
                worker = following
                row = await worker.apply(row)
            self._ledger.finish(item)
            await self._deliver(row)
        finally:
            worker.leave()

    async def _deliver(self, row: Row) -> None:
        try:
            while not self._sink.offer(row):
                await asyncio.sleep(_POLL_S)
        except asyncio.CancelledError:
            self._sink.add(row)  # a finished row must not be lost by an interrupt
            raise
