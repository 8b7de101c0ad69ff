"""One HTTP request to a model server, and its response parsed to a reply or a failure."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Protocol, TypeGuard

import httpx2

from unreel.core.answer import Reply, Usage
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import parse_retry_after
from unreel.network.http_client import (
    HttpReply,
    convert_connection_error_to_failure,
    open_http_client,
    read_http_reply,
)
from unreel.reviewers.endpoint.model_address import ModelAddress

READABLE = 200
"""Maximum number of characters of a server's message that a failure quotes."""
MAX_TOKENS = 1_000_000_000
"""Maximum number of tokens of one answer; a server that reports more is treated as if it reported none."""
_STATUSES = range(HTTPStatus.BAD_REQUEST, 600)
_PASSING = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.LOCKED, HTTPStatus.TOO_EARLY}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailure:
    """A failed request to a server: cause, whether to retry, and whether it may cost money."""

    failure: Failure
    final: bool = False
    """Whether a retry is useless, because it would give the same result."""
    retry_after_s: float = 0.0
    usage: Usage | None = None
    billable: bool = False
    """Whether the request may cost money, because the model may have run; a rejected request costs nothing."""


def parse_chat_response(reply: HttpReply, *, now: datetime) -> Reply | RequestFailure:
    """Parse a chat completion response; return a failure with the reason if it is no valid answer."""
    body = _parse_json_object(reply, now=now)
    if isinstance(body, RequestFailure):
        return body
    if isinstance(body.get("error"), dict):  # some gateways report errors with status 200
        code = body["error"].get("code")
        if type(code) is int and code in _STATUSES:
            return _parse_error_response(HttpReply(code, reply.body, reply.retry_after), now=now)
        return _build_malformed_response_failure(
            f"an error with status {reply.status}: {_format_error_message(reply.body)!r}"
        )
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return _build_malformed_response_failure("the body has no choices[0].message")
    usage, counts = None, body.get("usage")
    if isinstance(counts, dict):
        n_input, n_output = counts.get("prompt_tokens"), counts.get("completion_tokens")
        if _is_token_count(n_input) and _is_token_count(n_output):
            usage = Usage(input_tokens=n_input, output_tokens=n_output)
    ended = choice.get("finish_reason")
    if isinstance(ended, str):
        ended = _shorten_to_line(ended)
    else:
        ended = "not reported" if ended is None else f"a {type(ended).__name__}"
    text, refusal = message.get("content"), message.get("refusal")
    if (isinstance(refusal, str) and refusal) or ended == "content_filter":
        reason = _shorten_to_line(refusal) if isinstance(refusal, str) else ended
        failure = Failure(FailureReason.REFUSED, reason)
        return RequestFailure(failure=failure, final=True, usage=usage, billable=True)
    if text is not None and not isinstance(text, str):
        return _build_malformed_response_failure(
            f"choices[0].message.content is a {type(text).__name__}, not a text"
        )
    if not text or text.isspace():
        failure = Failure(FailureReason.EMPTY_REPLY, f"no text came, finish_reason is {ended}")
        return RequestFailure(failure=failure, final=ended == "length", usage=usage, billable=True)
    named = body.get("model")
    answered_by = _shorten_to_line(named) if isinstance(named, str) else None
    return Reply(text=_replace_lone_surrogates(text), usage=usage, answered_by=answered_by)


def build_reply_from_json_response(reply: HttpReply, *, now: datetime) -> Reply | RequestFailure:
    """Return a JSON object's text as a reply, for servers without chat API, or a failure."""
    body = _parse_json_object(reply, now=now)
    if isinstance(body, RequestFailure):
        return body
    return Reply(text=reply.body.decode("utf-8-sig"))


def _parse_json_object(reply: HttpReply, *, now: datetime) -> dict[str, Any] | RequestFailure:
    if not HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return _parse_error_response(reply, now=now)
    with suppress(ValueError, RecursionError):
        body = json.loads(reply.body)
        if isinstance(body, dict):
            return body
    return _build_malformed_response_failure(
        f"the body is not a JSON object: {_format_body_excerpt(reply.body)!r}"
    )


def _parse_error_response(reply: HttpReply, *, now: datetime) -> RequestFailure:
    detail = f"status {reply.status}: {_format_error_message(reply.body).rstrip('. ')}"
    wait_s = parse_retry_after(reply.retry_after, now=now)
    if reply.status == HTTPStatus.TOO_MANY_REQUESTS:
        failure = Failure(FailureReason.RATE_LIMITED, detail)
        is_final = b'"insufficient_quota"' in reply.body
        return RequestFailure(failure=failure, final=is_final, retry_after_s=wait_s)
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status in _PASSING:
        failure = Failure(FailureReason.SERVER_ERROR, detail)
        return RequestFailure(failure=failure, retry_after_s=wait_s)
    is_key = reply.status == HTTPStatus.UNAUTHORIZED
    reason = FailureReason.KEY_REJECTED if is_key else FailureReason.REQUEST_REJECTED
    return RequestFailure(failure=Failure(reason, detail), final=True)


def _is_token_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_TOKENS


def _build_malformed_response_failure(detail: str) -> RequestFailure:
    return RequestFailure(failure=Failure(FailureReason.MALFORMED_REPLY, detail), billable=True)


def _format_error_message(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        return _shorten_to_line(str(error["message"] if isinstance(error, dict) else error))
    except (ValueError, LookupError, TypeError, RecursionError):
        return _format_body_excerpt(body)


def _format_body_excerpt(body: bytes) -> str:
    return _shorten_to_line(body[: 4 * READABLE].decode(errors="replace"))


def _replace_lone_surrogates(text: str) -> str:
    """Return `text` with lone surrogates replaced, because tables cannot store them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _shorten_to_line(text: str) -> str:
    line = " ".join(_replace_lone_surrogates(text[: 4 * READABLE]).split())
    return line if len(line) <= READABLE else line[: READABLE - 1] + "…"


_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)


class UnsentRequestFailure(Failure):
    """Failure of a request that was not sent, because no connection to the server was made."""

    __slots__ = ()


class RequestTransport(Protocol):
    """Interface that sends a single request. The caller handles retries and timeouts."""

    async def send(self, body: bytes, *, key: str) -> HttpReply | Failure:
        """Send `body` and return the server's reply, or a failure; `key` is the idempotency key."""

    async def close(self) -> None:
        """Close all connections. A second call has no effect."""


class HttpTransport:
    """Transport that sends POST requests through a connection pool."""

    def __init__(
        self,
        address: ModelAddress,
        *,
        api_key: str | None,
        max_connections: int,
        cap_bytes: int,
        path: str = "/chat/completions",
        content_type: str = "application/json",
    ) -> None:
        self._cap_bytes = cap_bytes
        self._path = path
        self._api_key = api_key
        self._http = open_http_client(
            address.server,
            max_connections=max_connections,
            headers={"Accept": "application/json", "Content-Type": content_type},
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
                return await read_http_reply(response, cap_bytes=self._cap_bytes)
        except Exception as error:  # noqa: BLE001  httpx2 lets errors of TLS and of headers through
            lost = convert_connection_error_to_failure(error)
            is_unsent = isinstance(error, _UNSENT)
            return UnsentRequestFailure(lost.reason, lost.detail) if is_unsent else lost

    async def close(self) -> None:
        await self._http.aclose()
