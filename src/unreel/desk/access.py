"""Access control of the desk: sessions from one-time tokens or a proxy's user header; form checks."""

import hashlib
import hmac
import os
import pwd
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response

from unreel.core.safe_text import sanitise_line
from unreel.desk.pages import render_refusal_page
from unreel.desk.settings import DeskSettings, ProxySettings
from unreel.webapp.refusals import RequestRefusedError
from unreel.webapp.request_limits import RequestLimitMiddleware
from unreel.webapp.tokens import TokenSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGIN = "/login"
SESSION_S = 12 * 3600.0
"""Time in seconds without a request after which a session ends."""
STATIC = "/static/"
_MAX_USER = 200
_MAPPED = "::ffff:"
"""Prefix of the address of an IPv4 client at a server that listens on IPv6."""
_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}


class DeskAuthenticator:
    """Authenticator of the people who send requests to the desk.

    Args:
        proxy: Proxy that signs people in; without it a one-time token opens a session.
        on_link: Callback that receives the path of a new one-time link after each use of one.
    """

    def __init__(
        self, proxy: ProxySettings | None, on_link: Callable[[str], None] = lambda _path: None
    ) -> None:
        self._proxy, self._on_link = proxy, on_link
        self._token = secrets.token_urlsafe(32)
        self._secret = secrets.token_bytes(32)
        self._sessions: dict[str, float] = {}
        """Time of the last request of each session, by its identity."""
        self._local_user = _read_user_name()

    @property
    def link(self) -> str:
        """Return the path of the one-time login link; behind a proxy, the path of the start page."""
        return "/" if self._proxy else f"{LOGIN}?token={self._token}"

    def open_session(self, token: str) -> str | None:
        """Open a session with the one-time token and return its id; `None` for an unknown or used token."""
        expected = self._token.encode()
        if self._proxy or not hmac.compare_digest(token.encode("utf-8", "replace"), expected):
            return None
        self._token = secrets.token_urlsafe(32)
        self._on_link(self.link)
        session = secrets.token_urlsafe(32)
        self._sessions[f"session {session}"] = time.monotonic()
        return session

    def has_session(self, identity: str) -> bool:
        """Return whether a person is still signed in; the proxy decides it for people behind one."""
        ended_s = time.monotonic() - SESSION_S
        if self._sessions.get(identity, ended_s) <= ended_s:
            self._sessions.pop(identity, None)
        return self._proxy is not None or identity in self._sessions

    def close_session(self, identity: str) -> None:
        """End the session of a person."""
        self._sessions.pop(identity, None)

    def identify(self, scope: "Scope", headers: dict[bytes, str]) -> tuple[str, str] | None:
        """Return the name and the identity of the person who sends a request; `None` if it has no person."""
        if self._proxy is not None:
            peer = (scope.get("client") or ("",))[0]
            header = self._proxy.user_header.lower().encode()
            values = [value.strip() for key, value in scope["headers"] if key.lower() == header]
            if peer.removeprefix(_MAPPED) != self._proxy.address or len(values) != 1:
                return None
            name = sanitise_line(values[0].decode(errors="replace"))[:_MAX_USER]
            return (name, f"user {values[0]!r}") if name else None
        session = cookie_parser(headers.get(b"cookie", "")).get(get_session_cookie_name(scope), "")
        identity = f"session {session}"
        if not self.has_session(identity):
            return None
        self._sessions[identity] = time.monotonic()
        return self._local_user, identity

    def make_form_token(self, identity: str) -> str:
        """Return the anti-forgery token that every form of the person with this `identity` contains."""
        return hmac.new(self._secret, identity.encode(), hashlib.sha256).hexdigest()

    def require_form_token(self, identity: str, token: object) -> None:
        """Raise an error unless a form has the anti-forgery token of the person who sends it.

        Raises:
            RequestRefusedError: The token is missing, or it belongs to another person.
        """
        if not hmac.compare_digest(str(token).encode(), self.make_form_token(identity).encode()):
            raise RequestRefusedError(
                403, "form-token", "The form is out of date. Reload the page and send it again"
            )


class DeskMiddleware(RequestLimitMiddleware):
    """Middleware of the desk that rejects unknown people, forms of other sites, and large bodies."""

    def __init__(
        self, app: "ASGIApp", authenticator: DeskAuthenticator, settings: DeskSettings
    ) -> None:
        super().__init__(app, settings)
        self._access = authenticator

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on if it is allowed, and add the security headers to its response."""

        async def send_protected(message: "Message") -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [item for item in _HEADERS.items() if item[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await super().__call__(scope, receive, send_protected)

    def _authorise(self, scope: "Scope", headers: dict[bytes, str]) -> TokenSettings | None:
        path, method = scope["path"], scope["method"]
        user = self._access.identify(scope, headers)
        if user is not None:
            scope["state"]["person"], scope["state"]["identity"] = user
        elif not (path.startswith(STATIC) or (path == LOGIN and method == "GET")):
            raise RequestRefusedError(
                401, "unauthorised", "Open the link that `unreel desk` printed, or sign in"
            )
        if method not in {"GET", "HEAD"}:
            require_same_site(headers)
        return None

    async def _refuse(
        self, refusal: RequestRefusedError, scope: "Scope", receive: "Receive", send: "Send"
    ) -> None:
        await build_refusal_response(scope, refusal)(scope, receive, send)


def require_same_site(headers: dict[bytes, str]) -> None:
    """Require that the browser sent a form from a page of this site.

    Raises:
        RequestRefusedError: The headers name another site, or no site.
    """
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    is_same = site == "same-origin"
    if site is None and origin is not None:
        is_same = urlsplit(origin).netloc == headers.get(b"host")
    if not is_same:
        raise RequestRefusedError(403, "cross-site", "The form came from another site")


def build_refusal_response(scope: "Scope", refusal: RequestRefusedError) -> Response:
    """Return the response to a refused request: a page for a browser, JSON for other clients."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    added = {name: text for name, text in refusal.headers.items() if name != "www-authenticate"}
    if b"text/html" in headers.get(b"accept", b""):
        return HTMLResponse(
            render_refusal_page(refusal.status, refusal.message), refusal.status, added
        )
    return JSONResponse(refusal.document, refusal.status, added)


def get_session_cookie_name(scope: "Scope") -> str:
    """Return the cookie's name with the port, since browsers share cookies between ports."""
    return f"unreel-desk-{(scope.get('server') or ('', 0))[1]}"


def _read_user_name() -> str:
    """Return the name of the user of this process; its number in a container that knows no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
