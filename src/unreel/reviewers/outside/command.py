"""`command:NAME`: a program that is given the path of a clip and writes its score."""

import asyncio
import logging
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from unreel.core.answer import Reply
from unreel.core.errors import MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.core.plain import plain
from unreel.core.settings import server_environment
from unreel.core.writing import OutputDirectory
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.floors.phrasing import phrase
from unreel.reviewers.outside.bubblewrap import (
    CLIP_FOLDER,
    SCRATCH,
    bubblewrap_command,
    find_readable,
    require_cage,
)
from unreel.reviewers.outside.cage import NOT_CONFINED, NOT_STARTED
from unreel.reviewers.outside.program import ExternalProgram, ProgramSettings
from unreel.reviewers.outside.running import ProgramExit, ProgramJob, run_caged
from unreel.reviewers.outside.scores import ScoreInterpretation, read_last_line
from unreel.reviewers.outside.syscall_filter import build_filter
from unreel.reviewers.outside.watchdog import OVER_LIMIT

logger = logging.getLogger(__name__)

_MEMORY_MB: Final = 16_384
_ENDINGS: Final = {"video/webm": "webm", "video/x-matroska": "mkv", "image/gif": "gif"}
_SIGNALLED: Final = 128
_NOT_FOUND: Final = "bwrap: execvp"
_TOO_MUCH: Final = "the program took more than 16 GiB, half of the memory, or 512 threads"


class CommandReviewer:
    """Asks a program about each clip apart, confined, and phrases its belief as the instrument wants it.

    Raises:
        MachineError: This machine cannot confine programs.
        InvalidSettingError: The program's folder holds what is not its own.
    """

    def __init__(
        self,
        name: str,
        program: ExternalProgram,
        reading: ScoreInterpretation,
        terms: ProgramSettings,
    ) -> None:
        self._name = name
        self._program = program
        self._reading = reading
        self._terms = terms
        if not terms.weak:
            require_cage()
        self._readable = () if terms.weak else find_readable(program.command)
        try:
            self._rules = build_filter()
        except (ImportError, OSError, RuntimeError) as error:
            problem = f"programs cannot be confined without libseccomp ({type(error).__name__})"
            raise MachineError(problem, "Install it with `apt-get install libseccomp2`") from error
        self._turns = asyncio.Semaphore(max(1, min(terms.at_once, os.cpu_count() or 1)))

    def __repr__(self) -> str:
        return f"CommandReviewer({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset({InputKind.CLIP})

    def box_space(self, exhibit: ClipInput) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, sheet: ReviewRequest) -> Reply | Failure:
        beliefs: list[float] = []
        for exhibit in sheet.exhibits:
            belief = await self._ask(exhibit)
            if isinstance(belief, Failure):
                return belief
            beliefs.append(belief)
        return phrase(sheet, beliefs)

    async def close(self) -> None:
        """Nothing to close: no program outlives its clip."""

    async def _ask(self, exhibit: ClipInput) -> float | Failure:
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

    def _run(self, exhibit: ClipInput, stop: threading.Event) -> ProgramExit | Failure:
        assert exhibit.whole is not None  # noqa: S101  looked at by the caller
        ending = _ENDINGS.get(exhibit.whole.mime, "mp4")
        with TemporaryDirectory(prefix="unreel-", ignore_cleanup_errors=True) as room:
            folder = OutputDirectory(Path(room))
            # Beside the folder that it may write to, so that it cannot change the clip.
            clip = folder.write(f"shown/clip.{ending}", exhibit.whole.data)
            return run_caged(self._job(clip, folder.make("scratch")), stop)

    def _job(self, clip: Path, scratch: Path) -> ProgramJob:
        terms, own, wrapped = self._terms, str(scratch), list[str]()
        if not terms.weak:
            wrapped = bubblewrap_command(self._readable, clip=clip, graphics=terms.graphics)
            clip, own = CLIP_FOLDER / clip.name, SCRATCH
        fixed = {"HOME": own, "TMPDIR": own, "USER": "unreel", "LOGNAME": "unreel"}
        return ProgramJob(
            command=self._program.with_clip(clip),
            folder=scratch,
            environment=server_environment(fixed, {}),
            seconds=terms.seconds,
            memory_mb=_MEMORY_MB,
            rules=self._rules,
            bubblewrap=wrapped,
            graphics=terms.graphics,
        )

    def _mishap(self, ended: ProgramExit) -> Failure:
        last = ended.errors.decode(errors="replace").strip().rpartition("\n")[2]
        logger.warning("%s: status %d: %s", self._name, ended.status, plain(last)[:400])
        if ended.status == OVER_LIMIT:
            return Failure(FailureReason.OUT_OF_MEMORY, _TOO_MUCH)
        if ended.status in {NOT_STARTED, NOT_CONFINED}:
            detail = "not asked: this machine cannot confine the program. Run `unreel doctor`"
            if ended.status == NOT_STARTED or last.startswith(_NOT_FOUND):
                detail = f"{self._program.command[0]!a} cannot be run in its cage"
            return Failure(FailureReason.REQUEST_REJECTED, detail)
        if ended.status > _SIGNALLED:
            detail = f"the program died of signal {ended.status - _SIGNALLED}"
            return Failure(FailureReason.WORKER_DIED, detail)
        return Failure(FailureReason.SERVER_ERROR, f"the program ended with status {ended.status}")
