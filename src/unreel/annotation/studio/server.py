"""Local Label Studio server as a child process, its database, and accounts of annotators.

Label Studio's call for new users creates an account without an organisation, so the sign-up form is
used. A password is stored before its account is created: a kill between the two loses no login.
"""

import json
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from unreel.annotation.campaign import Annotator
from unreel.annotation.studio.client import (
    CLIPS,
    DEADLINE_S,
    LabelStudioClient,
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
from unreel.network.http_client import open_blocking_http_client

UP_S = 900.0
"""Start timeout in seconds; the first start creates 300 tables, which takes minutes on a busy machine."""
_LOG = "studio.log"
_INSTALL = (
    "Install it in an environment of its own, `python -m venv env && env/bin/pip install "
    "label-studio==1.23.2`, and name it: --program env/bin/label-studio"
)
_OURS = frozenset({"LABEL_STUDIO_USER_TOKEN", "LABEL_STUDIO_PASSWORD", "POSTGRE_PASSWORD"})


def find_label_studio_program(named: Path | None) -> Path:
    """Return the program `named`, or `label-studio` in `PATH`; raise `InvalidSettingError` if missing."""
    program = shutil.which(str(named or "label-studio"))
    if program is None:
        raise InvalidSettingError(
            "--program",
            f"{named} is no program" if named else "there is no `label-studio` on the path",
            _INSTALL,
        )
    return Path(program).absolute()


def create_studio_database(ledger: str) -> str:
    """Create Label Studio's database on the ledger's database server if missing; return its URL.

    Return "" if the ledger is a file.
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
        raise MachineError(
            f"the database {name!a} cannot be made ({type(error).__name__})",
            f"Make it yourself, `createdb {name}`, with the ledger's user as its owner",
        ) from None
    return address


@contextmanager
def start_label_studio(
    settings: LabelStudioServerSettings, *, tell: Callable[[str], None]
) -> Iterator["LabelStudioServer"]:
    """Start a Label Studio server, yield it once it responds, and stop it when the context ends.

    `settings` contains the settings of the server; `tell` is called with its output.
    """
    server = LabelStudioServer(settings)
    try:
        server.wait_until_up(tell)
        server.require_own_token()
        store_studio_connection(settings.folder, settings.address)
        yield server
    finally:
        server.end()
        delete_studio_connection(settings.folder)


class LabelStudioServer(ManagedServer):
    """Running Label Studio process; call `end` to stop it."""

    def __init__(self, settings: LabelStudioServerSettings) -> None:
        require_free_port(settings.host, settings.port)
        self._plan = settings
        state = OutputDirectory(settings.folder)
        state.make("data")
        state.make(CLIPS)
        own = load_studio_secrets(settings.folder)
        command = [str(settings.program), "start", "--no-browser", "--enable-legacy-api-token"]
        command += ["--internal-host", settings.host, "-p", str(settings.port)]
        environment = build_child_environment(
            build_studio_environment(settings, own), {}, keep=_OURS
        )
        super().__init__(
            "Label Studio", command, folder=settings.folder, log=_LOG, environment=environment
        )

    def wait_until_up(self, tell: Callable[[str], None], *, seconds: float = UP_S) -> None:
        """Wait until Label Studio responds; call `tell` with its output meanwhile."""
        self.wait_until(lambda: self._ask("/health") == HTTPStatus.OK, tell, seconds=seconds)

    def require_own_token(self) -> None:
        """Check that the server accepts the token in its state folder."""
        token = load_studio_secrets(self._plan.folder).token
        if self._ask("/api/current-user/whoami", token) == HTTPStatus.UNAUTHORIZED:
            raise MachineError(
                f"Label Studio's database does not know the token of {self._plan.folder}",
                "Give --state the folder that it was first started with, or another database",
            )

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


_KEPT = "accounts.json"
_SIGN_UP = "/user/signup/"
_FORM_PAGE = range(200, 300)
_DONE = range(300, 400)


def create_annotator_accounts(
    client: LabelStudioClient, annotators: Iterable[Annotator], *, folder: Path
) -> dict[str, int]:
    """Create the missing Label Studio accounts; return the account ids by the annotators' names.

    Args:
        client: Label Studio.
        annotators: Annotators who need an account.
        folder: State folder in which generated passwords are stored.
    """
    ids, numbers = _read_account_ids(client), {}
    for annotator in annotators:
        login = annotator.email.lower()
        if login not in ids:
            passwords = dict(read_account_passwords(folder))
            if login not in passwords:
                passwords[login] = secrets.token_urlsafe(12)
                OutputDirectory(folder).write(_KEPT, json.dumps(passwords, indent=2).encode())
            _sign_up_account(client, login, password=passwords[login])
            ids = _read_account_ids(client)
        if login not in ids:
            raise MachineError(
                f"Label Studio made no account for {annotator.email}",
                "Give an address that it takes, such as name@example.org",
            )
        numbers[annotator.name] = ids[login]
    return numbers


def read_account_passwords(folder: Path) -> Mapping[str, str]:
    """Return by login the passwords of the Label Studio accounts that unreel created."""
    try:
        with OutputDirectory(folder).read(_KEPT) as file:
            document = json.loads(file.read(1 << 22))
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_account_ids(client: LabelStudioClient) -> dict[str, int]:
    listed: Any = client.get("/api/users/")
    return {
        str(user["email"]).lower(): int(user["id"])
        for user in listed
        if isinstance(user, dict) and "email" in user and "id" in user
    }


def _sign_up_account(client: LabelStudioClient, login: str, *, password: str) -> None:
    link = str(client.get("/api/invite").get("invite_url", ""))
    token = parse_qs(urlsplit(link).query).get("token", [""])[0]
    with open_blocking_http_client(
        client.server, base_url=client.address, timeout_s=DEADLINE_S, keeps_cookies=True
    ) as browser:
        try:
            page = browser.get(_SIGN_UP, params={"token": token})
            fields = {"email": login, "password": password, "allow_newsletters": "false"}
            fields["csrfmiddlewaretoken"] = browser.cookies.get("csrftoken") or ""
            origin = {"Referer": f"{client.address}{_SIGN_UP}"}
            reply = browser.post(_SIGN_UP, params={"token": token}, data=fields, headers=origin)
        except httpx2.HTTPError as error:
            raise MachineError(
                f"the account of {login} was not made ({type(error).__name__})",
                "Run the same command again",
            ) from None
    if page.status_code in _FORM_PAGE and reply.status_code in {*_DONE, *_FORM_PAGE}:
        return  # if it was the form again, the caller finds that the account is missing
    raise MachineError(
        f"Label Studio answers {reply.status_code} to the sign-up of {login}",
        "Make the account there by its invite link, then run this again",
    )
