"""Local Label Studio server as a child process, and creation of its database."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from unreel.annotation.studio.settings import (
    CLIPS,
    LabelStudioServerSettings,
    build_studio_database_url,
    build_studio_environment,
    delete_studio_connection,
    load_studio_secrets,
    store_studio_connection,
)
from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.managed_server import ManagedServer, require_free_port
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import build_child_environment

UP_S: Final = 900.0
"""Start timeout in seconds; the first start creates 300 tables, which takes minutes on a busy machine."""
_LOG: Final = "studio.log"
_INSTALL: Final = (
    "Install it in an environment of its own, `python -m venv env && env/bin/pip install "
    "label-studio==1.23.2`, and name it: --program env/bin/label-studio"
)
_OURS: Final = frozenset({"LABEL_STUDIO_USER_TOKEN", "LABEL_STUDIO_PASSWORD", "POSTGRE_PASSWORD"})


def find_label_studio_program(named: Path | None) -> Path:
    """Return the program `named`, or `label-studio` in `PATH`; raise `InvalidSettingError` if missing."""
    program = shutil.which(str(named or "label-studio"))
    if program is None:
        problem = f"{named} is no program" if named else "there is no `label-studio` on the path"
        setting = "--program"
        raise InvalidSettingError(setting, problem, _INSTALL)
    return Path(program).absolute()


def create_studio_database(ledger: str) -> str:
    """Create Label Studio's database on the ledger's database server if missing; return its URL.

    Return "" if the ledger is a file.

    Raises:
        MachineError: The server is unreachable, or the user may not create databases.
    """
    if not (address := build_studio_database_url(ledger)):
        return ""
    import psycopg
    from psycopg import sql

    name = urlsplit(address).path.lstrip("/")
    try:
        with psycopg.connect(ledger.replace("+psycopg", "", 1), autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [name]).fetchone() is None:
                make = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
                connection.execute(make)
    except psycopg.Error as error:
        problem = f"the database {name!a} cannot be made ({type(error).__name__})"
        remedy = f"Make it yourself, `createdb {name}`, with the ledger's user as its owner"
        raise MachineError(problem, remedy) from None
    return address


@contextmanager
def start_label_studio(
    plan: LabelStudioServerSettings, *, tell: Callable[[str], None]
) -> Iterator["LabelStudioServer"]:
    """Start a Label Studio server, yield it once it responds, and stop it when the context ends.

    `plan` contains the settings of the server; `tell` is called with its output.

    Raises:
        MachineError: The server exited, or did not start before the timeout.
    """
    server = LabelStudioServer(plan)
    try:
        server.wait_until_up(tell)
        server.require_own_token()
        store_studio_connection(plan.folder, plan.address)
        yield server
    finally:
        server.end()
        delete_studio_connection(plan.folder)


class LabelStudioServer(ManagedServer):
    """Running Label Studio process; call `end` to stop it."""

    def __init__(self, plan: LabelStudioServerSettings) -> None:
        require_free_port(plan.host, plan.port)
        self._plan = plan
        state = OutputDirectory(plan.folder)
        state.make("data")
        state.make(CLIPS)
        own = load_studio_secrets(plan.folder)
        command = [str(plan.program), "start", "--no-browser", "--enable-legacy-api-token"]
        command += ["--internal-host", plan.host, "-p", str(plan.port)]
        environment = build_child_environment(build_studio_environment(plan, own), {}, keep=_OURS)
        super().__init__(
            "Label Studio", command, folder=plan.folder, log=_LOG, environment=environment
        )

    def wait_until_up(self, tell: Callable[[str], None], *, seconds: float = UP_S) -> None:
        """Wait until Label Studio responds; call `tell` with its output meanwhile.

        Raises:
            MachineError: The server exited, or did not start within `seconds`.
        """
        self.wait_until(lambda: self._ask("/health") == HTTPStatus.OK, tell, seconds=seconds)

    def require_own_token(self) -> None:
        """Check that the server accepts the token in its state folder.

        Raises:
            MachineError: The server's database was created with another state folder.
        """
        token = load_studio_secrets(self._plan.folder).token
        if self._ask("/api/current-user/whoami", token) == HTTPStatus.UNAUTHORIZED:
            problem = f"Label Studio's database does not know the token of {self._plan.folder}"
            remedy = "Give --state the folder that it was first started with, or another database"
            raise MachineError(problem, remedy)

    def _ask(self, path: str, token: str = "") -> int:
        """Send a GET request and return the status of the reply; 0 if there is no reply."""
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
