"""Requests to one service: small JSON replies and clips, each with an end to its size; no redirect is followed."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any, Final
from urllib.parse import urljoin

import httpx2

from unreel.core.failure import Failure, FailureReason
from unreel.core.server_keys import read_server
from unreel.creators.endpoint.service_endpoint import ServiceEndpoint
from unreel.network.client import (
    HttpReply,
    declares_more,
    describe_lost,
    find_encoding,
    open_client,
    read_reply,
)

_WORDS: Final = ("text/", "application/json", "application/xml")
_REDIRECTS: Final = frozenset(range(300, 400))


@dataclass(frozen=True, slots=True)
class MovedClip:
    """A clip at another URL."""

    url: str


class ServiceClient:
    """Speaks to one service. It neither retries nor limits time: the caller does."""

    def __init__(self, way: ServiceEndpoint, *, max_connections: int) -> None:
        server = way.server
        self._base = way.url.rstrip("/") + "/"
        self._server = server
        headers = {way.header: way.prefix + way.key} if way.key else {}
        self._http = open_client(server, max_connections=max_connections, headers=headers)

    def owns(self, url: str) -> bool:
        """Return whether `url` belongs to this service, which may receive its key."""
        try:
            return read_server(url.partition("?")[0].partition("#")[0]) == self._server
        except ValueError:
            return False

    def resolve(self, target: str) -> str:
        """Resolve `target`, a URL or part of a URL from the service, to an absolute URL."""
        return urljoin(self._base, target)

    async def get(self, path: str) -> HttpReply | Failure:
        """Return the response to a GET of `path`."""
        return await self._send("GET", path, headers={"Accept": "application/json"})

    async def post(self, path: str, body: bytes, *, key: str) -> HttpReply | Failure:
        """Return the response to a POST of `body`; `key` is the idempotency key."""
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        return await self._send("POST", path, headers=headers, content=body)

    async def download(self, url: str, into: IO[bytes], *, most: int) -> Failure | MovedClip | None:
        """Copy a clip of this service into an open file, which the caller throws away where that fails."""
        try:
            async with self._http.stream("GET", url) as response:
                return await _write_response(response, into, most)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            return describe_lost(error)

    async def close(self) -> None:
        """Close all connections; harmless when called twice."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, **told: Any) -> HttpReply | Failure:
        try:
            async with self._http.stream(method, self._base + path.lstrip("/"), **told) as response:
                return await read_reply(response)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            return describe_lost(error)


async def _write_response(
    response: httpx2.Response, into: IO[bytes], most: int
) -> Failure | MovedClip | None:
    unfit = _find_response_problem(response, most)
    if unfit is not None:
        return unfit
    n_bytes = 0
    async for chunk in response.aiter_raw():
        n_bytes += len(chunk)
        if n_bytes > most:
            return _build_size_failure(most)
        into.write(chunk)
    return None


def _find_response_problem(response: httpx2.Response, most: int) -> Failure | MovedClip | None:
    if response.status_code in _REDIRECTS:
        return MovedClip(urljoin(str(response.url), response.headers.get("location", "")))
    if response.status_code != HTTPStatus.OK:
        detail = f"the clip's address answers with status {response.status_code}"
        return Failure(FailureReason.SERVER_ERROR, detail)
    kind = response.headers.get("content-type", "").lower()
    if kind.startswith(_WORDS):
        return Failure(FailureReason.MALFORMED_REPLY, f"{kind[:40]!a} came, and not a clip")
    return _build_size_failure(most) if declares_more(response, most) else find_encoding(response)


def _build_size_failure(most: int) -> Failure:
    return Failure(FailureReason.TOO_LARGE, f"the clip exceeds {most} bytes")
