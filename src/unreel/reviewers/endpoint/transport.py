"""One request to a server that judges: bytes out, bytes in, never more than a cap."""

from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Final, Protocol

import httpx2

from unreel.core.errors import raise_refusal
from unreel.core.failure import Failure, FailureReason
from unreel.core.outgoing import RefusedAddressError
from unreel.network.transport import open_transport
from unreel.reviewers.endpoint.providers import ModelAddress

BODY_CAP_BYTES: Final = 2 * 1024 * 1024
"""A chat reply is a few kilobytes; what is longer is no reply."""
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


@dataclass(frozen=True, slots=True)
class RawEndpointReply:
    """Response of the server with any status."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None


class UnsentRequest(Failure):
    """No connection could be opened, so the server received nothing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PostTarget:
    """Path below the server's URL, and type of the posted bodies."""

    path: str
    kind: str = "application/json"


CHAT: Final = PostTarget("/chat/completions")


class RequestTransport(Protocol):
    """Carries one request. It neither retries nor limits time: the caller does."""

    async def send(self, body: bytes, *, key: str) -> RawEndpointReply | Failure:
        """The server's reply to `body`, or why none came; `key` is the idempotency key."""
        ...

    async def close(self) -> None:
        """Close all connections; harmless when called twice."""
        ...


class HttpTransport:
    """Posts over a pool of connections; redirects are not followed and cookies not kept.

    The proxy that the environment names is used, as everywhere, but never towards this machine: over
    https it sees no more than the host, and in clear it would read all.
    """

    def __init__(
        self,
        address: ModelAddress,
        *,
        api_key: str | None,
        max_connections: int,
        cap_bytes: int,
        post: PostTarget = CHAT,
    ) -> None:
        self._cap_bytes = cap_bytes
        self._path = post.path
        self._api_key = api_key
        self._http = httpx2.AsyncClient(
            base_url=address.base_url,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",  # or a body would grow after the cap
                "Content-Type": post.kind,
                "User-Agent": f"unreel/{version('unreel')}",
            },
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=None,  # the caller's deadline ends every request
            transport=open_transport(address.server, max_connections=max_connections),
        )

    async def send(self, body: bytes, *, key: str) -> RawEndpointReply | Failure:
        headers = {"Idempotency-Key": key}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            async with self._http.stream(
                "POST", self._path, content=body, headers=headers
            ) as response:
                return await _read(response, cap_bytes=self._cap_bytes)
        except RefusedAddressError as error:
            return Failure(FailureReason.NOT_NAMED, str(error))
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            raise_refusal(error)
            # Only the kind of error: its text may repeat the key, or an address with a password.
            detail = f"the connection failed ({type(error).__name__})"
            kind = UnsentRequest if isinstance(error, _UNSENT) else Failure
            return kind(FailureReason.CONNECTION_LOST, detail)

    async def close(self) -> None:
        await self._http.aclose()


async def _read(response: httpx2.Response, *, cap_bytes: int) -> RawEndpointReply | Failure:
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        detail = f"the body is encoded as {encoding[:20]}, unasked"
        return Failure(FailureReason.MALFORMED_REPLY, detail)
    too_large = Failure(FailureReason.REPLY_TOO_LARGE, f"the body exceeds {cap_bytes} bytes")
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and float(declared) > cap_bytes:
        return too_large
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > cap_bytes:
            return too_large
    return RawEndpointReply(response.status_code, bytes(body), response.headers.get("retry-after"))
