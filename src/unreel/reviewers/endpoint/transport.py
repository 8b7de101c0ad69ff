"""One request to a server that judges: bytes out, bytes in, never more than a cap."""

from dataclasses import dataclass
from typing import Final, Protocol

import httpx2

from unreel.core.failure import Failure
from unreel.network.client import HttpReply, describe_lost, open_client, read_reply
from unreel.reviewers.endpoint.providers import ModelAddress

_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


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

    async def send(self, body: bytes, *, key: str) -> HttpReply | Failure:
        """Send `body` and return the server's reply, or a failure; `key` is the idempotency key."""
        ...

    async def close(self) -> None:
        """Close all connections; harmless when called twice."""
        ...


class HttpTransport:
    """Posts over a pool of connections."""

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
        self._http = open_client(
            address.server,
            max_connections=max_connections,
            headers={"Accept": "application/json", "Content-Type": post.kind},
            base_url=address.base_url,
        )

    async def send(self, body: bytes, *, key: str) -> HttpReply | Failure:
        headers = {"Idempotency-Key": key}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            async with self._http.stream(
                "POST", self._path, content=body, headers=headers
            ) as response:
                return await read_reply(response, cap_bytes=self._cap_bytes)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            lost = describe_lost(error)
            is_unsent = isinstance(error, _UNSENT)
            return UnsentRequest(lost.reason, lost.detail) if is_unsent else lost

    async def close(self) -> None:
        await self._http.aclose()
