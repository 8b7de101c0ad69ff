"""HTTP client of Label Studio, with timeouts, size limits, clear errors and paged task lists."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Self

from unreel.annotation.studio.settings import LabelStudioConnection
from unreel.core.errors import (
    GO_ON,
    InvalidSettingError,
    KeyRejectedError,
    MachineError,
    raise_if_machine_error,
)
from unreel.core.server_keys import ServerAddress, parse_server_url
from unreel.network.http_client import open_blocking_http_client, read_blocking_http_body

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
_SAID = 300


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
        self.server = _require_secure_address(connection.address, in_clear=in_clear)
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
        reply = self._carry(method, path, parameters, body)
        if reply.status == 401 and self._is_refresh_token:  # noqa: PLR2004  its access ran out
            self._authorisation = ""
            reply = self._carry(method, path, parameters, body)
        return reply

    def _carry(
        self, method: str, path: str, parameters: Mapping[str, object], body: object
    ) -> LabelStudioReply:
        headers = {"Authorization": self._authorise()}
        options: dict[str, Any] = {"params": dict(parameters)} if parameters else {}
        if body is not None:
            options["content"] = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return self._exchange(method, path, headers=headers, **options)

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
    detail = _format_error_detail(reply)
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


def _format_error_detail(reply: LabelStudioReply) -> str:
    document = reply.document()
    if not isinstance(document, dict):
        return ""
    detail = document.get("validation_errors") or document.get("detail") or ""
    return json.dumps(detail)[:_SAID] if not isinstance(detail, str) else detail[:_SAID]


def _require_secure_address(address: str, *, in_clear: bool) -> ServerAddress:
    try:
        server = parse_server_url(address)
    except InvalidSettingError as error:
        raise InvalidSettingError(
            "--url", "this is no plain address", "Write https://HOST"
        ) from error
    if not server.keeps_secrets and not in_clear:
        raise InvalidSettingError(
            "--url",
            f"the token would be sent to {server} in clear",
            "Write https://, tunnel it to 127.0.0.1, or accept it with --in-clear",
        )
    return server


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
    only its `id`.

    Args:
        client: Label Studio.
        project: Number of the project.
        fields: Task fields to return in addition to `id`.
        numbers: Numbers of the tasks to return; None for all.
    """
    last, size = 0, PAGE
    while True:
        reply = _request_task_page(
            client, project, fields=fields, numbers=numbers, last=last, size=size
        )
        if reply.body is None and size > 1:
            size = max(1, size // 8)
            continue
        if reply.body is None:
            reply = _request_task_page(
                client, project, fields=(), numbers=numbers, last=last, size=1
            )
        tasks = _parse_task_list(reply)
        yield from tasks
        if len(tasks) < size:
            return
        last = int(tasks[-1]["id"])


def _request_task_page(
    client: LabelStudioClient,
    project: int,
    *,
    fields: Sequence[str],
    numbers: Sequence[int] | None,
    last: int,
    size: int,
) -> LabelStudioReply:
    above = {"operator": "greater", "type": "Number", "value": last}
    items = [{"filter": "filter:tasks:id", **above}]
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


def _parse_task_list(reply: LabelStudioReply) -> list[Mapping[str, Any]]:
    document = reply.document() if reply.is_ok else None
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list):
        raise build_studio_request_error(reply, f"GET {_PATH}")
    return tasks
