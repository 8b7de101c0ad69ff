"""A private PostgreSQL, one for a session: on a loopback port of its own, and it can be killed."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

USER = "unreel"
_PLACES = Path("/usr/lib/postgresql")
_ORDINARY = ("postgres", "nobody")
"""Whose rights a server takes where root starts it, which it refuses for itself."""


class Postgres:
    """A cluster in a folder of its own; `start`, `kill` and `start` again keep what was committed."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder = folder
        self.password = secrets.token_hex(8)
        self.port = 0
        self._programs = programs
        self._server: subprocess.Popen[bytes] | None = None
        self._as = _ordinary_user(folder)
        secret = folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        given = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        given += [f"--username={USER}", f"--pwfile={secret}", f"--pgdata={folder / 'data'}"]
        command = [str(programs / "initdb"), *given]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **self._as)

    @property
    def programs(self) -> Path:
        """Folder of its own programs."""
        return self._programs

    @property
    def pid(self) -> int:
        """Its own process id; 0 while it is down."""
        return self._server.pid if self._server is not None else 0

    def address(self, database: str = "postgres") -> str:
        """What a ledger or another client opens."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """The address of a new, empty database."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.address(name)

    def drop_database(self, name: str) -> None:
        """Take a database away, with whoever uses it, if it is there."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.address(), autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            connection.execute(drop.format(sql.Identifier(name)))

    def create_schema(self, name: str) -> str:
        """The address of an empty corner of the first database: a thousandth of a database's files."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        return f"{self.address()}?options=-csearch_path%3D{name}"

    def start(self) -> None:
        """Start the server, on the port that it had, and wait until it answers."""
        for _ in range(5):
            with (self.folder / "log").open("ab") as log:
                port = self.port or _free_port()
                given = ["-D", str(self.folder / "data"), "-p", str(port), "-h", "127.0.0.1"]
                given += ["-k", "", "-F"]  # no socket in the file system, no waiting for the disk
                command = [str(self._programs / "postgres"), *given]
                self._server = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=self.folder, **self._as
                )
            if self._answers(port):
                self.port = port
                return
            self.kill()
        said = (self.folder / "log").read_text(errors="replace")[-2000:]
        msg = f"no PostgreSQL came up: {said}"
        raise RuntimeError(msg)

    def kill(self) -> None:
        """End the server and all of its children with -9, as a lost machine would."""
        if self._server is None:
            return
        children = _children(self._server.pid)
        for pid in (self._server.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._server.wait(timeout=30)
        self._server = None
        until_s = time.monotonic() + 30
        # A new server refuses to start while a child of the old one holds its memory.
        while any(map(_runs, children)) and time.monotonic() < until_s:
            time.sleep(0.02)

    def _answers(self, port: int) -> bool:
        import psycopg

        until_s = time.monotonic() + 60
        address = f"postgresql://{USER}:{self.password}@127.0.0.1:{port}/postgres"
        while self._server is not None and self._server.poll() is None:
            try:
                psycopg.connect(address, connect_timeout=5).close()
            except psycopg.OperationalError:
                if time.monotonic() > until_s:
                    return False
                time.sleep(0.1)
            else:
                return True
        return False


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL of this session."""
    pytest.importorskip("psycopg", reason="needs the extra `annotate`")
    if _programs() is None:
        pytest.skip("PostgreSQL is absent: apt-get install postgresql")
    with running() as server:
        yield server


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """A PostgreSQL that is gone afterwards with all that it held."""
    programs = _programs()
    assert programs is not None, "PostgreSQL is absent: apt-get install postgresql"
    # Not below pytest's folder, which nobody but its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="unreel-postgres-"))
    try:
        server = Postgres(programs, folder)
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder)


def _programs() -> Path | None:
    if (found := shutil.which("initdb")) is not None:
        return Path(found).parent
    versions = [path for path in _PLACES.glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def _ordinary_user(folder: Path) -> dict[str, Any]:
    """Arguments that start a program with the rights of the folder's new owner, where root asks."""
    if os.geteuid() != 0:
        return {}
    names = {user.pw_name for user in pwd.getpwall()}
    user = pwd.getpwnam(next(name for name in _ORDINARY if name in names))
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def _children(pid: int) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _runs(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
