"""HTTP clients of one configuration, and replies with a size limit.

No client follows redirects, keeps cookies or accepts a compressed body, which would grow after the limit. The proxy
that the environment names is used, but not towards this machine: over https it sees no more than the host.
"""

from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Any, Final

import httpx2

from unreel.core.address_check import RefusedAddressError
from unreel.core.errors import raise_refusal
from unreel.core.failure import Failure, FailureReason
from unreel.core.server_keys import ServerAddress
from unreel.network.transport import CheckedTransport, find_proxy

REPLY_BYTES: Final = 2 << 20
"""A JSON reply is a few kilobytes; a longer one is invalid."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Response of a server with any status."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None


def open_client(
    server: ServerAddress, *, max_connections: int, headers: dict[str, str], base_url: str = ""
) -> httpx2.AsyncClient:
    """Return a client for `server` without a timeout: the caller's deadline ends every request."""
    transport = CheckedTransport(max_connections=max_connections, proxy=find_proxy(server))
    return httpx2.AsyncClient(
        base_url=base_url, timeout=None, transport=transport, **_build_client_options(headers)
    )


def open_blocking_client(
    server: ServerAddress, *, base_url: str, timeout_s: float, keeps_cookies: bool = False
) -> httpx2.Client:
    """Return a client for `server` that is used without an event loop."""
    transport = httpx2.HTTPTransport(proxy=find_proxy(server))
    options = _build_client_options({}, keeps_cookies=keeps_cookies)
    return httpx2.Client(base_url=base_url, timeout=timeout_s, transport=transport, **options)


def _build_client_options(
    headers: dict[str, str], *, keeps_cookies: bool = False
) -> dict[str, Any]:
    own = {"Accept-Encoding": "identity", "User-Agent": f"unreel/{version('unreel')}"}
    policy = DefaultCookiePolicy(allowed_domains=None if keeps_cookies else ())
    return {"headers": own | headers, "cookies": CookieJar(policy), "follow_redirects": False}


async def read_reply(
    response: httpx2.Response, *, cap_bytes: int = REPLY_BYTES
) -> HttpReply | Failure:
    """Return the reply, or a failure if it is longer than `cap_bytes` or encoded."""
    if encoded := find_encoding(response):
        return encoded
    too_large = Failure(FailureReason.REPLY_TOO_LARGE, f"the body exceeds {cap_bytes} bytes")
    if declares_more(response, cap_bytes):
        return too_large
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > cap_bytes:
            return too_large
    return HttpReply(response.status_code, bytes(body), response.headers.get("retry-after"))


def read_blocking_body(response: httpx2.Response, *, cap_bytes: int) -> bytes | None:
    """Return the body of a reply to a blocking client, or `None` if it is longer than `cap_bytes`."""
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > cap_bytes:
            return None
    return bytes(body)


def find_encoding(response: httpx2.Response) -> Failure | None:
    """Return a failure if the body is encoded although no encoding was accepted."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding == "identity":
        return None
    detail = f"the body is encoded as {encoding[:20]!a}, unasked"
    return Failure(FailureReason.MALFORMED_REPLY, detail)


def declares_more(response: httpx2.Response, cap_bytes: int) -> bool:
    """Return whether the headers declare a body longer than `cap_bytes`."""
    declared = response.headers.get("content-length", "")
    return declared.isdecimal() and float(declared) > cap_bytes


def describe_lost(error: Exception) -> Failure:
    """Return the failure of a request that raised `error`; refusals of unreel itself are raised again."""
    if isinstance(error, RefusedAddressError):
        return Failure(FailureReason.NOT_NAMED, str(error))
    raise_refusal(error)
    # Only the kind of error: its text may repeat the key, or an address with a password.
    detail = f"the connection failed ({type(error).__name__})"
    return Failure(FailureReason.CONNECTION_LOST, detail)
