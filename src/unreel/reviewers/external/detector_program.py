"""`command:NAME`: reviewer that runs a detector program with a clip's path and reads its score."""

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import build_child_environment
from unreel.reviewers.contract import ClipInput, InputKind, WholeClip
from unreel.reviewers.external.detector_scores import (
    DetectorReviewer,
    DetectorScoreInterpretation,
    parse_program_reply,
)
from unreel.reviewers.external.program_sandbox import (
    CLIP_FOLDER,
    SCRATCH,
    build_bubblewrap_command,
    find_program_readable_paths,
    run_sandboxed_program,
)

CLIP_PLACE = "{clip}"
"""Placeholder of the clip's path in a command; without it the path is appended as the last argument."""
_ENDINGS = {"video/webm": "webm", "video/x-matroska": "mkv", "image/gif": "gif"}


def resolve_command_files(command: Sequence[str], base: Path) -> list[str]:
    """Return `command` with absolute paths for all words that name files relative to `base`."""
    return [
        _find_argument_file(word, base, first=number == 0) or word
        for number, word in enumerate(command)
    ]


def resolve_external_program(command: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return `command` with absolute paths, and with the digest of each file instead of its path.

    The first word may be found through PATH. Raise `InvalidSettingError` if the command is empty,
    or its program is missing.
    """
    if not command or not command[0].strip() or any("\0" in word for word in command):
        raise InvalidSettingError(
            "command", "names no program", 'Write command = ["python", "detector.py"]'
        )
    parts = resolve_command_files(command, Path())
    identity = []
    for number, word in enumerate(parts):
        file = _find_argument_file(word, Path(), first=number == 0)
        if file is None and number == 0 and "/" in word:
            raise InvalidSettingError(
                "command", f"no program at {word!a}", "Name a file that can be run"
            )
        identity.append(digest("file", compute_clip_id(Path(file))) if file else word)
    return tuple(parts), identity


def _find_argument_file(word: str, base: Path, *, first: bool) -> str | None:
    """Return the absolute path of `word`; `None` if no file, or `first` without slash (found by PATH)."""
    if CLIP_PLACE in word or (first and "/" not in word):
        return None
    file = base / Path(word).expanduser()
    try:
        return str(file.absolute()) if file.is_file() else None
    except (OSError, ValueError):
        return None


class DetectorProgramReviewer(DetectorReviewer):
    """Reviewer that runs a sandboxed detector program on each clip and answers by its score.

    Raise `MachineError` if this machine cannot sandbox programs, or `InvalidSettingError` if the
    program is in a home, temporary or system folder.
    """

    def __init__(
        self,
        name: str,
        command: tuple[str, ...],
        interpretation: DetectorScoreInterpretation,
        *,
        seconds: float,
        max_concurrent: int,
        graphics: bool,
    ) -> None:
        super().__init__(name, InputKind.CLIP, interpretation)
        self._command = command
        self._seconds = seconds
        self._graphics = graphics
        self._readable = find_program_readable_paths(command)
        self._slots = asyncio.Semaphore(max(1, min(max_concurrent, os.cpu_count() or 1)))

    async def request_score(self, clip_input: ClipInput, key: str) -> Any | Failure:  # noqa: ARG002
        if clip_input.whole is None:
            detail = "not asked: the clip's file is not shown"
            return Failure(FailureReason.REQUEST_REJECTED, detail)
        stop = threading.Event()
        async with self._slots:
            try:
                output = await asyncio.to_thread(self._run, clip_input.whole, stop)
            finally:
                stop.set()
        return output if isinstance(output, Failure) else parse_program_reply(output)

    async def close(self) -> None:
        """Do nothing: each program exits after its clip."""

    def _run(self, whole: WholeClip, stop: threading.Event) -> bytes | Failure:
        with TemporaryDirectory(prefix="unreel-", ignore_cleanup_errors=True) as folder:
            ending = _ENDINGS.get(whole.mime, "mp4")
            clip = OutputDirectory(Path(folder)).write(f"clip.{ending}", whole.data)
            place = str(CLIP_FOLDER / clip.name)
            command = [word.replace(CLIP_PLACE, place) for word in self._command]
            if not any(CLIP_PLACE in word for word in self._command):
                command.append(place)
            variables = {"HOME": SCRATCH, "TMPDIR": SCRATCH, "USER": "unreel", "LOGNAME": "unreel"}
            return run_sandboxed_program(
                build_bubblewrap_command(self._readable, clip=clip, graphics=self._graphics),
                command,
                name=self.name,
                environment=build_child_environment(variables, {}),
                seconds=self._seconds,
                stop=stop,
            )
