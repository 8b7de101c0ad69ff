"""Server process that is started here, monitored until it is ready, and stopped completely."""

import os
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.managed_process import ManagedProcess
from unreel.core.output_files import OutputDirectory

_LOOK_S = 0.5
_TAIL = 12
_TAIL_BYTES = 64 << 10
_LINE = 200


def require_free_port(host: str, port: int) -> None:
    """Raise if a port is in use: a server might silently take the next one.

    Raise `InvalidSettingError` if a server cannot listen on `host` and `port`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            reason = error.strerror or str(error)
            raise InvalidSettingError(
                "--port",
                f"{host}:{port} cannot be used ({reason})",
                "Stop the program that listens there, or give another with --port",
            ) from error


class ManagedServer:
    """A server process that ends with `end`, or with the process that started it.

    All output is appended to the file `log` in `folder`, the working directory. `environment` is
    complete.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        folder: Path,
        log: str,
        environment: Mapping[str, str],
    ) -> None:
        self._name = name
        self._log = folder / log
        with OutputDirectory(folder).append(log) as opened:
            self._began = opened.tell()
            self._leash = ManagedProcess(
                command, log=opened, environment=environment, folder=folder
            )

    @property
    def is_alive(self) -> bool:
        """Return whether the server process still runs."""
        return self._leash.is_alive

    def wait_until(
        self, is_up: Callable[[], bool], on_output: Callable[[str], None], *, seconds: float
    ) -> None:
        """Wait until `is_up` returns true, and pass the server's output to the callback `on_output`.

        Raise `MachineError` if the server exited, or did not start within `seconds`.
        """
        until_s, last = time.monotonic() + seconds, ""
        while self.is_alive and time.monotonic() < until_s:
            if is_up():
                return
            if (tail := self._last_words(1)) and tail[0] != last:
                last = tail[0]
                on_output(f"starting {self._name}: {last}")
            time.sleep(_LOOK_S)
        raise self._failed(
            f"{self._name} was not up after {seconds:.0f} s"
            if self.is_alive
            else f"{self._name} ended"
        )

    def wait(self) -> None:
        """Wait until the server exits; always raise `MachineError`, because the exit was not requested."""
        self._leash.wait()
        raise self._failed(f"{self._name} ended")

    def end(self) -> None:
        """Stop the server and all its processes; a second call does nothing."""
        self._leash.end()

    def plain_line(self, line: str) -> str:
        """Return a log line without details that only the server's developers need."""
        return line

    def _last_words(self, n: int) -> list[str]:
        with self._log.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._began, end - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        stripped = [self.plain_line(line).strip()[:_LINE] for line in lines]
        return [line for line in stripped if re.search(r"\w", line)][-n:]

    def _failed(self, problem: str) -> MachineError:
        remedy = "Its last lines follow; fix the problem and start it again"
        error = MachineError(problem, remedy)
        for line in self._last_words(_TAIL):
            error.add_note(f"  {line}")
        return error
