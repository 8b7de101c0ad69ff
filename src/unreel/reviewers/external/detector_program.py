"""`command:NAME`: reviewer that runs a detector program with a clip's path and reads its score."""

import asyncio
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from unreel.core.answer import Reply
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import build_child_environment
from unreel.reviewers.baselines.constant import format_baseline_answer
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.external.bubblewrap import (
    CLIP_FOLDER,
    SCRATCH,
    build_bubblewrap_command,
    find_program_readable_paths,
    require_program_sandbox,
)
from unreel.reviewers.external.confined_program import NOT_CONFINED, NOT_STARTED
from unreel.reviewers.external.detector_scores import (
    DetectorScoreInterpretation,
    parse_program_reply,
)
from unreel.reviewers.external.program_run import (
    ProgramRunResult,
    SandboxedCommand,
    run_sandboxed_program,
)
from unreel.reviewers.external.syscall_filter import build_syscall_filter
from unreel.reviewers.external.watchdog import OVER_LIMIT

CLIP_PLACE: Final = "{clip}"
"""Placeholder of the clip's path in a command; without it the path is appended as the last argument."""


@dataclass(frozen=True, slots=True)
class ExternalProgramCommand:
    """Command line of an external program, with absolute paths for its files."""

    command: tuple[str, ...]
    identity: tuple[str, ...]
    """Words of the command, with the digest of each file instead of its path."""

    def with_clip(self, clip: Path) -> list[str]:
        """Return the command line of the program for the clip at the path `clip`."""
        if any(CLIP_PLACE in word for word in self.command):
            return [word.replace(CLIP_PLACE, str(clip)) for word in self.command]
        return [*self.command, str(clip)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalProgramSettings:
    """Settings of an external program: timeout per clip, concurrency and sandbox."""

    seconds: float = 120.0
    at_once: int = 2
    graphics: bool = False
    """Whether the program may use the GPUs."""
    weak: bool = False
    """Whether the program runs without bubblewrap, so that it can read all files of its user."""


def resolve_command_files(command: Sequence[str], base: Path) -> list[str]:
    """Return `command` with absolute paths for all words that name files relative to `base`."""
    return [
        _resolve_argument_file(word, base, first=number == 0) or word
        for number, word in enumerate(command)
    ]


def resolve_external_program(command: Sequence[str], base: Path) -> ExternalProgramCommand:
    """Resolve the program and the files of `command`, with paths relative to `base`.

    The first word may be found through PATH.

    Raises:
        InvalidSettingError: The command is empty, or its program is missing.
    """
    if not command or not command[0].strip() or any("\0" in word for word in command):
        setting, problem = "command", "names no program"
        raise InvalidSettingError(setting, problem, 'Write command = ["python", "detector.py"]')
    parts = resolve_command_files(command, base)
    if "/" in command[0] and not _is_existing_file(Path(parts[0])):
        setting, problem = "command", f"there is no program at {parts[0]!a}"
        raise InvalidSettingError(setting, problem, "Name a file that can be run")
    files = [
        _resolve_argument_file(word, base, first=number == 0) for number, word in enumerate(parts)
    ]
    identity = [
        digest("file", compute_clip_id(Path(file))) if file else word
        for word, file in zip(parts, files, strict=True)
    ]
    return ExternalProgramCommand(tuple(parts), tuple(identity))


def _resolve_argument_file(word: str, base: Path, *, first: bool) -> str | None:
    """Return the absolute path of `word`; `None` if no file, or `first` without slash (found by PATH)."""
    if CLIP_PLACE in word or (first and "/" not in word):
        return None
    file = base / Path(word).expanduser()
    return str(file.absolute()) if _is_existing_file(file) else None


def _is_existing_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


logger = logging.getLogger(__name__)

_MEMORY_MB: Final = 16_384
_ENDINGS: Final = {"video/webm": "webm", "video/x-matroska": "mkv", "image/gif": "gif"}
_SIGNALLED: Final = 128
_NOT_FOUND: Final = "bwrap: execvp"
_TOO_MUCH: Final = "the program took more than 16 GiB, half of the memory, or 512 threads"


class DetectorProgramReviewer:
    """Reviewer that runs a sandboxed detector program on each clip and answers by its score.

    Raises:
        MachineError: This machine cannot sandbox programs.
        InvalidSettingError: The program is in a home, temporary or system folder.
    """

    def __init__(
        self,
        name: str,
        program: ExternalProgramCommand,
        reading: DetectorScoreInterpretation,
        terms: ExternalProgramSettings,
    ) -> None:
        self._name = name
        self._program = program
        self._reading = reading
        self._terms = terms
        if not terms.weak:
            require_program_sandbox()
        self._readable = () if terms.weak else find_program_readable_paths(program.command)
        try:
            self._rules = build_syscall_filter()
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
        return format_baseline_answer(sheet, beliefs)

    async def close(self) -> None:
        """Do nothing: each program exits after its clip."""

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
        reply = parse_program_reply(ended.output)
        return reply if isinstance(reply, Failure) else self._reading.believe(reply)

    def _run(self, exhibit: ClipInput, stop: threading.Event) -> ProgramRunResult | Failure:
        assert exhibit.whole is not None  # noqa: S101  looked at by the caller
        ending = _ENDINGS.get(exhibit.whole.mime, "mp4")
        with TemporaryDirectory(prefix="unreel-", ignore_cleanup_errors=True) as room:
            folder = OutputDirectory(Path(room))
            # Outside the writable folder, so that the program cannot change the clip.
            clip = folder.write(f"shown/clip.{ending}", exhibit.whole.data)
            return run_sandboxed_program(self._job(clip, folder.make("scratch")), stop)

    def _job(self, clip: Path, scratch: Path) -> SandboxedCommand:
        terms, home, wrapped = self._terms, str(scratch), list[str]()
        if not terms.weak:
            wrapped = build_bubblewrap_command(self._readable, clip=clip, graphics=terms.graphics)
            clip, home = CLIP_FOLDER / clip.name, SCRATCH
        fixed = {"HOME": home, "TMPDIR": home, "USER": "unreel", "LOGNAME": "unreel"}
        return SandboxedCommand(
            command=self._program.with_clip(clip),
            folder=scratch,
            environment=build_child_environment(fixed, {}),
            seconds=terms.seconds,
            memory_mb=_MEMORY_MB,
            rules=self._rules,
            bubblewrap=wrapped,
            graphics=terms.graphics,
        )

    def _mishap(self, ended: ProgramRunResult) -> Failure:
        last = ended.errors.decode(errors="replace").strip().rpartition("\n")[2]
        logger.warning("%s: status %d: %s", self._name, ended.status, sanitise_line(last)[:400])
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
