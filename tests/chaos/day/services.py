"""Services with the commands and health checks of compose.yaml, restarted whenever they end."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.harness import await_gone, descendants
from deploy.compose import COMPOSE, read_service_command
from reliability.test_clock import SLEEP

READY_WITHIN_S = 900.0
UNREEL = (sys.executable, "-c", f"{SLEEP}from unreel.cli.main import main; main()")


@dataclass
class Service:
    """A process that is started again whenever it ends, as `restart: unless-stopped` does."""

    name: str
    command: Sequence[str]
    health: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    on_end: Callable[[], None] = lambda: None
    """Called after each end, before the next start."""
    n_starts: int = 0
    _process: "subprocess.Popen[bytes] | None" = None
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._keep_up, daemon=True)
        self._thread.start()

    def find_pid(self) -> int:
        """Return the id of the running process, or 0."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    def is_healthy(self) -> bool:
        """Run the health check."""
        environment = os.environ | dict(self.environment)  # noqa: TID251  handed on to a child
        environment.pop("LD_PRELOAD", None)
        check = subprocess.run(self.health, check=False, capture_output=True, env=environment)
        return check.returncode == 0

    def wait_ready(self) -> None:
        """Wait until the health check passes.

        Raises:
            TimeoutError: It did not pass in time.
        """
        until_s = time.monotonic() + READY_WITHIN_S
        while not self.is_healthy():
            if time.monotonic() > until_s:
                msg = f"{self.name} was not healthy within {READY_WITHIN_S:g} s"
                raise TimeoutError(msg)
            time.sleep(0.5)

    def end(self) -> None:
        """Kill the process and everything below it."""
        self._stopped.set()
        if pid := self.find_pid():
            below = descendants(pid)
            assert self._process is not None
            self._process.kill()
            await_gone(below)
        self._thread.join(60)

    def _keep_up(self) -> None:
        environment = os.environ | dict(self.environment)  # noqa: TID251  handed on to a child
        while not self._stopped.is_set():
            with (self.folder / f"{self.name}.log").open("ab") as log:
                self._process = subprocess.Popen(
                    self.command, stdout=log, stderr=log, cwd=self.folder, env=environment
                )
            self.n_starts += 1
            self._process.wait()
            self.on_end()
            self._stopped.wait(1)


def read_health_check(name: str, port: int) -> list[str]:
    """Return the health check of a service of compose.yaml, for its port on this machine."""
    kind, *words = COMPOSE["services"][name]["healthcheck"]["test"]
    assert kind == "CMD"
    words = [re.sub(r"(http://127\.0\.0\.1):\d+/", rf"\1:{port}/", word) for word in words]
    return words if words[0] == "curl" else [*words, "--host", "127.0.0.1", "--port", str(port)]


def build_service(
    name: str, port: int, *, folder: Path, values: Mapping[str, str], **settings: object
) -> Service:
    """Return a service of compose.yaml, on loopback and with its paths in `folder`.

    Args:
        name: Name in compose.yaml.
        port: Port instead of the image's own.
        folder: Folder in place of /etc/unreel and /srv/unreel.
        values: Further replacements of parts of its words.
        settings: Further fields of the service.
    """
    places = {"/etc/unreel": str(folder), "/srv/unreel": str(folder), "0.0.0.0": "127.0.0.1"}
    words = [*read_service_command(name), "--port", str(port)]
    for old, new in (places | dict(values)).items():
        words = [word.replace(old, new) for word in words]
    words = [*UNREEL, *words[1:]]
    return Service(
        name,
        words,
        read_health_check(name, port),
        folder,
        **settings,  # type: ignore[arg-type]
    )
