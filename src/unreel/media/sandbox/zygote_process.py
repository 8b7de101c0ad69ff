"""Zygote process from the view of its caller: starts it, sends requests to it, and stops it."""

import contextlib
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unreel.core.errors import SandboxError
from unreel.media.sandbox.zygote import LONGEST_MESSAGE

_START_SECONDS = 60
_END_SECONDS = 5

# Isolated mode ignores PYTHON* variables and the working folder, so the search path is passed on:
# the zygote imports the same modules as its caller.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[5:]; "
    "from unreel.media.sandbox.zygote import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4].split(','))"
)

_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",  # ldconfig, which finds libseccomp
    # One thread and one heap: a fork keeps only the thread that called it, and reserved address
    # space counts against the limit.
    "MALLOC_ARENA_MAX": "1",
    # A child keeps the memory of one frame for the next: by default glibc frees large blocks at
    # once; allocating them again causes half of a scan's page faults and a tenth of its time.
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class ZygoteProcess:
    """Running zygote with the task table at `target` loaded and the tasks `names` warmed up.

    Raises:
        SandboxError: The zygote did not start.
    """

    def __init__(self, target: str, names: Iterable[str]) -> None:
        if platform.system() != "Linux":
            raise SandboxError("untrusted files are opened on Linux only")
        self.owner = os.getpid()
        self._control, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child_end:
            arguments = [str(child_end.fileno()), str(self.owner), target, ",".join(names)]
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter and code
                [
                    sys.executable,
                    "-I",
                    "-c",
                    _BOOT,
                    *arguments,
                    *[entry for entry in sys.path if Path(entry).is_absolute()],
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[child_end.fileno()],
                env=_ENVIRONMENT,
                cwd="/",
                start_new_session=True,  # Ctrl-C in a terminal is for the caller.
            )
        try:
            message = self._first_words()
            self.tasks: tuple[str, ...] = tuple(message["tasks"])
            self.missing: tuple[str, ...] = tuple(message["missing"])
            """Confinement layers that this machine lacks."""
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        """Return the process id of the zygote."""
        return self._process.pid

    def hand_over(self, task: str, *descriptors: int) -> None:
        """Send the name of `task` and copies of `descriptors` to the zygote process.

        Raises:
            OSError: The process has ended.
        """
        socket.send_fds(self._control, [task.encode()], descriptors)

    def end(self) -> None:
        """Close the connection and wait until the zygote and all of its children have exited."""
        self._control.close()
        if self.owner != os.getpid():
            return  # A fork of the caller must not stop the process.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the zygote immediately."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _first_words(self) -> dict[str, Any]:
        self._control.settimeout(_START_SECONDS)
        try:
            message = json.loads(self._control.recv(LONGEST_MESSAGE) or "{}")
        except TimeoutError:
            message = {"problem": f"it sent no message for {_START_SECONDS} s"}
        self._control.settimeout(None)
        if "tasks" not in message:
            problem = message.get("problem", "it ended immediately")
            raise SandboxError(f"the process that opens media files did not start: {problem}")
        return dict(message)
