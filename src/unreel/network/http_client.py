"""HTTP clients that connect only to checked addresses, and replies with a size limit.

No client follows redirects, keeps cookies or accepts a compressed body, which would grow after the limit. The proxy
from the environment is used, except for local servers; with HTTPS, the proxy sees only the host name.
"""

import asyncio
import time
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx2

from unreel.core.address_check import (
    RefusedAddressError,
    parse_ip_address,
    require_allowed_addresses,
    resolve_host,
)
from unreel.core.errors import raise_if_machine_error
from unreel.core.failure import Failure, FailureReason
from unreel.core.server_keys import ServerAddress

_RESOLVED_S = 60.0
"""Lifetime of a resolved name in seconds, like that of a resolver's cache."""


class CheckedAddressTransport(httpx2.AsyncBaseTransport):
    """HTTP transport that resolves the host of each request and connects only to a checked address.

    The `Host` header and the TLS server name stay those of the host. With a proxy the proxy
    resolves the names: only hosts that are written as IP addresses can be checked.
    """

    def __init__(self, *, max_connections: int, proxy: str | None = None) -> None:
        self._inner = httpx2.AsyncHTTPTransport(
            proxy=proxy,
            limits=httpx2.Limits(
                max_connections=max_connections, max_keepalive_connections=max_connections
            ),
        )
        self._proxied = proxy is not None
        self._resolved: dict[tuple[str, int], tuple[float, list[str]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` to the first address that accepts a connection.

        Raises:
            RefusedAddressError: The host resolves to an address to which unreel never connects.
        """
        url = request.url
        if self._proxied or parse_ip_address(url.host) is not None:
            require_allowed_addresses(url.host, [url.host])
            return await self._inner.handle_async_request(request)
        endpoint = (url.host, url.port or (443 if url.scheme == "https" else 80))
        refusal: httpx2.ConnectError | None = None
        for address in await self._addresses(*endpoint):
            pinned = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": url.host},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except httpx2.ConnectError as error:
                refusal = error
        self._resolved.pop(endpoint, None)
        raise refusal or httpx2.ConnectError("the host has no address", request=request)

    async def _addresses(self, host: str, port: int) -> list[str]:
        until_s, addresses = self._resolved.get((host, port), (0.0, []))
        if time.monotonic() >= until_s:
            peers = await asyncio.to_thread(resolve_host, host, port)
            addresses = [address for address, _ in peers]
            self._resolved[host, port] = (time.monotonic() + _RESOLVED_S, addresses)
        return addresses

    async def aclose(self) -> None:
        await self._inner.aclose()


def find_proxy(server: ServerAddress) -> str | None:
    """Return the URL of the proxy for `server` from the environment; `None` for a local server."""
    if server.is_loopback or proxy_bypass(f"{server.host}:{server.port}"):
        return None
    proxies = getproxies()
    proxy = proxies.get(server.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


REPLY_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class HttpReply:
    """HTTP response of a server: status, body, and the header Retry-After."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None


def open_http_client(
    server: ServerAddress, *, max_connections: int, headers: dict[str, str], base_url: str = ""
) -> httpx2.AsyncClient:
    """Return an asynchronous HTTP client without a timeout: the caller's deadline ends requests."""
    transport = CheckedAddressTransport(max_connections=max_connections, proxy=find_proxy(server))
    return httpx2.AsyncClient(
        base_url=base_url, timeout=None, transport=transport, **_build_client_options(headers)
    )


def open_blocking_http_client(
    server: ServerAddress, *, base_url: str, timeout_s: float, keeps_cookies: bool = False
) -> httpx2.Client:
    """Return a synchronous HTTP client for `server`, for use without an event loop."""
    transport = httpx2.HTTPTransport(proxy=find_proxy(server))
    options = _build_client_options({}, keeps_cookies=keeps_cookies)
    return httpx2.Client(base_url=base_url, timeout=timeout_s, transport=transport, **options)


def _build_client_options(
    headers: dict[str, str], *, keeps_cookies: bool = False
) -> dict[str, Any]:
    defaults = {"Accept-Encoding": "identity", "User-Agent": f"unreel/{version('unreel')}"}
    policy = DefaultCookiePolicy(allowed_domains=None if keeps_cookies else ())
    return {"headers": defaults | headers, "cookies": CookieJar(policy), "follow_redirects": False}


async def read_http_reply(
    response: httpx2.Response, *, cap_bytes: int = REPLY_BYTES
) -> HttpReply | Failure:
    """Read the response; return the reply, or a failure if it is longer than `cap_bytes` or encoded."""
    if encoded := find_unexpected_encoding(response):
        return encoded
    too_large = Failure(FailureReason.REPLY_TOO_LARGE, f"the body exceeds {cap_bytes} bytes")
    if declares_larger_body(response, cap_bytes):
        return too_large
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > cap_bytes:
            return too_large
    return HttpReply(response.status_code, bytes(body), response.headers.get("retry-after"))


def read_blocking_http_body(response: httpx2.Response, *, cap_bytes: int) -> bytes | None:
    """Return the body of a reply to a blocking client, or `None` if it is longer than `cap_bytes`."""
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > cap_bytes:
            return None
    return bytes(body)


def find_unexpected_encoding(response: httpx2.Response) -> Failure | None:
    """Return a failure if the body is encoded although no encoding was accepted."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding == "identity":
        return None
    detail = f"the body is encoded as {encoding[:20]!a}, unasked"
    return Failure(FailureReason.MALFORMED_REPLY, detail)


def declares_larger_body(response: httpx2.Response, cap_bytes: int) -> bool:
    """Return whether the headers declare a body longer than `cap_bytes`."""
    declared = response.headers.get("content-length", "")
    return declared.isdecimal() and float(declared) > cap_bytes


def convert_connection_error_to_failure(error: Exception) -> Failure:
    """Return the failure for a connection that raised `error`.

    Raise `MachineError` if the machine caused the error, such as too many open files.
    """
    if isinstance(error, RefusedAddressError):
        return Failure(FailureReason.NOT_NAMED, str(error))
    raise_if_machine_error(error)
    # Only the type of the error: its text may contain the key, or an address with a password.
    detail = f"the connection failed ({type(error).__name__})"
    return Failure(FailureReason.CONNECTION_LOST, detail)
