"""Client of a model server: one question with retries, budget and deadline."""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from unreel.core.answer import Reply, Usage
from unreel.core.failure import Failure, FailureReason
from unreel.core.retry import LONGEST_BACKOFF_S, MAX_ATTEMPTS, RetryBudget, RetryPolicy, backoff_s
from unreel.core.span import convert_to_microseconds
from unreel.reviewers.endpoint.budget import RequestBudget
from unreel.reviewers.endpoint.load_control import (
    CircuitBreaker,
    ConcurrencyLimiter,
    RequestPermit,
    ServerLoadSignal,
)
from unreel.reviewers.endpoint.transport import (
    RequestFailure,
    RequestTransport,
    UnsentRequestFailure,
    parse_chat_response,
)

logger = logging.getLogger(__name__)

_SERVER_WORKS = frozenset(
    {FailureReason.REFUSED, FailureReason.EMPTY_REPLY, FailureReason.BUDGET_SPENT}
)
_ONLY_THIS_QUESTION = ("status 400", "status 413", "status 422")
_SIGNALS = {
    FailureReason.RATE_LIMITED: ServerLoadSignal.THROTTLED,
    FailureReason.SERVER_ERROR: ServerLoadSignal.TROUBLED,
    FailureReason.CONNECTION_LOST: ServerLoadSignal.TROUBLED,
    FailureReason.OUT_OF_TIME: ServerLoadSignal.TROUBLED,
}


THROTTLED_IN_A_ROW = 4
"""Number of consecutive rate-limit rejections that pauses all requests; fewer may come from one of many machines."""
_NO_TOKENS = Usage(input_tokens=0, output_tokens=0)


@dataclass(slots=True)
class _QuestionState:
    body: bytes
    key: str
    max_usage: Usage
    ends_at_s: float
    n_requests: int = 0
    n_throttled: int = 0
    usage: Usage | None = None
    """Tokens of all requests so far; `None` if none were counted."""


class ModelServerClient:
    """Client that a server's questions share; deadlines start when a first request may be sent."""

    read: Callable[..., Reply | RequestFailure] = staticmethod(parse_chat_response)
    """Function that parses a server's response; subclasses for servers without a chat API override it."""

    def __init__(
        self,
        transport: RequestTransport,
        *,
        limiter: ConcurrencyLimiter,
        retry_policy: RetryPolicy,
        budget: RequestBudget,
        redact: Callable[[str], str],
        seed: int,
    ) -> None:
        self._transport = transport
        self._pace = limiter
        self._patience = retry_policy
        self._budget, self._has_price = budget, budget.has_price
        self._redact = redact
        self._seed = seed
        self._retries = RetryBudget()
        self._n_throttled = 0
        """Number of consecutive rejections for a rate limit, without those during a pause."""
        self._breaker = CircuitBreaker(outage_s=retry_policy.outage_s)

    async def ask(self, body: bytes, *, key: str, max_usage: Usage = _NO_TOKENS) -> Reply | Failure:
        """Send `body` with retries, and return the reply or a failure before the deadline.

        Both contain the tokens of all requests that were sent. `max_usage` is the expected maximum of tokens
        of one request.
        """
        state = _QuestionState(body, key, max_usage, ends_at_s=math.inf)
        outcome = await self._ask(state)
        match outcome:
            case Reply():
                return replace(outcome, text=self._redact(outcome.text), usage=state.usage)
            case Failure():
                return Failure(outcome.reason, self._redact(outcome.detail), state.usage)

    async def _ask(self, state: _QuestionState) -> Reply | Failure:
        self._budget.count_question()
        ticket = await self._admit(state)
        if isinstance(ticket, Failure):
            return ticket
        self._retries.earn()
        state.ends_at_s = _get_loop_time_s() + self._patience.deadline_s
        while True:
            outcome = await self._attempt(state, ticket)
            if not isinstance(outcome, RequestFailure):
                return outcome
            logger.debug("question %s: %s", state.key[:12], outcome.failure.reason.value)
            if outcome.final:
                return outcome.failure
            next_ticket = await self._wait_turn(state, outcome)
            if isinstance(next_ticket, Failure):
                return next_ticket
            ticket = next_ticket

    async def _wait_turn(
        self, state: _QuestionState, failure: RequestFailure
    ) -> "_AdmittedRequest | Failure":
        """Wait until the question may be sent again; return the admitted request, or the final failure."""

        def give_up(reason: str) -> Failure:
            detail = f"{failure.failure.detail} ({reason}, requests: {state.n_requests})"
            return replace(failure.failure, detail=detail)

        throttled = failure.failure.reason is FailureReason.RATE_LIMITED
        state.n_throttled += throttled
        if state.n_requests - state.n_throttled >= MAX_ATTEMPTS:
            return give_up("given up")
        wait_s = failure.retry_after_s + self._jitter_s(state)
        if _get_loop_time_s() + wait_s >= state.ends_at_s:
            return give_up(f"a wait of {wait_s:.1f} s would pass the deadline")
        try:
            async with asyncio.timeout_at(state.ends_at_s):
                await asyncio.sleep(wait_s)
                # A rate-limited request costs a server little: only the deadline limits these.
                while not throttled and not self._retries.take(_get_loop_time_s()):
                    await asyncio.sleep(max(0.01, self._jitter_s(state)))
                ticket = await self._admit(state)
        except TimeoutError:
            return give_up(f"no turn within {self._patience.deadline_s:g} s")
        if isinstance(ticket, Failure) and ticket.reason is FailureReason.BUDGET_SPENT:
            return give_up(f"not asked again: {ticket.detail}")
        return ticket

    async def _admit(self, state: _QuestionState) -> "_AdmittedRequest | Failure":
        """Wait for a free place, the circuit breaker and the budget; return a ticket or a failure."""
        while True:
            number = await self._pace.enter(before_s=state.ends_at_s)
            gate = self._breaker.check(_get_loop_time_s())
            if isinstance(gate, RequestPermit):
                break
            self._pace.leave()
            if isinstance(gate, Failure):
                return gate
            await asyncio.sleep(gate)
        reserved_usd: Decimal | Failure | None = None
        try:
            reserved_usd = await self._budget.reserve(state.max_usage)
        finally:
            if not isinstance(reserved_usd, Decimal):
                self._breaker.drop(gate)
                self._pace.leave()
        if isinstance(reserved_usd, Failure):
            return reserved_usd
        return _AdmittedRequest(number, gate, reserved_usd)

    async def _attempt(
        self, state: _QuestionState, request: "_AdmittedRequest"
    ) -> Reply | RequestFailure:
        """Send one request, and always release its concurrency slot, probe and reservation."""
        outcome: Reply | RequestFailure | None = None
        state.n_requests += 1
        try:
            outcome = await self._send(state)
            return outcome
        finally:
            usage = self._charge(state, outcome)
            if usage is not None:
                state.usage = usage if state.usage is None else state.usage + usage
            self._budget.settle(request.reserved_usd, usage, answered=isinstance(outcome, Reply))
            self._learn(outcome, request)
            self._pace.leave()

    def _charge(
        self, state: _QuestionState, outcome: Reply | RequestFailure | None
    ) -> Usage | None:
        """Return a request's tokens, estimated if missing at a known price; `None` if none are reported."""
        usage = None if outcome is None else outcome.usage
        is_counted = usage is not None and usage.input_tokens > 0
        if isinstance(outcome, Reply):
            is_counted = is_counted and usage is not None and usage.output_tokens > 0
        refused = isinstance(outcome, RequestFailure) and not outcome.billable
        if is_counted or refused or not self._has_price:
            return usage
        return replace(state.max_usage, is_estimated=True)

    async def _send(self, state: _QuestionState) -> Reply | RequestFailure:
        started_s = _get_loop_time_s()
        ends_at_s = min(state.ends_at_s, started_s + self._patience.attempt_s)
        try:
            async with asyncio.timeout_at(ends_at_s):
                raw = await self._transport.send(state.body, key=state.key)
        except TimeoutError:
            detail = f"no reply within {ends_at_s - started_s:.1f} s"
            return RequestFailure(failure=Failure(FailureReason.OUT_OF_TIME, detail), billable=True)
        if isinstance(raw, Failure):
            refused = raw.reason is FailureReason.NOT_NAMED
            billable = not refused and not isinstance(raw, UnsentRequestFailure)
            return RequestFailure(failure=raw, final=refused, billable=billable)
        try:
            outcome = self.read(raw, now=datetime.now(UTC))
        except Exception as error:  # noqa: BLE001  what no reader foresaw costs one answer, not the run
            detail = f"the reply cannot be read ({type(error).__name__})"
            failure = Failure(FailureReason.MALFORMED_REPLY, detail)
            return RequestFailure(failure=failure, billable=True)
        if isinstance(outcome, RequestFailure):
            return outcome
        return replace(outcome, latency_us=convert_to_microseconds(_get_loop_time_s() - started_s))

    def _learn(self, outcome: Reply | RequestFailure | None, request: "_AdmittedRequest") -> None:
        if outcome is None:  # cancelled, or cut off by the deadline
            self._breaker.drop(request.gate)
        elif (
            isinstance(outcome, Reply)
            or outcome.failure.reason in _SERVER_WORKS
            or (
                outcome.failure.reason is FailureReason.REQUEST_REJECTED
                and outcome.failure.detail.startswith(_ONLY_THIS_QUESTION)
            )
        ):
            self._n_throttled = 0
            self._breaker.record_answer()
            self._pace.record(ServerLoadSignal.FINE, number=request.number)
        else:
            failure = outcome.failure
            limited = failure.reason is FailureReason.RATE_LIMITED and (
                outcome.retry_after_s < self._patience.deadline_s
            )
            record = self._breaker.record_throttled if limited else self._breaker.record_failure
            record(
                failure,
                now_s=_get_loop_time_s(),
                probe=request.gate.probe,
                wait_s=outcome.retry_after_s,
            )
            if limited and not self._breaker.is_open:
                self._pause(outcome.retry_after_s)
            if failure.reason in _SIGNALS:
                self._pace.record(_SIGNALS[failure.reason], number=request.number)

    def _pause(self, asked_s: float) -> None:
        if self._pace.is_paused:  # a burst of rejections lengthens the backoff only once
            self._pace.pause(_get_loop_time_s() + asked_s)
            return
        self._n_throttled += 1
        n_pauses = self._n_throttled - THROTTLED_IN_A_ROW
        if n_pauses >= 0:
            longer_s = min(LONGEST_BACKOFF_S, self._patience.backoff_s * 2 ** min(n_pauses, 10))
            self._pace.pause(_get_loop_time_s() + (asked_s or longer_s))

    def _jitter_s(self, state: _QuestionState) -> float:
        # Capped, because growing waits would pass the deadline if most requests are rate-limited.
        n_faults = state.n_requests - state.n_throttled
        attempt = n_faults + min(state.n_throttled, THROTTLED_IN_A_ROW)
        return backoff_s(self._patience, key=state.key, attempt=attempt, seed=self._seed)


@dataclass(frozen=True, slots=True)
class _AdmittedRequest:
    number: int
    gate: RequestPermit
    reserved_usd: Decimal


def _get_loop_time_s() -> float:
    return asyncio.get_running_loop().time()
