"""One run of an external program in its sandbox, with a timeout and a limit on its output."""

import contextlib
import json
import os
import selectors
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from unreel.core.failure import Failure, FailureReason
from unreel.core.managed_process import ManagedProcess
from unreel.reviewers.external import confined_program

OUTPUT_BYTES: Final = 1 << 20
"""Maximum size of a program's output in bytes; a score takes one line."""
_ERROR_BYTES: Final = 4096
"""Number of bytes at the end of a program's stderr that are kept for the log."""
_PIECE_BYTES: Final = 1 << 16
_LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedCommand:
    """Command to run in the sandbox, its writable folder, and its limits."""

    command: Sequence[str]
    folder: Path
    """Only folder that the program may write to."""
    environment: Mapping[str, str]
    seconds: float
    memory_mb: int
    rules: bytes
    """Seccomp filter as a BPF program."""
    bubblewrap: Sequence[str] = ()
    """Command and options of bubblewrap; empty for the weak sandbox."""
    graphics: bool = False
    """Whether the weak sandbox allows the use of GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRunResult:
    """Exit status and output of a program that exited."""

    status: int
    output: bytes
    errors: bytes
    """End of stderr, for a log and never for a table: it may contain data that the program read."""


def run_sandboxed_program(
    job: SandboxedCommand, stop: threading.Event
) -> ProgramRunResult | Failure:
    """Run a program to its exit, timeout or `stop`; a failure if ended early or if it wrote too much."""
    with contextlib.ExitStack() as stack:
        output, output_end = _open_pipe(stack)
        errors, errors_end = _open_pipe(stack)
        plan = json.dumps(
            {
                "folder": str(job.folder),
                "memory_mb": job.memory_mb,
                "filter": job.rules.hex(),
                "bubblewrap": [*job.bubblewrap],
                "graphics": job.graphics,
            }
        )
        # The weak sandbox imports a package for Landlock; bubblewrap needs no packages.
        options = ["-I", "-S"] if job.bubblewrap else ["-I"]
        process = ManagedProcess(
            [sys.executable, *options, str(Path(confined_program.__file__)), plan, *job.command],
            log=output_end,
            errors=errors_end,
            environment=job.environment,
            folder=job.folder,
        )
        stack.callback(process.end)
        output_end.close()
        errors_end.close()
        capture = _OutputCapture(output, errors)
        failure = capture.listen(until_s=time.monotonic() + job.seconds, stop=stop)
        if failure is not None:
            return _build_stop_failure(failure, job)
        return ProgramRunResult(
            status=process.wait(), output=bytes(capture.output), errors=bytes(capture.errors)
        )


class _OutputCapture:
    """Captured stdout of a program, and the end of its stderr."""

    def __init__(self, output: IO[bytes], errors: IO[bytes]) -> None:
        self.output, self.errors = bytearray(), bytearray()
        self._streams = {output.fileno(): self.output, errors.fileno(): self.errors}
        self._first = output.fileno()

    def listen(self, *, until_s: float, stop: threading.Event) -> FailureReason | None:
        """Read until both streams are closed; return `None`, or the reason why reading stopped earlier."""
        with selectors.DefaultSelector() as waiting:
            for stream in self._streams:
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                if stop.is_set():
                    return FailureReason.STOPPED
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return FailureReason.OUT_OF_TIME
                for key, _ in waiting.select(min(_LOOK_S, left_s)):
                    if not self._take(key.fd):
                        waiting.unregister(key.fd)
                if len(self.output) > OUTPUT_BYTES:
                    return FailureReason.REPLY_TOO_LARGE
        return None

    def _take(self, stream: int) -> bool:
        piece = os.read(stream, _PIECE_BYTES)
        self._streams[stream] += piece
        del self.errors[:-_ERROR_BYTES]
        return bool(piece)


def _open_pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    first = stack.enter_context(os.fdopen(reading, "rb", 0))
    return first, stack.enter_context(os.fdopen(writing, "wb", 0))


def _build_stop_failure(reason: FailureReason, job: SandboxedCommand) -> Failure:
    details = {
        FailureReason.OUT_OF_TIME: f"the program gave no answer within {job.seconds:g} s",
        FailureReason.REPLY_TOO_LARGE: f"the program wrote more than {OUTPUT_BYTES} bytes",
    }
    return Failure(reason, details.get(reason, "the program was stopped"))
