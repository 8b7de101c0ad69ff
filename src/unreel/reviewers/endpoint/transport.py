"""One request to an OpenAI-compatible server: bytes out, bytes in, never more than a cap."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import httpx2
import openai

from unreel.core.errors import raise_refusal
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.endpoint.providers import Address

BODY_CAP_BYTES: Final = 2 * 1024 * 1024
"""A chat reply is a few kilobytes; what is longer is no reply."""
_SENT_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "user-agent",
    }
)


@dataclass(frozen=True, slots=True)
class RawReply:
    """What the server sent, whatever its status."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None


class Transport(Protocol):
    """Carries one request. It neither retries nor limits time: the caller does."""

    async def send(self, body: bytes, *, key: str) -> RawReply | Failure:
        """The server's reply to `body`, or why none came; `key` is the idempotency key."""
        ...

    async def close(self) -> None:
        """Close all connections; harmless when called twice."""
        ...


class OpenAITransport:
    """The `openai` client with its retries, redirects and ambient credentials switched off.

    The proxy that the environment names is used, as everywhere, but never towards this machine: over
    https it sees no more than the host, and in clear it would read all.
    """

    def __init__(
        self, address: Address, *, api_key: str | None, max_connections: int, cap_bytes: int
    ) -> None:
        self._cap_bytes = cap_bytes
        self._api_key = api_key
        server = address.server
        limits = httpx2.Limits(
            max_connections=max_connections, max_keepalive_connections=max_connections
        )
        self._http = httpx2.AsyncClient(
            limits=limits,
            timeout=None,  # the caller's deadline ends every request
            event_hooks={"request": [self._strip], "response": [self._cap]},
            mounts={f"all://{server}": None} if server.is_loopback else None,
        )
        self._client = openai.AsyncOpenAI(
            base_url=address.base_url,
            api_key=api_key or "none",
            http_client=self._http,
            max_retries=0,
        )

    async def send(self, body: bytes, *, key: str) -> RawReply | Failure:
        try:
            response = await self._client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                content=body,
                options={
                    "headers": {"Idempotency-Key": key},
                    "follow_redirects": False,
                },
            )
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            return _connection_failure(error)
        return RawReply(response.status_code, response.content, response.headers.get("retry-after"))

    async def close(self) -> None:
        await self._http.aclose()

    async def _strip(self, request: httpx2.Request) -> None:
        """Leave what a request needs: the client adds OPENAI_* variables for any host."""
        for name in set(request.headers) - _SENT_HEADERS:
            del request.headers[name]
        request.headers["Accept-Encoding"] = "identity"  # or a body would grow after the cap
        if self._api_key:
            request.headers["Authorization"] = f"Bearer {self._api_key}"

    async def _cap(self, response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise _RefusedBodyError(
                FailureReason.MALFORMED_REPLY, f"the body is encoded as {encoding[:20]}, unasked"
            )
        declared = response.headers.get("content-length", "")
        if declared.isdecimal() and float(declared) > self._cap_bytes:
            raise _too_large(self._cap_bytes)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101  for the type only
        response.stream = _CappedStream(response.stream, cap_bytes=self._cap_bytes)


class _RefusedBodyError(httpx2.RequestError):
    """Our own reason to stop reading, in the tree that the client passes on."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(detail)
        self.failure = Failure(reason, detail)


class _CappedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, *, cap_bytes: int) -> None:
        self._stream = stream
        self._cap_bytes = cap_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for chunk in self._stream:
            n_bytes += len(chunk)
            if n_bytes > self._cap_bytes:
                raise _too_large(self._cap_bytes)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _too_large(cap_bytes: int) -> _RefusedBodyError:
    return _RefusedBodyError(FailureReason.REPLY_TOO_LARGE, f"the body exceeds {cap_bytes} bytes")


def _connection_failure(error: openai.APIConnectionError) -> Failure:
    cause = error.__cause__
    if isinstance(cause, _RefusedBodyError):
        return cause.failure
    raise_refusal(error)
    # Only the kind of error: its text may repeat an address with a password in it.
    kind = type(cause).__name__ if cause else type(error).__name__
    return Failure(FailureReason.CONNECTION_LOST, f"the connection failed ({kind})")
