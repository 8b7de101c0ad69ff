"""Runs one command and ends all of it, whatever becomes of whoever asked: a process of its own.

A server starts processes that start processes, and a graphics card stays taken for as long as one of
them lives. So the caller holds the other end of a pipe: when it closes, by a word or because the caller
was killed, everything that the command started is ended.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 10.0
"""For the command to end by itself before it is killed."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LOOK_S: Final = 0.2


def hold(pipe: int, command: list[str]) -> int:
    """Run `command` until it ends or `pipe` closes; its exit status, 128 and more for a signal."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the caller decides, and its end closes the pipe
    libc = ctypes.CDLL(None, use_errno=True)
    # Those whose parents are gone become children of this process, and are found.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    owner = os.getpid()

    def die_with_leash() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != owner:
            os._exit(1)

    held = subprocess.Popen(  # noqa: S603  what the caller's plan says
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_leash,  # noqa: PLW1509  no thread is here
    )
    while held.poll() is None:
        ready, _, _ = select.select([pipe], [], [], _LOOK_S)
        if ready and not os.read(pipe, 1):
            _end(held)
    _kill_orphans()
    return held.returncode if held.returncode >= 0 else 128 - held.returncode


def _end(held: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        held.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        held.wait(PATIENCE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(held.pid, signal.SIGKILL)
    held.wait()


def _kill_orphans() -> None:
    """End what was left behind, also what made a group of its own."""
    until_s = time.monotonic() + PATIENCE_S
    while (left := _children()) and time.monotonic() < until_s:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_LOOK_S / 4)


def _children() -> list[int]:
    try:
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in listed.split()]


if __name__ == "__main__":
    sys.exit(hold(int(sys.argv[1]), sys.argv[2:]))
