"""`command:NAME`: a program that is given the path of a clip and writes its score."""

import asyncio
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.plain import plain
from unreel.core.settings import server_environment
from unreel.core.writing import Folder
from unreel.reviewers.contract import Exhibit, Material, Sheet
from unreel.reviewers.floors.phrasing import phrase
from unreel.reviewers.outside.cage import NOT_CONFINED, NOT_STARTED
from unreel.reviewers.outside.program import Program
from unreel.reviewers.outside.running import Ended, Job, run_caged
from unreel.reviewers.outside.scores import Reading, read_last_line

logger = logging.getLogger(__name__)

_MEMORY_MB: Final = 16_384
_ENDINGS: Final = {"video/webm": "webm", "video/x-matroska": "mkv", "image/gif": "gif"}
_SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Timeout per clip, and number of concurrent programs."""

    seconds: float = 120.0
    at_once: int = 2


class CommandReviewer:
    """Asks a program about each clip apart, confined, and phrases its belief as the instrument wants it."""

    def __init__(self, name: str, program: Program, reading: Reading, pace: Pace) -> None:
        self._name = name
        self._program = program
        self._reading = reading
        self._pace = pace
        self._turns = asyncio.Semaphore(max(1, min(pace.at_once, os.cpu_count() or 1)))

    def __repr__(self) -> str:
        return f"CommandReviewer({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def wants(self) -> frozenset[Material]:
        return frozenset({Material.CLIP})

    def box_space(self, exhibit: Exhibit) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, sheet: Sheet) -> Reply | Failure:
        beliefs: list[float] = []
        for exhibit in sheet.exhibits:
            belief = await self._ask(exhibit)
            if isinstance(belief, Failure):
                return belief
            beliefs.append(belief)
        return phrase(sheet, beliefs)

    async def close(self) -> None:
        """Nothing to close: no program outlives its clip."""

    async def _ask(self, exhibit: Exhibit) -> float | Failure:
        if exhibit.whole is None:
            return Failure(
                FailureReason.REQUEST_REJECTED, "not asked: the clip's file is not shown"
            )
        stop = threading.Event()
        async with self._turns:
            try:
                ended = await asyncio.to_thread(self._run, exhibit, stop)
            finally:
                stop.set()
        if isinstance(ended, Failure):
            return ended
        if ended.status:
            return self._mishap(ended)
        told = read_last_line(ended.output)
        return told if isinstance(told, Failure) else self._reading.believe(told)

    def _run(self, exhibit: Exhibit, stop: threading.Event) -> Ended | Failure:
        assert exhibit.whole is not None  # noqa: S101  looked at by the caller
        ending = _ENDINGS.get(exhibit.whole.mime, "mp4")
        with TemporaryDirectory(prefix="unreel-", ignore_cleanup_errors=True) as room:
            folder = Folder(Path(room))
            # Beside the folder that it may write to, so that it cannot change the clip.
            clip = folder.write(f"shown/clip.{ending}", exhibit.whole.data)
            scratch = folder.make("scratch")
            job = Job(
                command=self._program.with_clip(clip),
                folder=scratch,
                environment=server_environment({"TMPDIR": str(scratch)}, {}),
                seconds=self._pace.seconds,
                memory_mb=_MEMORY_MB,
            )
            return run_caged(job, stop)

    def _mishap(self, ended: Ended) -> Failure:
        last = ended.errors.decode(errors="replace").strip().rpartition("\n")[2]
        logger.warning("%s: status %d: %s", self._name, ended.status, plain(last)[:400])
        if ended.status == NOT_CONFINED:
            detail = "not asked: this machine cannot confine the program. Run `unreel doctor`"
            return Failure(FailureReason.REQUEST_REJECTED, detail)
        if ended.status == NOT_STARTED:
            detail = f"{self._program.command[0]!a} cannot be run"
            return Failure(FailureReason.REQUEST_REJECTED, detail)
        if ended.status > _SIGNALLED:
            detail = f"the program died of signal {ended.status - _SIGNALLED}"
            return Failure(FailureReason.WORKER_DIED, detail)
        return Failure(FailureReason.SERVER_ERROR, f"the program ended with status {ended.status}")
