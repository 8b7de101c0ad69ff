"""One call to a service: retried if a retry may help, and always ended before its deadline."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import MOST_ATTEMPTS, RetryPolicy, backoff_s, read_retry_after
from unreel.core.safe_text import sanitise_line
from unreel.core.small_documents import parse_json
from unreel.network.client import HttpReply

_READABLE: Final = 200
_MALFORMED_TRIES: Final = 3
"""A reply that makes no sense rarely makes more the fourth time, and the job may be paid for."""
_PASSING: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.LOCKED, HTTPStatus.TOO_EARLY}
)
ServiceReply = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFailure:
    """One request that brought no reply that could be used."""

    failure: Failure
    final: bool = False
    """Asking again would bring the same."""
    absent: bool = False
    """There is nothing at that address."""
    wait_s: float = 0.0

    @property
    def makes_no_sense(self) -> bool:
        """Return whether the reply was unreadable."""
        return self.failure.reason in {FailureReason.MALFORMED_REPLY, FailureReason.REPLY_TOO_LARGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedCall:
    """Retry settings of one request."""

    send: Callable[[], Awaitable[HttpReply | Failure]]
    key: str
    """Decides how long is waited, so that many calls do not come back together."""
    until_s: float
    patience: RetryPolicy
    most: int = MOST_ATTEMPTS


async def call(asked: RetriedCall) -> ServiceReply | ServiceFailure:
    """Return the response of the service, or the last failure."""
    malformed = 0
    for attempt in range(1, asked.most + 1):
        outcome = await _send_once(asked)
        if not isinstance(outcome, ServiceFailure) or outcome.final or outcome.absent:
            return outcome
        malformed += outcome.makes_no_sense
        wait_s = outcome.wait_s + backoff_s(asked.patience, key=asked.key, attempt=attempt, seed=0)
        too_late = read_clock_s() + wait_s >= asked.until_s
        if attempt == asked.most or malformed >= _MALFORMED_TRIES or too_late:
            return _build_final_failure(outcome, attempt)
        await asyncio.sleep(wait_s)
    raise AssertionError


async def _send_once(asked: RetriedCall) -> ServiceReply | ServiceFailure:
    ends_at_s = min(asked.until_s, read_clock_s() + asked.patience.attempt_s)
    try:
        async with asyncio.timeout_at(ends_at_s):
            raw = await asked.send()
    except TimeoutError:
        detail = f"no reply within {asked.patience.attempt_s:g} s"
        return ServiceFailure(failure=Failure(FailureReason.OUT_OF_TIME, detail))
    if isinstance(raw, Failure):
        return ServiceFailure(failure=raw, final=raw.reason is FailureReason.NOT_NAMED)
    return read_told(raw, now=datetime.now(UTC))


def read_told(raw: HttpReply, *, now: datetime) -> ServiceReply | ServiceFailure:
    """Parse the JSON object in `raw`; for any other reply, return a failure that describes the reply."""
    if not HTTPStatus.OK <= raw.status < HTTPStatus.MULTIPLE_CHOICES:
        return _build_refusal_failure(raw, now)
    try:
        body = parse_json(raw.body)
    except InvalidValueError:
        body = None
    if isinstance(body, dict):
        return body
    detail = f"the body is no JSON object: {_parse_error_message(raw.body)!r}"
    return ServiceFailure(failure=Failure(FailureReason.MALFORMED_REPLY, detail))


def sanitise_reply(told: object) -> str:
    """Return untrusted text on one line, shortened."""
    if told is None:
        return "nothing is told"
    text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=True, default=str)
    words = sanitise_line(" ".join(text[: 4 * _READABLE].split()))
    return words if len(words) <= _READABLE else words[: _READABLE - 1] + "…"


def _build_refusal_failure(raw: HttpReply, now: datetime) -> ServiceFailure:
    detail = f"status {raw.status}: {_parse_error_message(raw.body)}"
    wait_s = read_retry_after(raw.retry_after, now=now)
    if raw.status == HTTPStatus.TOO_MANY_REQUESTS:
        failure = Failure(FailureReason.RATE_LIMITED, detail)
        return ServiceFailure(
            failure=failure, wait_s=wait_s, final=b'"insufficient_quota"' in raw.body
        )
    if raw.status >= HTTPStatus.INTERNAL_SERVER_ERROR or raw.status in _PASSING:
        return ServiceFailure(failure=Failure(FailureReason.SERVER_ERROR, detail), wait_s=wait_s)
    if raw.status in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return ServiceFailure(failure=Failure(FailureReason.REQUEST_REJECTED, detail), absent=True)
    is_key = raw.status == HTTPStatus.UNAUTHORIZED  # 403 may be about this prompt alone
    reason = FailureReason.KEY_REJECTED if is_key else FailureReason.REQUEST_REJECTED
    return ServiceFailure(failure=Failure(reason, detail), final=True)


def _build_final_failure(setback: ServiceFailure, attempts: int) -> ServiceFailure:
    failure = setback.failure
    told = f"{failure.detail} (given up, requests: {attempts})"
    return ServiceFailure(failure=Failure(failure.reason, told))


def _parse_error_message(body: bytes) -> str:
    try:
        error = json.loads(body)["error"]
        return sanitise_reply(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError, RecursionError):
        return sanitise_reply(body[: 4 * _READABLE].decode(errors="replace"))


def read_clock_s() -> float:
    """Return the time of the clock that timeouts use."""
    return asyncio.get_running_loop().time()
