"""Worker that reviews the queued cases of a desk, a few at a time, in a separate thread."""

import asyncio
import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress

from unreel.core.failure import Failure, FailureReason
from unreel.desk.case_store import CaseRecord, CaseStore
from unreel.desk.review_case import CaseReviewTools, record_case_failure, review_case
from unreel.desk.reviewer_sets import OpenReviewerSet
from unreel.desk.settings import DeskSettings
from unreel.engine.stage import convert_error_to_failure
from unreel.media.reader import MediaReader
from unreel.reviewers.factory import ReviewerPool

_N_DURATIONS = 20
_DAY_S = 86_400.0
_STOP_S = 10.0
_RETRY_S = 30.0
"""Seconds until a case is tried again whose files or log could not be written."""
_LONG_S = 90.0
"""Remaining seconds above which the time is shown in minutes."""


class CaseReviewWorker:
    """Worker that reviews the queued cases of one desk in the event loop of a separate thread.

    Call `start` and `close` in one thread; other methods may be called in any thread.

    Args:
        store: Store of the cases; reviews of unfinished cases are resumed.
        sets: Reviewer sets by name.
        settings: Limits, and the age at which cases are moved to the trash.
        open_reader: Function that opens the media reader.
    """

    def __init__(
        self,
        store: CaseStore,
        sets: Mapping[str, OpenReviewerSet],
        settings: DeskSettings,
        open_reader: Callable[[], AbstractContextManager[MediaReader]],
    ) -> None:
        self._store, self._sets, self._settings = store, sets, settings
        self._open_reader = open_reader
        self._waiting: dict[str, int] = {}
        """Position in the queue of each case in it, counted from the first case of this process."""
        self._n_added = self._n_taken = 0
        self._steps: dict[str, str] = {}
        """Current steps of the cases in progress."""
        self._postponed: set[str] = set()
        """Cases that wait for space on the disk."""
        self._durations_s: deque[float] = deque(maxlen=_N_DURATIONS)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._queue: asyncio.Queue[CaseRecord] = asyncio.Queue()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="desk-worker", daemon=True)

    def start(self) -> None:
        """Start the thread, and queue the unfinished cases of an earlier process."""
        self._thread.start()
        for case in reversed(self._store.select()):
            if not case.is_ended:
                self.add(case)

    def add(self, case: CaseRecord) -> None:
        """Append a case to the queue."""
        self._postponed.discard(case.id)
        self._waiting[case.id] = self._n_added
        self._n_added += 1
        self._loop.call_soon_threadsafe(self._queue.put_nowait, case)

    def delete(self, case: CaseRecord, person: str) -> None:
        """Hide a case now, and delete its files; if it is under review, when the review ends."""
        case.is_deleted = True
        with suppress(OSError):  # a full disk allows no entry in the log, which is deleted too
            self._store.record(case, "deleted", person)
        self._waiting.pop(case.id, None)
        if case.id not in self._steps:
            self._store.remove(case)

    def describe(self, case: CaseRecord) -> str:
        """Return the progress of a case as a sentence."""
        if (number := self._waiting.get(case.id)) is not None:
            ahead = max(0, number - self._n_taken) + len(self._steps)
            before = "1 case before it" if ahead == 1 else f"{ahead} cases before it"
            return f"Waiting: {before}{self._format_remaining_time(ahead)}."
        if case.is_ended:
            return (
                case.sentence
                if case.damage
                else "Done."
                if case.stage == "done"
                else "Not reviewed."
            )
        if case.id in self._postponed:
            return f"The disk is full, or cannot be written. Tried again every {_RETRY_S:.0f} s."
        if (step := self._steps.get(case.id)) is None:
            return "Interrupted. The next start of the desk continues it."
        if case.stage == "shown":
            return f"The evidence is ready. {step}."
        return f"{step}{self._format_remaining_time(0)}."

    def close(self) -> None:
        """Stop the thread; the next start resumes the cases that are under review."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_STOP_S)
        else:
            self._runner.close()

    def _format_remaining_time(self, ahead: int) -> str:
        if not self._durations_s:
            return ", remaining time not known yet"
        mean_s = sum(self._durations_s) / len(self._durations_s)
        remaining_s = mean_s * (ahead / self._settings.at_once + 1)
        is_long = remaining_s >= _LONG_S
        amount = f"{round(remaining_s / 60)} min" if is_long else f"{remaining_s:.0f} s"
        return f", about {amount} left"

    def _run(self) -> None:
        with self._runner:
            self._runner.run(self._work())

    async def _work(self) -> None:
        with self._open_reader() as reader:
            tools = CaseReviewTools(store=self._store, reader=reader)
            async with ReviewerPool() as pool:
                jobs = [self._take_cases(tools, pool) for _ in range(self._settings.at_once)]
                tasks = [asyncio.create_task(job) for job in (*jobs, self._trash_old_cases())]
                await self._stopped.wait()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _take_cases(self, tools: CaseReviewTools, pool: ReviewerPool) -> None:
        while True:
            case = await self._queue.get()
            self._n_taken += 1
            began_s = time.monotonic()
            # The step is set before the check, and `delete` checks in the opposite order.
            self._steps[case.id] = "Starting"
            self._waiting.pop(case.id, None)
            try:
                if not case.is_deleted:
                    await self._review(case, tools, pool)
                    self._durations_s.append(time.monotonic() - began_s)
            except OSError:  # the disk is full, or the log cannot be written
                self._postponed.add(case.id)
                self._loop.call_later(_RETRY_S, self.add, case)
            finally:
                self._steps.pop(case.id)
            if case.is_deleted:
                await asyncio.to_thread(self._store.remove, case)

    async def _review(self, case: CaseRecord, tools: CaseReviewTools, pool: ReviewerPool) -> None:
        """Review one case; an exception becomes the failure of this case."""

        def set_step(step: str) -> None:
            self._steps[case.id] = step

        try:
            if not await asyncio.to_thread(self._store.check, case):
                return
            self._store.record(case, "started")
            reviewer_set = self._sets.get(case.reviewers)
            if reviewer_set is None:
                detail = f"the desk has no reviewer set named {case.reviewers!r} now"
                record_case_failure(case, self._store, Failure(FailureReason.STOPPED, detail))
                return
            reviewers = [pool.open(factory) for factory in reviewer_set.factories]
            await review_case(case, tools, reviewer_set, reviewers, set_step)
        except Exception as error:  # a failed clip is a failed case, whatever it raised
            if os.strerror(errno.ENOSPC) in str(error):  # Lance names it in the text only
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            record_case_failure(case, self._store, convert_error_to_failure(error))

    async def _trash_old_cases(self) -> None:
        while self._settings.retain_days is not None:
            with suppress(OSError):
                await asyncio.to_thread(self._store.move_old_to_trash, self._settings.retain_days)
            await asyncio.sleep(_DAY_S)
