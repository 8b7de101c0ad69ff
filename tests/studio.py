"""The real Label Studio on a real PostgreSQL, one for a session, and both can be killed with -9."""

import contextlib
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres import Postgres
from unreel.annotation.studio.client import (
    CLIPS,
    LabelStudioConnection,
    LabelStudioServer,
    LabelStudioServerSettings,
    load_studio_secrets,
    store_studio_connection,
)

_BESIDE = Path(sys.prefix).parent / "studio" / "bin" / "label-studio"
"""Where .ci/run puts it: an environment of its own beside the one of the tests."""


class Studio:
    """A server that keeps its port, its rows and its files over `kill` and `start`."""

    def __init__(self, program: Path, folder: Path, database: str) -> None:
        self.folder = folder
        self.plan = LabelStudioServerSettings(
            program=program, folder=folder, port=free_port(), database=database
        )
        self._server: LabelStudioServer | None = None

    @property
    def address(self) -> str:
        return self.plan.address

    @property
    def token(self) -> str:
        """Of the account by which commands speak."""
        return load_studio_secrets(self.folder).token

    @property
    def media(self) -> Path:
        """Copies that lie here are served."""
        return self.folder / CLIPS

    @property
    def connection(self) -> LabelStudioConnection:
        return LabelStudioConnection(address=self.address, token=self.token, media=self.media)

    @property
    def pids(self) -> list[int]:
        """The server's own processes, without the leash."""
        assert self._server is not None
        held = self._server._leash._holder.pid
        found, waiting = [], [held]
        while waiting:
            children = _children(waiting.pop())
            found += children
            waiting += children
        return found

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers."""
        self._server = LabelStudioServer(self.plan)
        self._server.wait_until_up(lambda _said: None)
        store_studio_connection(self.folder, self.address)

    def kill(self) -> None:
        """End it with -9, as a lost machine would."""
        assert self._server is not None
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.end()
        self._server = None

    def end(self) -> None:
        if self._server is not None:
            self._server.end()


@pytest.fixture(scope="session")
def studio(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A running Label Studio of this session; its first start takes a minute of one core."""
    server = Studio(
        studio_program(),
        tmp_path_factory.mktemp("studio"),
        postgres.create_database(f"session_{time.monotonic_ns()}_studio"),
    )
    try:
        server.start()
        yield server
    finally:
        server.end()


def studio_program() -> Path:
    """Label Studio's program, from its own environment or from the path."""
    if _BESIDE.exists():
        return _BESIDE
    found = shutil.which("label-studio")
    if found is None:
        pytest.skip("`label-studio` is absent: install it in an environment of its own")
    return Path(found)


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def _children(pid: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
