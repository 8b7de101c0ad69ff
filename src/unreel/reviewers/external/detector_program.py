"""`command:NAME`: reviewer that runs a detector program with a clip's path and reads its score."""

import asyncio
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from unreel.core.answer import Reply
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError
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
from unreel.reviewers.external.detector_scores import (
    DetectorScoreInterpretation,
    parse_program_reply,
)
from unreel.reviewers.external.program_run import ProgramRunResult, run_sandboxed_program

CLIP_PLACE = "{clip}"
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
        raise InvalidSettingError(
            "command", "names no program", 'Write command = ["python", "detector.py"]'
        )
    parts = resolve_command_files(command, base)
    if "/" in command[0] and not _is_existing_file(Path(parts[0])):
        raise InvalidSettingError(
            "command", f"there is no program at {parts[0]!a}", "Name a file that can be run"
        )
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

_ENDINGS = {"video/webm": "webm", "video/x-matroska": "mkv", "image/gif": "gif"}
_SIGNALLED = 128


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
        interpretation: DetectorScoreInterpretation,
        settings: ExternalProgramSettings,
    ) -> None:
        self._name = name
        self._program = program
        self._reading = interpretation
        self._terms = settings
        require_program_sandbox()
        self._readable = find_program_readable_paths(program.command)
        self._turns = asyncio.Semaphore(max(1, min(settings.at_once, os.cpu_count() or 1)))

    def __repr__(self) -> str:
        return f"CommandReviewer({self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def wants(self) -> frozenset[InputKind]:
        return frozenset({InputKind.CLIP})

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        posteriors: list[float] = []
        for clip_input in request.inputs:
            posterior = await self._ask(clip_input)
            if isinstance(posterior, Failure):
                return posterior
            posteriors.append(posterior)
        return format_baseline_answer(request, posteriors)

    async def close(self) -> None:
        """Do nothing: each program exits after its clip."""

    async def _ask(self, clip_input: ClipInput) -> float | Failure:
        if clip_input.whole is None:
            return Failure(
                FailureReason.REQUEST_REJECTED, "not asked: the clip's file is not shown"
            )
        stop = threading.Event()
        async with self._turns:
            try:
                ended = await asyncio.to_thread(self._run, clip_input, stop)
            finally:
                stop.set()
        if isinstance(ended, Failure):
            return ended
        if ended.status:
            return self._mishap(ended)
        reply = parse_program_reply(ended.output)
        return reply if isinstance(reply, Failure) else self._reading.believe(reply)

    def _run(self, clip_input: ClipInput, stop: threading.Event) -> ProgramRunResult | Failure:
        assert clip_input.whole is not None  # noqa: S101  looked at by the caller
        ending = _ENDINGS.get(clip_input.whole.mime, "mp4")
        with TemporaryDirectory(prefix="unreel-", ignore_cleanup_errors=True) as room:
            clip = OutputDirectory(Path(room)).write(f"clip.{ending}", clip_input.whole.data)
            folders = {"HOME": SCRATCH, "TMPDIR": SCRATCH}
            return run_sandboxed_program(
                build_bubblewrap_command(self._readable, clip=clip, graphics=self._terms.graphics),
                self._program.with_clip(CLIP_FOLDER / clip.name),
                environment=build_child_environment(
                    folders | {"USER": "unreel", "LOGNAME": "unreel"}, {}
                ),
                seconds=self._terms.seconds,
                stop=stop,
            )

    def _mishap(self, result: ProgramRunResult) -> Failure:
        last = result.errors.decode(errors="replace").strip().rpartition("\n")[2]
        logger.warning("%s: status %d: %s", self._name, result.status, sanitise_line(last)[:400])
        if not result.was_started:
            detail = f"{self._program.command[0]!a} cannot be run in its sandbox: {last[:200]}"
            return Failure(FailureReason.REQUEST_REJECTED, sanitise_line(detail))
        if result.status > _SIGNALLED:
            detail = f"the program died of signal {result.status - _SIGNALLED}"
            return Failure(FailureReason.WORKER_DIED, detail)
        return Failure(FailureReason.SERVER_ERROR, f"the program ended with status {result.status}")
