"""Supervision of one command: all its processes exit with the caller.

A server starts child processes, and a GPU stays in use until all of them exit. So the caller keeps
the other end of a pipe open: when it closes, on request or because the caller was killed, every
process of the command is killed.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

STOP_TIMEOUT_S = 10.0
"""Timeout for the command to exit before it is killed."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.2


class ManagedProcess:
    """Running command whose processes all end with `end`, or with the process that started it.

    `log` gets all output; `errors`, if given, gets stderr. `environment` is the complete
    environment.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: IO[bytes],
        errors: IO[bytes] | None = None,
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        reading, self._pipe = os.pipe()
        try:
            self._holder = subprocess.Popen(  # noqa: S603  our own code, then the caller's command
                [sys.executable, "-I", "-S", __file__, str(reading), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log if errors is None else errors,
                pass_fds=[reading],
                env=dict(environment),
                cwd=folder,
                start_new_session=True,  # Ctrl-C in a terminal reaches only the caller.
            )
        finally:
            os.close(reading)

    @property
    def is_alive(self) -> bool:
        """Return whether the command still runs."""
        return self._holder.poll() is None

    def wait(self) -> int:
        """Wait until the process ends, and return its exit status: 128 or more if a signal ended it."""
        return self._holder.wait()

    def end(self) -> None:
        """Stop the command and all its processes; a second call does nothing."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._holder.wait(3 * STOP_TIMEOUT_S)
        if self.is_alive:
            self._holder.kill()
            self._holder.wait()


def run_supervised_command(pipe: int, command: list[str]) -> int:
    """Run `command` until it ends or `pipe` closes; return its exit status, 128 or more for a signal."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only closing the pipe stops the command
    libc = ctypes.CDLL(None, use_errno=True)
    # Orphaned processes become children of this process, so that they can be found.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    owner = os.getpid()

    def die_with_leash() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != owner:
            os._exit(1)

    process = subprocess.Popen(  # noqa: S603  what the caller's plan says
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_leash,  # noqa: PLW1509  no thread is here
    )
    ended = os.pidfd_open(process.pid)
    while process.poll() is None:
        ready, _, _ = select.select([pipe, ended], [], [])
        if pipe in ready and not os.read(pipe, 1):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    # The remaining processes, including those in groups of their own.
    until_s = time.monotonic() + STOP_TIMEOUT_S
    while (left := _list_child_processes()) and time.monotonic() < until_s:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_LOOK_S / 4)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _list_child_processes() -> list[int]:
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in listed.split()]


if __name__ == "__main__":
    sys.exit(run_supervised_command(int(sys.argv[1]), sys.argv[2:]))
