"""Queue of cases: a few at a time are reviewed in the event loop of a separate thread."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.desk.case_state import ENDED, CaseRecord
from unreel.desk.cases import CaseStore
from unreel.desk.review_case import CaseTools, record_failure, review_case
from unreel.desk.reviewer_sets import OpenSet
from unreel.desk.settings import DeskSettings
from unreel.engine.stage import to_failure
from unreel.media.access import media_reader
from unreel.reviewers.ask import ReviewDispatcher
from unreel.reviewers.factory import ReviewerPool

_MEASURED: Final = 20
_RETENTION: Final = "retention"
_HOUR_S: Final = 3600.0
_STOP_S: Final = 10.0
_LONG_S: Final = 90.0
"""Remaining time from which on minutes are shown."""
_READY: Final = {
    "shown": "The evidence is ready; the annotated copy is being drawn",
    "done": "Done",
    "failed": "Not reviewed",
}


@dataclass(frozen=True, slots=True)
class CaseProgress:
    """Present state of a case, for a page."""

    stage: str
    text: str

    def to_json(self, case: CaseRecord) -> dict[str, Any]:
        """Return the event for a browser."""
        return {"id": case.id, "stage": self.stage, "text": self.text, "sentence": case.sentence}


class CaseWorker:
    """Worker of one desk. `start` and `close` it in one thread; other methods may be called anywhere.

    Args:
        store: Cases; unfinished ones are taken up again.
        sets: Reviewer sets by name.
        settings: Limits, and the age at which cases are deleted.
        environment: Limits of the process that opens files.
    """

    def __init__(
        self,
        store: CaseStore,
        sets: Mapping[str, OpenSet],
        *,
        settings: DeskSettings,
        environment: EnvironmentSettings,
    ) -> None:
        self._store, self._sets = store, sets
        self._settings, self._environment = settings, environment
        self._waiting: dict[str, CaseRecord] = {}
        self._steps: dict[str, str] = {}
        self._spent_s: deque[float] = deque(maxlen=_MEASURED)
        self.version = 0
        """Number of changes of progress."""
        self._loop = asyncio.new_event_loop()
        self._queue: asyncio.Queue[CaseRecord] = asyncio.Queue()
        self._thread = threading.Thread(target=self._run, name="desk-worker", daemon=True)
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """Begin to work, first on the cases that an earlier process left."""
        self._thread.start()
        for case in reversed(self._store.select()):
            if case.stage not in ENDED:
                self.add(case)

    def add(self, case: CaseRecord) -> None:
        """Put a case at the end of the queue."""
        self._waiting[case.id] = case
        self.version += 1
        self._loop.call_soon_threadsafe(self._queue.put_nowait, case)

    def delete(self, case: CaseRecord, person: str) -> None:
        """Delete a case now; the files of one that is under work go when its present step ends."""
        self._store.delete(case, person)
        self._waiting.pop(case.id, None)
        if case.id not in self._steps:
            self._store.remove(case)

    def describe(self, case: CaseRecord) -> CaseProgress:
        """Return the progress of a case as text."""
        if case.stage in ENDED or (case.stage == "shown" and case.id not in self._waiting):
            text = _READY[case.stage]
            if case.stage == "shown" and (step := self._steps.get(case.id)):
                text = f"The evidence is ready. {step}"
            return CaseProgress(case.stage, f"{text}.")
        ids = list(self._waiting)
        if case.id in self._waiting:
            ahead = ids.index(case.id) + len(self._steps)
            before = "1 case before it" if ahead == 1 else f"{ahead} cases before it"
            return CaseProgress("waiting", f"Waiting: {before}{self._format_rest(ahead)}.")
        step = self._steps.get(case.id, "Starting")
        return CaseProgress("working", f"{step}{self._format_rest(0)}.")

    def close(self) -> None:
        """Stop; cases under work are taken up again by the next start."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_STOP_S)

    def _format_rest(self, ahead: int) -> str:
        if not self._spent_s:
            return ", remaining time not known yet"
        mean_s = sum(self._spent_s) / len(self._spent_s)
        seconds = mean_s * (ahead / self._settings.at_once + 1)
        return (
            f", about {max(1, round(seconds))} s"
            if seconds < _LONG_S
            else f", about {round(seconds / 60)} min"
        )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._work())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _work(self) -> None:
        with ExitStack() as held:
            reading = media_reader(
                self._environment, trusted=self._settings.trusted, at_once=("probe", "frames")
            )
            reader = held.enter_context(reading)
            dispatcher = ReviewDispatcher(reader)
            held.callback(dispatcher.close)
            tools = CaseTools(
                store=self._store,
                reader=reader,
                dispatcher=dispatcher,
                without_seccomp=bool(self._environment.media_without_seccomp),
            )
            async with ReviewerPool() as pool:
                jobs = [self._take_cases(tools, pool) for _ in range(self._settings.at_once)]
                tasks = [asyncio.create_task(job) for job in (*jobs, self._delete_old_cases())]
                await self._stopped.wait()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _take_cases(self, tools: CaseTools, pool: ReviewerPool) -> None:
        while True:
            case = await self._queue.get()
            if case.is_deleted or self._waiting.pop(case.id, None) is None:
                continue
            began_s = time.monotonic()
            self._step(case, "Starting")
            try:
                await self._review(case, tools, pool)
            finally:
                self._steps.pop(case.id, None)
                self.version += 1
            self._spent_s.append(time.monotonic() - began_s)
            if case.is_deleted:
                self._store.remove(case)

    async def _review(self, case: CaseRecord, tools: CaseTools, pool: ReviewerPool) -> None:
        """Review a case; whatever it raises is the failure of this case."""
        try:
            self._store.record(case, "started")
            chosen = self._sets.get(case.reviewers)
            if chosen is None:
                detail = f"desk.toml has no reviewer set named {case.reviewers!r}"
                record_failure(case, self._store, Failure(FailureReason.STOPPED, detail))
                return
            reviewers = [pool.open(factory) for factory in chosen.factories]
            await review_case(case, tools, chosen, reviewers, lambda step: self._step(case, step))
        except Exception as error:  # noqa: BLE001  a failed clip is a failed case, whatever it raised
            if not case.is_deleted:
                record_failure(case, self._store, to_failure(error))

    async def _delete_old_cases(self) -> None:
        while self._settings.retain_days is not None:
            for case in self._store.list_old(self._settings.retain_days):
                self.delete(case, _RETENTION)
            await asyncio.sleep(_HOUR_S)

    def _step(self, case: CaseRecord, step: str) -> None:
        self._steps[case.id] = step
        self.version += 1
