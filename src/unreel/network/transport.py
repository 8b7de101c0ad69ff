"""HTTP transport that connects only to addresses that were checked (`core/address_check.py`)."""

import asyncio
import time
from typing import Final
from urllib.request import getproxies, proxy_bypass

import httpx2

from unreel.core.address_check import parse_address, require_allowed, resolve_host
from unreel.core.server_keys import ServerAddress

_RESOLVED_S: Final = 60.0
"""Lifetime of a resolved name, as a resolver's cache has it."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves the host of each request, checks its addresses and connects to one of these.

    The `Host` header and the TLS server name stay those of the host. With a proxy the proxy resolves the names: only
    addresses that are written as such can be checked.
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
        if self._proxied or parse_address(url.host) is not None:
            require_allowed(url.host, [url.host])
            return await self._inner.handle_async_request(request)
        place = (url.host, url.port or (443 if url.scheme == "https" else 80))
        refusal: httpx2.ConnectError | None = None
        for address in await self._addresses(*place):
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
        self._resolved.pop(place, None)
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
    """Return the proxy that the environment names for `server`; none for this machine."""
    if server.is_loopback or proxy_bypass(f"{server.host}:{server.port}"):
        return None
    proxies = getproxies()
    proxy = proxies.get(server.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"
