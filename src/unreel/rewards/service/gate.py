"""Access checks of the reward service: tokens, scopes and the reason to stop."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import Counter

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import parse_server_url
from unreel.rewards.service.settings import RewardServiceSettings
from unreel.webapp.refusals import (
    FORBIDDEN,
    STOPPED,
    UNAUTHORISED,
    InvalidRequestError,
    RequestRefusedError,
)
from unreel.webapp.request_limits import RequestLimitMiddleware
from unreel.webapp.tokens import Scope, TokenSettings, find_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from starlette.types import Scope as Connection

_OPEN = ("/health", "/ready", "/openapi.json")


class RewardServiceMiddleware(RequestLimitMiddleware):
    """Access checks of the reward service: bearer tokens with scopes, and metrics of refusals."""

    def __init__(
        self,
        app: "ASGIApp",
        settings: RewardServiceSettings,
        find_refusal: Callable[[], str | None],
        refused: Counter,
    ) -> None:
        super().__init__(app, settings)
        self._settings, self._find_refusal, self._refused = settings, find_refusal, refused

    def _count(self, refusal: RequestRefusedError) -> None:
        self._refused.labels(refusal.reason).inc()

    def _authorise(self, scope: "Connection", headers: dict[bytes, str]) -> TokenSettings | None:
        path = scope["path"]
        if not self._settings.tokens and not _is_local_host(headers.get(b"host")):
            raise RequestRefusedError(
                FORBIDDEN, "foreign-host", "the host of the request is not a loopback address"
            )
        if path in _OPEN:
            return None
        token = find_token(headers.get(b"authorization"), self._settings.tokens)
        if self._settings.tokens:
            needed: Scope = "compare" if path.endswith(":compare") else "reward"
            needed = "metrics" if path == "/metrics" else needed
            if token is None:
                raise RequestRefusedError(
                    UNAUTHORISED, "unauthorised", "the bearer token is missing or unknown"
                )
            if needed not in token.scopes:
                raise RequestRefusedError(
                    FORBIDDEN, "forbidden", f"token {token.name} lacks the scope {needed}"
                )
        elif not _is_local_origin(headers.get(b"origin")):
            raise RequestRefusedError(
                FORBIDDEN, "cross-site", "a web page of another site sent the request"
            )
        if scope["method"] == "POST" and (reason := self._find_refusal()):
            raise RequestRefusedError(STOPPED, "stopped", reason, 5.0)
        return token


def _is_local_origin(origin: str | None) -> bool:
    """Return whether a request without a token comes from a program, or from a page of this machine."""
    try:
        return origin is None or parse_server_url(origin).is_loopback
    except InvalidSettingError:  # for example `null`
        return False


def _is_local_host(host: str | None) -> bool:
    """Return whether a request is addressed to this machine; a name that was rebound to it is not."""
    try:
        return host is not None and parse_server_url(f"http://{host}").is_loopback
    except InvalidSettingError:
        return False


def require_max_items(n_items: int, max_items: int) -> None:
    """Raise `RequestRefusedError` for more than `max_items` items in one request."""
    if n_items > max_items:
        raise InvalidRequestError(
            f"{n_items} items; at most {max_items} are accepted. Send fewer at a time"
        )
