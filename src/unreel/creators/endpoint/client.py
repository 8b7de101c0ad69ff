"""HTTP client of a video service: limited reply and clip sizes, retries, deadlines, no redirects."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import IO, Any, Final
from urllib.parse import urljoin

import httpx2

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import parse_json
from unreel.core.retry import MOST_ATTEMPTS, RetryPolicy, backoff_s, parse_retry_after
from unreel.core.safe_text import sanitise_line
from unreel.core.server_keys import parse_server_url
from unreel.creators.endpoint.service import VideoServiceEndpoint
from unreel.network.http_client import (
    HttpReply,
    convert_connection_error_to_failure,
    declares_larger_body,
    find_unexpected_encoding,
    open_http_client,
    read_http_reply,
)

_READABLE: Final = 200
_MALFORMED_TRIES: Final = 3
"""Maximum number of malformed replies: a fourth attempt rarely helps, and the job may be charged."""
_PASSING: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.LOCKED, HTTPStatus.TOO_EARLY}
)
ServiceReply = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoServiceFailure:
    """Failure of one request to a video service, and whether a retry may help."""

    failure: Failure
    final: bool = False
    """Whether a retry would fail in the same way."""
    absent: bool = False
    """Whether the requested URL does not exist (status 404 or 410)."""
    wait_s: float = 0.0

    @property
    def makes_no_sense(self) -> bool:
        """Return whether the service's reply was malformed or too large."""
        return self.failure.reason in {FailureReason.MALFORMED_REPLY, FailureReason.REPLY_TOO_LARGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryableServiceRequest:
    """Request to a video service that may be repeated, with its retry policy and deadline."""

    send: Callable[[], Awaitable[HttpReply | Failure]]
    key: str
    """Seed of the random backoff, so that many calls do not retry at the same time."""
    until_s: float
    patience: RetryPolicy
    most: int = MOST_ATTEMPTS


async def call_with_retries(call: RetryableServiceRequest) -> ServiceReply | VideoServiceFailure:
    """Send a request to the service until it succeeds; return the reply, or the last failure."""
    malformed = 0
    for attempt in range(1, call.most + 1):
        outcome = await _send_request_once(call)
        if not isinstance(outcome, VideoServiceFailure) or outcome.final or outcome.absent:
            return outcome
        malformed += outcome.makes_no_sense
        wait_s = outcome.wait_s + backoff_s(call.patience, key=call.key, attempt=attempt, seed=0)
        too_late = read_loop_clock_s() + wait_s >= call.until_s
        if attempt == call.most or malformed >= _MALFORMED_TRIES or too_late:
            return _build_final_failure(outcome, attempt)
        await asyncio.sleep(wait_s)
    raise AssertionError


async def _send_request_once(call: RetryableServiceRequest) -> ServiceReply | VideoServiceFailure:
    ends_at_s = min(call.until_s, read_loop_clock_s() + call.patience.attempt_s)
    try:
        async with asyncio.timeout_at(ends_at_s):
            raw = await call.send()
    except TimeoutError:
        detail = f"no reply within {call.patience.attempt_s:g} s"
        return VideoServiceFailure(failure=Failure(FailureReason.OUT_OF_TIME, detail))
    if isinstance(raw, Failure):
        return VideoServiceFailure(failure=raw, final=raw.reason is FailureReason.NOT_NAMED)
    return parse_service_reply(raw, now=datetime.now(UTC))


def parse_service_reply(raw: HttpReply, *, now: datetime) -> ServiceReply | VideoServiceFailure:
    """Parse the service's reply as a JSON object; return a failure for any other reply."""
    if not HTTPStatus.OK <= raw.status < HTTPStatus.MULTIPLE_CHOICES:
        return _build_http_status_failure(raw, now)
    try:
        body = parse_json(raw.body)
    except InvalidValueError:
        body = None
    if isinstance(body, dict):
        return body
    detail = f"the body is no JSON object: {_parse_error_message(raw.body)!r}"
    return VideoServiceFailure(failure=Failure(FailureReason.MALFORMED_REPLY, detail))


def sanitise_reply_value(value: object) -> str:
    """Convert an untrusted value from a service's reply to one short line of text."""
    if value is None:
        return "nothing is told"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    line = sanitise_line(" ".join(text[: 4 * _READABLE].split()))
    return line if len(line) <= _READABLE else line[: _READABLE - 1] + "…"


def _build_http_status_failure(raw: HttpReply, now: datetime) -> VideoServiceFailure:
    detail = f"status {raw.status}: {_parse_error_message(raw.body)}"
    wait_s = parse_retry_after(raw.retry_after, now=now)
    if raw.status == HTTPStatus.TOO_MANY_REQUESTS:
        failure = Failure(FailureReason.RATE_LIMITED, detail)
        return VideoServiceFailure(
            failure=failure, wait_s=wait_s, final=b'"insufficient_quota"' in raw.body
        )
    if raw.status >= HTTPStatus.INTERNAL_SERVER_ERROR or raw.status in _PASSING:
        return VideoServiceFailure(
            failure=Failure(FailureReason.SERVER_ERROR, detail), wait_s=wait_s
        )
    if raw.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return VideoServiceFailure(
            failure=Failure(FailureReason.REQUEST_REJECTED, detail), absent=True
        )
    is_key = raw.status == HTTPStatus.UNAUTHORIZED  # 403 may concern only this prompt
    reason = FailureReason.KEY_REJECTED if is_key else FailureReason.REQUEST_REJECTED
    return VideoServiceFailure(failure=Failure(reason, detail), final=True)


def _build_final_failure(setback: VideoServiceFailure, attempts: int) -> VideoServiceFailure:
    failure = setback.failure
    detail = f"{failure.detail} (given up, requests: {attempts})"
    return VideoServiceFailure(failure=Failure(failure.reason, detail))


def _parse_error_message(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        return sanitise_reply_value(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError, RecursionError):
        return sanitise_reply_value(body[: 4 * _READABLE].decode(errors="replace"))


def read_loop_clock_s() -> float:
    """Return the time of the event loop's clock, which timeouts use."""
    return asyncio.get_running_loop().time()


_WORDS: Final = ("text/", "application/json", "application/xml")
_REDIRECTS: Final = frozenset(range(300, 400))


@dataclass(frozen=True, slots=True)
class ClipDownloadRedirect:
    """Redirect of a clip's download to another URL, which the caller may follow."""

    url: str


class VideoServiceClient:
    """HTTP client of one video service. It neither retries nor limits time: the caller does."""

    def __init__(self, way: VideoServiceEndpoint, *, max_connections: int) -> None:
        server = way.server
        self._base = way.url.rstrip("/") + "/"
        self._server = server
        headers = {way.header: way.prefix + way.key} if way.key else {}
        self._http = open_http_client(server, max_connections=max_connections, headers=headers)

    def owns(self, url: str) -> bool:
        """Return whether `url` is on the server of this service, so that it may receive the API key."""
        try:
            return parse_server_url(url.partition("?")[0].partition("#")[0]) == self._server
        except ValueError:
            return False

    def resolve(self, target: str) -> str:
        """Resolve `target`, an absolute or relative URL from the service, to an absolute URL."""
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

    async def download(
        self, url: str, into: IO[bytes], *, max_bytes: int
    ) -> Failure | ClipDownloadRedirect | None:
        """Download up to `max_bytes`; return a redirect or a failure, after which to discard the file."""
        try:
            async with self._http.stream("GET", url) as response:
                return await _write_clip_response(response, into, max_bytes)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            return convert_connection_error_to_failure(error)

    async def close(self) -> None:
        """Close all connections; a second call does nothing."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, **options: Any) -> HttpReply | Failure:
        try:
            url = self._base + path.lstrip("/")
            async with self._http.stream(method, url, **options) as response:
                return await read_http_reply(response)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            return convert_connection_error_to_failure(error)


async def _write_clip_response(
    response: httpx2.Response, into: IO[bytes], max_bytes: int
) -> Failure | ClipDownloadRedirect | None:
    unfit = _find_response_problem(response, max_bytes)
    if unfit is not None:
        return unfit
    n_bytes = 0
    async for chunk in response.aiter_raw():
        n_bytes += len(chunk)
        if n_bytes > max_bytes:
            return _build_size_failure(max_bytes)
        into.write(chunk)
    return None


def _find_response_problem(
    response: httpx2.Response, max_bytes: int
) -> Failure | ClipDownloadRedirect | None:
    if response.status_code in _REDIRECTS:
        return ClipDownloadRedirect(
            urljoin(str(response.url), response.headers.get("location", ""))
        )
    if response.status_code != HTTPStatus.OK:
        detail = f"the clip's address answers with status {response.status_code}"
        return Failure(FailureReason.SERVER_ERROR, detail)
    kind = response.headers.get("content-type", "").lower()
    if kind.startswith(_WORDS):
        return Failure(FailureReason.MALFORMED_REPLY, f"{kind[:40]!a} came, and not a clip")
    return (
        _build_size_failure(max_bytes)
        if declares_larger_body(response, max_bytes)
        else find_unexpected_encoding(response)
    )


def _build_size_failure(max_bytes: int) -> Failure:
    return Failure(FailureReason.TOO_LARGE, f"the clip exceeds {max_bytes} bytes")
