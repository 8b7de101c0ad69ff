"""Label Studio as a child: found, started, waited for, and ended with all that it started."""

import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from unreel.annotate.studio.settings import (
    CLIPS,
    StudioPlan,
    forget_connection,
    own_database,
    remember_connection,
    studio_environment,
    studio_secrets,
)
from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.leash import Leash
from unreel.core.settings import server_environment
from unreel.core.writing import Folder

UP_S: Final = 900.0
"""The first start makes 300 tables, which takes minutes on a busy machine."""
_LOG: Final = "studio.log"
_LOOK_S: Final = 0.5
_TAIL: Final = 12
_LINE: Final = 200
_FAILED: Final = "Its last lines follow; mend what they say and start it again"
_INSTALL: Final = (
    "Install it in an environment of its own, `python -m venv env && env/bin/pip install "
    "label-studio==1.23.2`, and name it: --program env/bin/label-studio"
)
_OURS: Final = frozenset({"LABEL_STUDIO_USER_TOKEN", "LABEL_STUDIO_PASSWORD", "POSTGRE_PASSWORD"})


def find_program(named: Path | None) -> Path:
    """The `label-studio` that was named, or that lies on the path.

    Raises:
        InvalidSettingError: There is none.
    """
    found = shutil.which(str(named or "label-studio"))
    if found is None:
        problem = f"{named} is no program" if named else "there is no `label-studio` on the path"
        setting = "--program"
        raise InvalidSettingError(setting, problem, _INSTALL)
    return Path(found).absolute()


def require_free(plan: StudioPlan) -> None:
    """Refuse a port where somebody listens: Label Studio would take the next one without a word.

    Raises:
        InvalidSettingError: It cannot listen there.
    """
    family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((plan.host, plan.port))
        except OSError as error:
            words = error.strerror or str(error)
            problem = f"{plan.host}:{plan.port} cannot be used ({words})"
            remedy = "Stop what listens there, or give another with --port"
            setting = "--port"
            raise InvalidSettingError(setting, problem, remedy) from error


def make_database(ledger: str) -> str:
    """Address of Label Studio's own database beside the ledger's, made where it is not there.

    Raises:
        MachineError: The server cannot be reached, or does not let this user make one.
    """
    if not (address := own_database(ledger)):
        return ""
    import psycopg
    from psycopg import sql

    name = urlsplit(address).path.lstrip("/")
    try:
        with psycopg.connect(ledger.replace("+psycopg", "", 1), autocommit=True) as connection:
            there = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(there, [name]).fetchone() is None:
                make = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
                connection.execute(make)
    except psycopg.Error as error:
        problem = f"the database {name!a} cannot be made ({type(error).__name__})"
        remedy = f"Make it yourself, `createdb {name}`, with the ledger's user as its owner"
        raise MachineError(problem, remedy) from None
    return address


@contextmanager
def running(plan: StudioPlan, *, tell: Callable[[str], None]) -> Iterator["StudioServer"]:
    """The server of `plan`, up and answering; when the context ends, so does all of it.

    Raises:
        MachineError: It ended, or did not come up in time.
    """
    server = StudioServer(plan)
    try:
        server.wait_until_up(tell)
        server.require_own_token()
        remember_connection(plan.folder, plan.address)
        yield server
    finally:
        server.end()
        forget_connection(plan.folder)


class StudioServer:
    """A started server. `end` it."""

    def __init__(self, plan: StudioPlan) -> None:
        require_free(plan)
        self._plan = plan
        self._log = plan.folder / _LOG
        state = Folder(plan.folder)
        state.make("data")
        state.make(CLIPS)
        own = studio_secrets(plan.folder)
        command = [str(plan.program), "start", "--no-browser", "--enable-legacy-api-token"]
        command += ["--internal-host", plan.host, "-p", str(plan.port)]
        fixed = studio_environment(plan, own)
        environment = server_environment(fixed, {}, keep=_OURS)
        with state.append(_LOG) as log:
            self._began = log.tell()
            self._leash = Leash(command, log=log, environment=environment, folder=plan.folder)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._leash.is_alive

    def wait_until_up(self, tell: Callable[[str], None], *, seconds: float = UP_S) -> None:
        """Come back when it answers; `tell` hears what it says till then.

        Raises:
            MachineError: It ended, or did not come up in time.
        """
        until_s, said = time.monotonic() + seconds, ""
        while self.is_alive and time.monotonic() < until_s:
            if self._is_up():
                return
            if (now := self._last_words(1)) and now[0] != said:
                said = now[0]
                tell(f"starting Label Studio: {said}")
            time.sleep(_LOOK_S)
        is_late = f"Label Studio was not up after {seconds:.0f} s"
        raise self._failed(is_late if self.is_alive else "Label Studio ended")

    def require_own_token(self) -> None:
        """Refuse a database that another state was begun with: no command could speak to it.

        Raises:
            MachineError: It does not know our token.
        """
        token = studio_secrets(self._plan.folder).token
        if self._ask("/api/current-user/whoami", token) == HTTPStatus.UNAUTHORIZED:
            problem = f"Label Studio's database does not know the token of {self._plan.folder}"
            remedy = "Give --state the folder that it was first started with, or another database"
            raise MachineError(problem, remedy)

    def wait(self) -> None:
        """Come back when it ended by itself.

        Raises:
            MachineError: Always then: nobody told it to.
        """
        self._leash.wait()
        problem = "Label Studio ended"
        raise self._failed(problem)

    def end(self) -> None:
        """End it and all that it started; harmless when called twice."""
        self._leash.end()

    def _is_up(self) -> bool:
        return self._ask("/health") == HTTPStatus.OK

    def _ask(self, path: str, token: str = "") -> int:
        """The status of its reply; 0 where none comes."""
        address = urlsplit(self._plan.address)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
        headers = {"Authorization": f"Token {token}"} if token else {}
        try:
            connection.request("GET", path, headers=headers)
            reply = connection.getresponse()
            reply.read(1 << 16)
        except (OSError, HTTPException):
            return 0
        else:
            return reply.status
        finally:
            connection.close()

    def _last_words(self, n: int) -> list[str]:
        with self._log.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._began, end - (64 << 10)))
            lines = log.read().decode(errors="replace").splitlines()
        words = [line.strip()[:_LINE] for line in lines]
        return [line for line in words if re.search(r"\w", line)][-n:]

    def _failed(self, problem: str) -> MachineError:
        error = MachineError(problem, _FAILED)
        for line in self._last_words(_TAIL):
            error.add_note(f"  {line}")
        return error
