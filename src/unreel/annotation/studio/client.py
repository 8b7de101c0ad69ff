"""Label Studio: settings and secrets, the local server process, HTTP requests, and accounts of annotators.

Sign-up needs the organisation's link, telemetry is off, requests to the local network are blocked,
and files are served only from the folder of clip copies. The call of Label Studio for new users creates
an account without an organisation, so the sign-up form is used. A password is stored before its account
is created: a kill between the two loses no login.
"""

import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2

from unreel.annotation.campaign import Annotator
from unreel.core.errors import (
    GO_ON,
    InvalidSettingError,
    KeyRejectedError,
    MachineError,
    UnreadableSourceError,
    raise_if_machine_error,
)
from unreel.core.managed_server import ManagedServer, require_free_port
from unreel.core.output_files import OutputDirectory
from unreel.core.server_keys import parse_server_url
from unreel.core.settings import EnvironmentSettings, build_child_environment, read_secret_variable
from unreel.network.http_client import open_blocking_http_client, read_blocking_http_body

TOKEN = "LABEL_STUDIO_API_KEY"  # noqa: S105  the variable's name
"""Environment variable with the token of another server; Label Studio's own SDK reads it too."""
LEAD = "unreel@localhost"
"""Login of the account that the commands use."""
CLIPS = "media/clips"
"""Folder of clip copies below the state folder; Label Studio serves subfolders of its root, not the root itself."""
_CONNECTION = "studio.json"
_SECRETS = "secrets.json"
_NAMES = "names.json"
_UP = "Start one with `unreel annotate up`, or name one with --url"
_SAFE: Mapping[str, str] = {
    "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
    "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
    "SSRF_PROTECTION_ENABLED": "true",
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "FEATURE_FLAGS_OFFLINE": "true",
    "DEBUG": "false",
    "LOG_LEVEL": "WARNING",
    "CORS_ALLOW_ALL_ORIGINS": "false",
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudioServerSettings:
    """Settings of one Label Studio server: address, database and data directory."""

    program: Path
    folder: Path
    """State folder of the server: secrets, data, log, and the clip copies that it serves."""
    host: str = "127.0.0.1"
    port: int = 8080
    database: str = field(default="", repr=False)
    """URL of a separate PostgreSQL database, with the password; "" for an SQLite file."""

    @property
    def address(self) -> str:
        """Return the URL of the Label Studio server for clients on the same machine."""
        host = "127.0.0.1" if self.host == "0.0.0.0" else self.host  # noqa: S104  compared, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudioConnection:
    """URL and token of a running Label Studio server, and the folder of the clips that it serves."""

    address: str
    token: str = field(repr=False)
    media: Path | None = None
    """Folder of the clip copies that the server serves; `None` for a server given by its URL."""


@dataclass(frozen=True, slots=True)
class LabelStudioSecrets:
    """Password and token of the Label Studio account that the commands use."""

    password: str = field(repr=False)
    token: str = field(repr=False)


def get_studio_state_folder(settings: EnvironmentSettings, named: Path | None = None) -> Path:
    """Return the folder with the state of Label Studio: `named`, or the default below unreel's state."""
    return (named or settings.state_folder / "studio").absolute()


def load_studio_secrets(folder: Path) -> LabelStudioSecrets:
    """Read the secrets of the Label Studio server in `folder`; create them (mode 0600) if missing."""
    stored = _read_json_object(folder, _SECRETS)
    if stored is None:
        # Before its first start, Label Studio accepts only a token of 40 hexadecimal digits.
        stored = {"password": secrets.token_urlsafe(24), "token": secrets.token_hex(20)}
        OutputDirectory(folder).write(_SECRETS, json.dumps(stored).encode())
    try:
        return LabelStudioSecrets(str(stored["password"]), str(stored["token"]))
    except KeyError as error:
        raise UnreadableSourceError(
            str(folder / _SECRETS), f"the file has no {error}", _UP
        ) from None


def read_copy_name_key(folder: Path) -> bytes:
    """Read the secret key from which file names of browser copies are derived; create it if missing.

    If the key is lost, copies are made again under new names; existing tasks keep their names in
    the ledger.
    """
    stored = _read_json_object(folder, _NAMES)
    if stored is None:
        stored = {"key": secrets.token_hex(32)}
        OutputDirectory(folder).write(_NAMES, json.dumps(stored).encode())
    return str(stored.get("key", "")).encode()


def build_studio_environment(
    settings: LabelStudioServerSettings, studio_secrets: LabelStudioSecrets
) -> dict[str, str]:
    """Return Label Studio's environment variables, with the secrets that arguments would reveal."""
    variables = {
        **_SAFE,
        "LABEL_STUDIO_BASE_DATA_DIR": str(settings.folder / "data"),
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str((settings.folder / CLIPS).parent),
        "LABEL_STUDIO_HOST": "",
        "LABEL_STUDIO_USERNAME": LEAD,
        "LABEL_STUDIO_PASSWORD": studio_secrets.password,
        "LABEL_STUDIO_USER_TOKEN": studio_secrets.token,
    }
    if not settings.database:
        return {**variables, "DJANGO_DB": "sqlite"}
    parts = urlsplit(settings.database)
    name = parts.path.lstrip("/")
    if parts.scheme.partition("+")[0] not in {"postgresql", "postgres"} or not name:
        raise InvalidSettingError(
            "--database",
            "Label Studio keeps its rows in PostgreSQL, or in a file",
            "Give postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or leave it out",
        )
    return {
        **variables,
        "DJANGO_DB": "default",
        "POSTGRE_NAME": unquote(name),
        "POSTGRE_USER": unquote(parts.username or ""),
        "POSTGRE_PASSWORD": unquote(parts.password or ""),
        "POSTGRE_HOST": parts.hostname or "127.0.0.1",
        "POSTGRE_PORT": str(parts.port or 5432),
    }


def build_studio_database_url(ledger: str) -> str:
    """Return the URL of Label Studio's database beside the ledger's; "" if the ledger is a file."""
    parts = urlsplit(ledger)
    if parts.scheme.partition("+")[0] not in {"postgresql", "postgres"}:
        return ""
    return parts._replace(path=f"{parts.path}_studio", scheme="postgresql").geturl()


def store_studio_connection(folder: Path, address: str) -> None:
    """Store the URL of the running Label Studio server in `folder`, so that other commands find it."""
    document = {"address": address, "token_file": _SECRETS, "media": CLIPS}
    OutputDirectory(folder).write(_CONNECTION, json.dumps(document, indent=2).encode())


def delete_studio_connection(folder: Path) -> None:
    """Delete the stored URL of a Label Studio server that has stopped."""
    OutputDirectory(folder).remove(_CONNECTION)


def find_studio_connection(folder: Path, *, url: str | None = None) -> LabelStudioConnection:
    """Return URL and token of Label Studio: the server at `url`, or the one started from `folder`.

    The token for `url` comes from the environment.
    """
    if url:
        if (token := read_secret_variable(TOKEN)) is None:
            raise InvalidSettingError(
                TOKEN,
                f"not set, and {url} requires a token",
                f"Run `export {TOKEN}=...` with a token of its Account & Settings page",
            )
        return LabelStudioConnection(address=url.rstrip("/"), token=token)
    info = _read_json_object(folder, _CONNECTION)
    if info is None:
        raise InvalidSettingError("--url", f"no Label Studio was started from {folder}", _UP)
    own = load_studio_secrets(folder)
    media = folder / str(info.get("media", CLIPS))
    return LabelStudioConnection(address=str(info.get("address", "")), token=own.token, media=media)


def _read_json_object(folder: Path, name: str) -> dict[str, object] | None:
    try:
        with OutputDirectory(folder).read(name) as file:
            document = json.loads(file.read(1 << 20))
    except FileNotFoundError:
        return None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnreadableSourceError(
            str(folder / name),
            "the file must contain a JSON object",
            "Take it away and start Label Studio again with `unreel annotate up`",
        )
    return document


DEADLINE_S = 600.0
"""Timeout in seconds; an import of 1000 tasks with annotations takes almost a minute on a busy machine."""
CAP_BYTES = 64 * 1024 * 1024
_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_OK = range(200, 300)
_REDIRECT = range(300, 400)
NOT_FOUND = 404
_TOO_LARGE = 413
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_REJECTED = frozenset({401, 403})
_PARTS_OF_JWT = 3
_MAX_DETAIL = 300


@dataclass(frozen=True, slots=True)
class LabelStudioReply:
    """HTTP response of Label Studio; `body` is `None` if it exceeded the size limit."""

    status: int
    body: bytes | None = field(repr=False)
    date: str = ""
    """Time of the reply by the server's clock, in the format of the HTTP header `Date`."""

    @property
    def is_ok(self) -> bool:
        """Return whether the request succeeded."""
        return self.status in _OK and self.body is not None

    def document(self) -> Any:
        """Parse the JSON of the reply's body; return `None` if the body is empty or invalid."""
        try:
            return json.loads(self.body or b"null")
        except ValueError:
            return None


class LabelStudioClient:
    """HTTP client of one Label Studio account. Use it in a `with` statement."""

    def __init__(
        self,
        connection: LabelStudioConnection,
        *,
        in_clear: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address = connection.address
        self.media = connection.media
        self._token, self._sleep = connection.token, sleep
        try:
            self.server = parse_server_url(connection.address)
        except InvalidSettingError as error:
            raise InvalidSettingError(
                "--url", "must be a plain address", "Write https://HOST"
            ) from error
        if not self.server.keeps_secrets and not in_clear:
            raise InvalidSettingError(
                "--url",
                f"the token would be sent to {self.server} in clear",
                "Write https://, tunnel it to 127.0.0.1, or accept it with --in-clear",
            )
        self._http = open_blocking_http_client(
            self.server, base_url=connection.address, timeout_s=DEADLINE_S
        )
        self._authorisation = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections to Label Studio; a second call does nothing."""
        self._http.close()

    def get(self, path: str, **parameters: object) -> Any:
        """Send a GET request and return the JSON document at `path`; raise `MachineError` if it fails."""
        reply = self.look(path, **parameters)
        if not reply.is_ok:
            raise build_studio_request_error(reply, f"GET {path}")
        return reply.document()

    def look(self, path: str, **parameters: object) -> LabelStudioReply:
        """Send a GET request and return the response, whatever its status.

        The request is retried while the server is unreachable or reports a temporary error.
        """
        for wait_s in (*_WAITS_S, None):
            try:
                reply = self._send("GET", path, parameters, None)
            except MachineError:
                if wait_s is None:
                    raise
            else:
                if reply.status not in _AGAIN or wait_s is None:
                    return reply
            self._sleep(wait_s)
        raise AssertionError  # pragma: no cover

    def server_time(self) -> datetime:
        """Return the time of the server's clock plus one second; the local time if the server sends none."""
        reply = self.look("/api/current-user/whoami")
        try:
            return parsedate_to_datetime(reply.date) + timedelta(seconds=1)
        except ValueError:
            return datetime.now(UTC)

    def post(self, path: str, body: object, **parameters: object) -> Any:
        """Send a POST request and return the JSON of the reply.

        It is sent again only after an expired token was renewed. After another failure the caller must
        check the state of the server before it sends the request again.
        """
        return self._write("POST", path, body, parameters)

    def patch(self, path: str, body: object) -> Any:
        """Send a PATCH request, again only after an expired token was renewed; return the JSON of the reply."""
        return self._write("PATCH", path, body, {})

    def delete(self, path: str) -> None:
        """Send a DELETE request, retried only to renew an expired token; ignore a missing object."""
        reply = self._send("DELETE", path, {}, None)
        if not reply.is_ok and reply.status != NOT_FOUND:
            raise build_studio_request_error(reply, f"DELETE {path}")

    def _write(self, method: str, path: str, body: object, parameters: Mapping[str, object]) -> Any:
        reply = self._send(method, path, parameters, body)
        if not reply.is_ok:
            raise build_studio_request_error(reply, f"{method} {path}")
        return reply.document()

    def _send(
        self, method: str, path: str, parameters: Mapping[str, object], body: object
    ) -> LabelStudioReply:
        options: dict[str, Any] = {"params": dict(parameters)} if parameters else {}
        if body is not None:
            options["content"] = json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        authorised = {**headers, "Authorization": self._authorise()}
        reply = self._exchange(method, path, headers=authorised, **options)
        if reply.status == 401 and self._is_refresh_token:  # noqa: PLR2004  its access ran out
            self._authorisation = ""
            authorised = {**headers, "Authorization": self._authorise()}
            reply = self._exchange(method, path, headers=authorised, **options)
        return reply

    def _exchange(self, method: str, path: str, **options: Any) -> LabelStudioReply:
        try:
            with self._http.stream(method, path, **options) as response:
                date = response.headers.get("Date", "")
                body = read_blocking_http_body(response, cap_bytes=CAP_BYTES)
                return LabelStudioReply(response.status_code, body, date)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            raise_if_machine_error(error)
            # Only the class of the error: its text may contain the token.
            raise MachineError(
                f"Label Studio at {self.address} does not answer ({type(error).__name__})",
                f"See that it runs (`unreel annotate up`) and can be reached. {GO_ON}",
            ) from None

    @property
    def _is_refresh_token(self) -> bool:
        return self._token.count(".") == _PARTS_OF_JWT - 1

    def _authorise(self) -> str:
        """Return the `Authorization` header; a personal access token is exchanged for a short-lived one."""
        if not self._authorisation:
            if not self._is_refresh_token:
                self._authorisation = f"Token {self._token}"
            else:
                body = json.dumps({"refresh": self._token}).encode()
                kind = {"Content-Type": "application/json"}
                reply = self._exchange("POST", "/api/token/refresh", content=body, headers=kind)
                document = reply.document()
                if not reply.is_ok or not isinstance(document, dict):
                    raise build_studio_request_error(reply, "POST /api/token/refresh")
                self._authorisation = f"Bearer {document.get('access', '')}"
        return self._authorisation


def build_studio_request_error(reply: LabelStudioReply, what: str) -> MachineError:
    """Build the error for a request that Label Studio rejected, with the problem and a remedy."""
    summary = f"Label Studio answers {reply.status} to {what}"
    document = reply.document()
    detail = ""
    if isinstance(document, dict):
        detail = document.get("validation_errors") or document.get("detail") or ""
        detail = (detail if isinstance(detail, str) else json.dumps(detail))[:_MAX_DETAIL]
    problem = f"{summary} ({detail})" if detail else summary
    if reply.status in _REJECTED:
        remedy = "Give a token of an account that may make projects, of its Account & Settings page"
        return KeyRejectedError(problem, remedy)
    if reply.status == NOT_FOUND:
        remedy = f"It was deleted there, or this is no Label Studio. {GO_ON}"
    elif reply.status == _TOO_LARGE:
        remedy = "Let the server in front of it take bodies of 64 MB"
    elif reply.body is None:
        remedy = f"Its answer is more than {CAP_BYTES >> 20} MB: check which data are stored there"
    elif reply.status in _REDIRECT:
        remedy = "Give the address that it leads to: redirects are not followed with a token"
    elif reply.status in _AGAIN:
        remedy = f"Look into its log, and see that its database runs. {GO_ON}"
    else:
        remedy = f"unreel knows Label Studio 1.23; see whether this is one. {GO_ON}"
    return MachineError(problem, remedy)


PAGE = 500
_PATH = "/api/tasks/"


def iter_studio_project_tasks(
    client: LabelStudioClient,
    project: int,
    *,
    fields: Sequence[str],
    numbers: Sequence[int] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield the tasks of a Label Studio project by increasing number, with `id` and `fields`.

    A page begins after the last number of the previous one, so concurrent changes do not shift
    pages. A page above the size limit is requested in smaller parts; a single task above it has
    only its `id`. `numbers` are those of the tasks to return; `None` means all.
    """

    def request_page(fields: Sequence[str], size: int) -> LabelStudioReply:
        above = {"operator": "greater", "type": "Number", "value": last}
        items: list[dict[str, Any]] = [{"filter": "filter:tasks:id", **above}]
        if numbers is not None:
            chosen = {"operator": "in_list", "type": "Number", "value": list(numbers)}
            items.append({"filter": "filter:tasks:id", **chosen})
        query = {"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]}
        return client.look(
            _PATH,
            project=project,
            page_size=size,
            page=1,
            fields="all",
            include=",".join(("id", *fields)),
            query=json.dumps(query),
        )

    last, size = 0, PAGE
    while True:
        reply = request_page(fields, size)
        if reply.body is None and size > 1:
            size = max(1, size // 8)
            continue
        if reply.body is None:
            reply = request_page((), 1)
        document = reply.document() if reply.is_ok else None
        tasks = document.get("tasks") if isinstance(document, dict) else None
        if not isinstance(tasks, list):
            raise build_studio_request_error(reply, f"GET {_PATH}")
        yield from tasks
        if len(tasks) < size:
            return
        last = int(tasks[-1]["id"])


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
            f"{named} is not a program" if named else "there is no `label-studio` on the path",
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
    settings: LabelStudioServerSettings, *, on_output: Callable[[str], None]
) -> Iterator["LabelStudioServer"]:
    """Start a Label Studio server, yield it once it responds, and stop it when the context ends.

    `settings` contains the settings of the server; `on_output` is called with its output.
    """
    server = LabelStudioServer(settings)
    try:
        server.wait_until_up(on_output)
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

    def wait_until_up(self, on_output: Callable[[str], None], *, seconds: float = UP_S) -> None:
        """Wait until Label Studio responds; call `on_output` with its output meanwhile."""
        self.wait_until(lambda: self._ask("/health") == HTTPStatus.OK, on_output, seconds=seconds)

    def require_own_token(self) -> None:
        """Check that the server accepts the token in its state folder."""
        token = load_studio_secrets(self._plan.folder).token
        if self._ask("/api/current-user/whoami", token) == HTTPStatus.UNAUTHORIZED:
            raise MachineError(
                f"Label Studio's database does not know the token of {self._plan.folder}",
                "Give --state the folder that it was first started with, or another database",
            )

    def _ask(self, path: str, token: str = "") -> int:
        """Send a GET request and return the status of the reply; 0 without a reply."""
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


_ACCOUNTS_FILE = "accounts.json"
_SIGN_UP = "/user/signup/"
_FORM_PAGE = range(200, 300)
_DONE = range(300, 400)


def create_annotator_accounts(
    client: LabelStudioClient, annotators: Iterable[Annotator], *, folder: Path
) -> dict[str, int]:
    """Create the missing Label Studio accounts; return the account ids by the annotators' names.

    Generated passwords are stored in the state `folder`.
    """
    ids, numbers = _read_account_ids(client), {}
    for annotator in annotators:
        login = annotator.email.lower()
        if login not in ids:
            passwords = dict(read_account_passwords(folder))
            if login not in passwords:
                passwords[login] = secrets.token_urlsafe(12)
                OutputDirectory(folder).write(
                    _ACCOUNTS_FILE, json.dumps(passwords, indent=2).encode()
                )
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
        with OutputDirectory(folder).read(_ACCOUNTS_FILE) as file:
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
