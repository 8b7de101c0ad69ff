"""Limits of requests: tokens, size, rate, concurrency and upload time."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client import Counter
from starlette.requests import ClientDisconnect

from unreel.core.errors import UnreelError
from unreel.rewards.service.settings import Scope, ServiceSettings, TokenSettings, find_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

_OPEN: Final = ("/health", "/ready", "/openapi.json", "/docs")
_BURST: Final = 2
_UNAUTHORISED, _FORBIDDEN, _SLOW, _TOO_LARGE, _INVALID = 401, 403, 408, 413, 422
_BUSY, STOPPED = 429, 503
_HEADERS: Final = {
    _UNAUTHORISED: {"www-authenticate": "Bearer"},
    _SLOW: {"connection": "close"},
    _TOO_LARGE: {"connection": "close"},
}


class RequestRefusedError(UnreelError):
    """A request that is not processed, with its HTTP status and a reason."""

    def __init__(
        self, status: int, reason: str, message: str, retry_s: float | None = None
    ) -> None:
        super().__init__(status, reason, message, retry_s)
        self.status, self.reason, self.message, self.retry_s = status, reason, message, retry_s

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the response."""
        retry = {} if self.retry_s is None else {"retry-after": str(max(1, round(self.retry_s)))}
        return retry | _HEADERS.get(self.status, {})

    @property
    def document(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {"error": {"reason": self.reason, "message": self.message}}


class InvalidRequestError(RequestRefusedError):
    """A request that is malformed."""

    def __init__(self, message: str) -> None:
        super().__init__(_INVALID, "invalid", message)


class TokenLimiter:
    """Rate and concurrency of each token, in this process."""

    def __init__(self) -> None:
        self._full: dict[str, tuple[float, float]] = {}
        self._running: dict[str, int] = {}

    @contextmanager
    def admit(self, token: TokenSettings | None) -> Iterator[None]:
        """Count one request for as long as the context lasts.

        Raises:
            RequestRefusedError: The token has used its rate or concurrency.
        """
        if token is None:
            yield
            return
        now_s, most = time.monotonic(), token.rate * _BURST
        left, at_s = self._full.get(token.name, (most, now_s))
        left = min(most, left + (now_s - at_s) * token.rate)
        running = self._running.get(token.name, 0)
        if left < 1 or running >= token.concurrency:
            self._full[token.name] = (left, now_s)
            wait_s = (1 - left) / token.rate if left < 1 else 1.0
            limits = f"{token.rate:g} requests/s, {token.concurrency} at once"
            message = f"token {token.name} allows {limits}"
            raise RequestRefusedError(_BUSY, "rate-limited", message, wait_s)
        self._full[token.name] = (left - 1, now_s)
        self._running[token.name] = running + 1
        try:
            yield
        finally:
            self._running[token.name] -= 1


class BodyLimits(Protocol):
    """Limits of request bodies."""

    @property
    def max_request_bytes(self) -> int: ...
    @property
    def max_held_bytes(self) -> int: ...
    @property
    def upload_s(self) -> float: ...


class BoundedGate:
    """ASGI middleware that checks a request before its body is read, and bounds the body."""

    def __init__(self, app: "ASGIApp", limits: BodyLimits) -> None:
        self._app, self._limits = app, limits
        self._held_bytes = 0

    async def __call__(self, scope: "Connection", receive: "Receive", send: "Send") -> None:
        """Refuse the request, or pass it on with a bounded body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["began_s"] = time.monotonic()
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        body = _BoundedBody(receive, self)
        started = False

        async def watch(message: "Message") -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            token = state["token"] = self._authorise(scope, headers)
            body.most = self._require_size(headers, token)
            await self._app(scope, body, watch)
        except ClientDisconnect:
            return
        except RequestRefusedError as refusal:
            self._count(refusal)
            if not started:
                await self._refuse(refusal, scope, receive, send)
        finally:
            self._held_bytes -= body.n_bytes

    def hold(self, n_bytes: int) -> None:
        """Count bytes of bodies in memory.

        Raises:
            RequestRefusedError: All bodies together are too large.
        """
        if self._held_bytes + n_bytes > self._limits.max_held_bytes:
            msg = "the service holds as many bytes as it may. Retry later"
            raise overloaded(msg)
        self._held_bytes += n_bytes

    @property
    def upload_s(self) -> float:
        """Return the time that an upload may take."""
        return self._limits.upload_s

    def _authorise(self, scope: "Connection", headers: dict[bytes, str]) -> TokenSettings | None:
        """Return the token of a request; raise `RequestRefusedError` for one that is not allowed."""
        raise NotImplementedError

    def _count(self, refusal: RequestRefusedError) -> None:
        """Count a refused request."""

    async def _refuse(
        self, refusal: RequestRefusedError, _scope: "Connection", _receive: "Receive", send: "Send"
    ) -> None:
        await _send_refusal(send, refusal)

    def _require_size(self, headers: dict[bytes, str], token: TokenSettings | None) -> int:
        most = self._limits.max_request_bytes
        if token is not None and token.max_mb is not None:
            most = min(most, int(token.max_mb * (1 << 20)))
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_large(most)
        return most


class RequestGate(BoundedGate):
    """Gate of the reward service: bearer tokens with scopes, and metrics of refusals."""

    def __init__(
        self,
        app: "ASGIApp",
        settings: ServiceSettings,
        find_refusal: Callable[[], str | None],
        refused: Counter,
    ) -> None:
        super().__init__(app, settings)
        self._settings, self._find_refusal, self._refused = settings, find_refusal, refused

    def _count(self, refusal: RequestRefusedError) -> None:
        self._refused.labels(refusal.reason).inc()

    def _authorise(self, scope: "Connection", headers: dict[bytes, str]) -> TokenSettings | None:
        path = scope["path"]
        if path in _OPEN:
            return None
        token = find_token(headers.get(b"authorization"), self._settings.tokens)
        if self._settings.tokens:
            needed: Scope = "compare" if path.endswith(":compare") else "reward"
            needed = "metrics" if path == "/metrics" else needed
            if token is None:
                message = "the bearer token is missing or unknown"
                raise RequestRefusedError(_UNAUTHORISED, "unauthorised", message)
            if needed not in token.scopes:
                message = f"token {token.name} lacks the scope {needed}"
                raise RequestRefusedError(_FORBIDDEN, "forbidden", message)
        if scope["method"] == "POST" and (reason := self._find_refusal()):
            raise RequestRefusedError(STOPPED, "stopped", reason, 5.0)
        return token


class _BoundedBody:
    """Body of a request with a limit of size and time."""

    def __init__(self, receive: "Receive", gate: BoundedGate) -> None:
        self._receive, self._gate = receive, gate
        self._until_s = time.monotonic() + gate.upload_s
        self._is_complete = False
        self.most = self.n_bytes = 0

    async def __call__(self) -> "Message":
        if self._is_complete:  # the server waits here for the end of the connection
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._until_s - time.monotonic())):
                received = await self._receive()
        except TimeoutError:
            message = f"the body took longer than {self._gate.upload_s:g} s"
            raise RequestRefusedError(_SLOW, "slow-upload", message) from None
        n_bytes = len(received.get("body", b""))
        if self.n_bytes + n_bytes > self.most:
            raise too_large(self.most)
        self._gate.hold(n_bytes)
        self.n_bytes += n_bytes
        self._is_complete = not received.get("more_body", False)
        return received


def require_few(n_items: int, most: int) -> None:
    """Raise `RequestRefusedError` for more than `most` items in one request."""
    if n_items > most:
        msg = f"{n_items} items; at most {most} are accepted. Send fewer at a time"
        raise InvalidRequestError(msg)


def too_large(most: int) -> RequestRefusedError:
    """Return the refusal of a request above `most` bytes."""
    message = f"the request is larger than {most} bytes. Send fewer clips at a time"
    return RequestRefusedError(_TOO_LARGE, "too-large", message)


def overloaded(message: str) -> RequestRefusedError:
    """Return the refusal of a request for which there is no room now."""
    return RequestRefusedError(_BUSY, "overloaded", message, 1.0)


async def _send_refusal(send: "Send", refusal: RequestRefusedError) -> None:
    headers = {"content-type": "application/json", "connection": "close", **refusal.headers}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": encoded})
    await send({"type": "http.response.body", "body": json.dumps(refusal.document).encode()})
