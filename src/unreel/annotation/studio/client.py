"""HTTP client of Label Studio: a dozen calls with timeouts, size limits and clear errors.

Reads are retried while the server is unreachable; writes are not, because their outcome is unknown:
the caller checks the state before and after.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self

from unreel.annotation.studio.settings import StudioConnection
from unreel.core.errors import (
    GO_ON,
    InvalidSettingError,
    KeyRejectedError,
    MachineError,
    raise_refusal,
)
from unreel.core.server_keys import ServerAddress, read_server
from unreel.network.client import open_blocking_client, read_blocking_body

DEADLINE_S: Final = 600.0
"""An import of a thousand tasks with marks takes the better part of a minute on a busy machine."""
CAP_BYTES: Final = 64 * 1024 * 1024
_WAITS_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)
NOT_FOUND: Final = 404
_TOO_LARGE: Final = 413
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
_REJECTED: Final = frozenset({401, 403})
_PARTS_OF_JWT: Final = 3
_SAID: Final = 300


@dataclass(frozen=True, slots=True)
class StudioReply:
    """Response of the server; `body` is `None` if it exceeded the cap."""

    status: int
    body: bytes | None = field(repr=False)
    date: str = ""
    """When it was sent, by the server's clock, as HTTP writes it."""

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


class StudioClient:
    """One account's calls. Use it with `with`."""

    def __init__(
        self,
        connection: StudioConnection,
        *,
        in_clear: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address = connection.address
        self.media = connection.media
        self._token, self._sleep = connection.token, sleep
        self.server = _require_private(connection.address, in_clear=in_clear)
        self._http = open_blocking_client(
            self.server, base_url=connection.address, timeout_s=DEADLINE_S
        )
        self._authorisation = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; harmless when called twice."""
        self._http.close()

    def get(self, path: str, **parameters: object) -> Any:
        """Return the JSON document at `path`.

        Raises:
            MachineError: The server is unreachable or rejects the request.
        """
        reply = self.look(path, **parameters)
        if not reply.is_ok:
            raise build_refusal_error(reply, f"GET {path}")
        return reply.document()

    def look(self, path: str, **parameters: object) -> StudioReply:
        """Return the response for `path`, also if it does not exist; retry while the server is unreachable."""
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
        """Return the server's clock time plus one second; this machine's time if the server sends none."""
        reply = self.look("/api/current-user/whoami")
        try:
            return parsedate_to_datetime(reply.date) + timedelta(seconds=1)
        except ValueError:
            return datetime.now(UTC)

    def post(self, path: str, body: object, **parameters: object) -> Any:
        """Send a request once: after a failure, check the state before sending it again."""
        return self._write("POST", path, body, parameters)

    def patch(self, path: str, body: object) -> Any:
        """Send a PATCH request, retried only to renew an expired token; return the JSON of the reply."""
        return self._write("PATCH", path, body, {})

    def delete(self, path: str) -> None:
        """Delete once; a missing object is no error."""
        reply = self._send("DELETE", path, {}, None)
        if not reply.is_ok and reply.status != NOT_FOUND:
            raise build_refusal_error(reply, f"DELETE {path}")

    def _write(self, method: str, path: str, body: object, parameters: Mapping[str, object]) -> Any:
        reply = self._send(method, path, parameters, body)
        if not reply.is_ok:
            raise build_refusal_error(reply, f"{method} {path}")
        return reply.document()

    def _send(
        self, method: str, path: str, parameters: Mapping[str, object], body: object
    ) -> StudioReply:
        reply = self._carry(method, path, parameters, body)
        if reply.status == 401 and self._is_refresh_token:  # noqa: PLR2004  its access ran out
            self._authorisation = ""
            reply = self._carry(method, path, parameters, body)
        return reply

    def _carry(
        self, method: str, path: str, parameters: Mapping[str, object], body: object
    ) -> StudioReply:
        headers = {"Authorization": self._authorise()}
        given: dict[str, Any] = {"params": dict(parameters)} if parameters else {}
        if body is not None:
            given["content"] = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return self._exchange(method, path, headers=headers, **given)

    def _exchange(self, method: str, path: str, **given: Any) -> StudioReply:
        try:
            with self._http.stream(method, path, **given) as response:
                date = response.headers.get("Date", "")
                body = read_blocking_body(response, cap_bytes=CAP_BYTES)
                return StudioReply(response.status_code, body, date)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            raise_refusal(error)
            # Only the kind of error: its text may repeat the token.
            problem = f"Label Studio at {self.address} does not answer ({type(error).__name__})"
            remedy = f"See that it runs (`unreel annotate up`) and can be reached. {GO_ON}"
            raise MachineError(problem, remedy) from None

    @property
    def _is_refresh_token(self) -> bool:
        return self._token.count(".") == _PARTS_OF_JWT - 1

    def _authorise(self) -> str:
        """Return the `Authorization` header.

        A personal access token is first exchanged for a short-lived token.
        """
        if not self._authorisation:
            if not self._is_refresh_token:
                self._authorisation = f"Token {self._token}"
            else:
                body = json.dumps({"refresh": self._token}).encode()
                kind = {"Content-Type": "application/json"}
                reply = self._exchange("POST", "/api/token/refresh", content=body, headers=kind)
                document = reply.document()
                if not reply.is_ok or not isinstance(document, dict):
                    raise build_refusal_error(reply, "POST /api/token/refresh")
                self._authorisation = f"Bearer {document.get('access', '')}"
        return self._authorisation


def build_refusal_error(reply: StudioReply, what: str) -> MachineError:
    """Build the error for a rejected request, with the problem and a remedy."""
    said = f"Label Studio answers {reply.status} to {what}"
    detail = _format_error_detail(reply)
    problem = f"{said} ({detail})" if detail else said
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


def _format_error_detail(reply: StudioReply) -> str:
    document = reply.document()
    if not isinstance(document, dict):
        return ""
    told = document.get("validation_errors") or document.get("detail") or ""
    return json.dumps(told)[:_SAID] if not isinstance(told, str) else told[:_SAID]


def _require_private(address: str, *, in_clear: bool) -> ServerAddress:
    try:
        server = read_server(address)
    except InvalidSettingError as error:
        setting = "--url"
        raise InvalidSettingError(
            setting, "this is no plain address", "Write https://HOST"
        ) from error
    if not server.keeps_secrets and not in_clear:
        setting, problem = "--url", f"the token would travel to {server} in clear"
        remedy = "Write https://, tunnel it to 127.0.0.1, or accept it with --in-clear"
        raise InvalidSettingError(setting, problem, remedy)
    return server
