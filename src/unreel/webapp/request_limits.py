"""Request limits of a web application: body size, memory and upload time."""

import asyncio
import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import ClientDisconnect

from unreel.webapp.refusals import (
    AMBIGUOUS,
    SLOW,
    RequestRefusedError,
    build_overload_refusal,
    build_too_large_refusal,
)
from unreel.webapp.tokens import TokenSettings, call_when_ended

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RequestBodyLimits(Protocol):
    """Limits of request bodies."""

    @property
    def max_request_bytes(self) -> int: ...
    @property
    def max_held_bytes(self) -> int: ...
    @property
    def upload_s(self) -> float: ...


class RequestLimitMiddleware:
    """ASGI middleware that checks a request before its body is read, and bounds the body.

    The bytes of a body count until the response and all tasks in `request.state.work` have ended.
    """

    def __init__(self, app: "ASGIApp", limits: RequestBodyLimits) -> None:
        self._app, self._limits = app, limits
        self._held_bytes: Counter[str] = Counter()
        """Number of bytes of the requests of each token, by its name; "" without a token."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Refuse the request, or pass it on with a bounded body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["began_s"], state["work"], token = time.monotonic(), set(), None
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        body = _LimitedRequestBody(
            receive, self._limits.upload_s, lambda n_bytes: self._hold(n_bytes, token)
        )
        started = False

        async def watch(message: "Message") -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            if {b"content-length", b"transfer-encoding"} <= headers.keys():
                raise RequestRefusedError(
                    AMBIGUOUS, "ambiguous-length", "the length of the body is stated twice"
                )
            token = state["token"] = self._authorise(scope, headers)
            body.max_bytes = self._require_size(headers, token)
            await self._app(scope, body, watch)
        except ClientDisconnect:
            return
        except RequestRefusedError as refusal:
            self._count(refusal)
            if not started:
                await self._refuse(refusal, scope, receive, send)
        finally:
            held = {token.name if token else "": body.n_bytes}
            call_when_ended(state["work"], lambda: self._held_bytes.subtract(held))

    def _hold(self, n_bytes: int, token: TokenSettings | None) -> None:
        name = token.name if token else ""
        max_bytes = token.max_pending_mb * (1 << 20) if token else self._limits.max_held_bytes
        is_full = self._held_bytes.total() + n_bytes > self._limits.max_held_bytes
        if is_full or self._held_bytes[name] + n_bytes > max_bytes:
            raise build_overload_refusal("the service holds as many bytes as it may. Retry later")
        self._held_bytes[name] += n_bytes

    def _authorise(self, scope: "Scope", headers: dict[bytes, str]) -> TokenSettings | None:
        """Return the token of a request; raise `RequestRefusedError` for one that is not allowed."""
        raise NotImplementedError

    def _count(self, refusal: RequestRefusedError) -> None:
        """Count a refused request."""

    async def _refuse(
        self, refusal: RequestRefusedError, _scope: "Scope", _receive: "Receive", send: "Send"
    ) -> None:
        headers = {"content-type": "application/json", "connection": "close", **refusal.headers}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": refusal.status, "headers": encoded})
        await send({"type": "http.response.body", "body": json.dumps(refusal.document).encode()})

    def _require_size(self, headers: dict[bytes, str], token: TokenSettings | None) -> int:
        """Return the maximum size of the request's body; refuse a larger `content-length`."""
        max_bytes = self._limits.max_request_bytes
        if token is not None and token.max_mb is not None:
            max_bytes = min(max_bytes, int(token.max_mb * (1 << 20)))
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > max_bytes:
            raise build_too_large_refusal(max_bytes)
        return max_bytes


class _LimitedRequestBody:
    """Body of a request with a limit of size and time; `hold` counts its bytes."""

    def __init__(self, receive: "Receive", upload_s: float, hold: "Callable[[int], None]") -> None:
        self._receive, self._upload_s, self._hold = receive, upload_s, hold
        self._until_s = time.monotonic() + upload_s
        self._is_complete = False
        self.max_bytes = self.n_bytes = 0

    async def __call__(self) -> "Message":
        if self._is_complete:  # the server waits here until the connection ends
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._until_s - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise RequestRefusedError(
                SLOW, "slow-upload", f"the body took longer than {self._upload_s:g} s"
            ) from None
        n_bytes = len(message.get("body", b""))
        if self.n_bytes + n_bytes > self.max_bytes:
            raise build_too_large_refusal(self.max_bytes)
        self._hold(n_bytes)
        self.n_bytes += n_bytes
        self._is_complete = not message.get("more_body", False)
        return message
