"""Asking well: one question, as few requests as it takes, an outcome before its deadline."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.retrying import MOST_ATTEMPTS, Patience, RetryBudget, backoff_s
from unreel.core.span import to_us
from unreel.reviewers.endpoint.breaker import Breaker, Go
from unreel.reviewers.endpoint.budget import Budget
from unreel.reviewers.endpoint.concurrency import Concurrency, Signal
from unreel.reviewers.endpoint.replies import Setback, read_raw
from unreel.reviewers.endpoint.transport import RawReply, Transport

logger = logging.getLogger(__name__)

_SERVER_WORKS: Final = frozenset(
    {FailureReason.REFUSED, FailureReason.EMPTY_REPLY, FailureReason.BUDGET_SPENT}
)
_ONLY_THIS_QUESTION: Final = ("status 400", "status 413", "status 422")
_SIGNALS: Final = {
    FailureReason.RATE_LIMITED: Signal.THROTTLED,
    FailureReason.SERVER_ERROR: Signal.TROUBLED,
    FailureReason.CONNECTION_LOST: Signal.TROUBLED,
    FailureReason.OUT_OF_TIME: Signal.TROUBLED,
}


@dataclass(slots=True)
class _Course:
    """State of one question."""

    body: bytes
    key: str
    ends_at_s: float
    n_requests: int = 0


class Asker:
    """Puts questions to one server. Share one among all questions that go there.

    The deadline of a question starts when its first request may be sent: waiting for a place among
    the others is not held against it.
    """

    read: Callable[..., Reply | Setback] = staticmethod(read_raw)
    """What a server's bytes mean; those that speak no chat have another."""

    def __init__(
        self,
        transport: Transport,
        *,
        pace: Concurrency,
        patience: Patience,
        budget: Budget,
        redact: Callable[[str], str],
        seed: int,
    ) -> None:
        self._transport = transport
        self._pace = pace
        self._patience = patience
        self._budget = budget
        self._redact = redact
        self._seed = seed
        self._retries = RetryBudget()
        self._breaker = Breaker(outage_s=patience.outage_s)

    async def ask(self, body: bytes, *, key: str) -> Reply | Failure:
        """The reply to `body`, or the cause why there is none, within the deadline."""
        outcome = await self._ask(body, key)
        match outcome:
            case Reply():
                return replace(outcome, text=self._redact(outcome.text))
            case Failure():
                return Failure(outcome.reason, self._redact(outcome.detail))

    async def _ask(self, body: bytes, key: str) -> Reply | Failure:
        self._budget.count_question()
        ticket = await self._admit(again=False)
        if isinstance(ticket, Failure):
            return ticket
        self._retries.earn()
        course = _Course(body, key, _now_s() + self._patience.deadline_s)
        while True:
            outcome = await self._attempt(course, ticket)
            if not isinstance(outcome, Setback):
                return outcome
            logger.debug("question %s: %s", key[:12], outcome.failure.reason.value)
            if outcome.final:
                return outcome.failure
            again = await self._wait_turn(course, outcome)
            if isinstance(again, Failure):
                return again
            ticket = again

    async def _wait_turn(self, course: _Course, setback: Setback) -> "_Ticket | Failure":
        """Leave to ask again, or the end of the question."""

        def give_up(why: str) -> Failure:
            told = f"{setback.failure.detail} ({why}, requests: {course.n_requests})"
            return replace(setback.failure, detail=told)

        if course.n_requests >= MOST_ATTEMPTS:
            return give_up("given up")
        wait_s = setback.retry_after_s + self._jitter_s(course)
        if _now_s() + wait_s >= course.ends_at_s:
            return give_up(f"a wait of {wait_s:.1f} s would pass the deadline")
        try:
            async with asyncio.timeout_at(course.ends_at_s):
                await asyncio.sleep(wait_s)
                while not self._retries.take(_now_s()):
                    await asyncio.sleep(max(0.01, self._jitter_s(course)))
                return await self._admit(again=True)
        except TimeoutError:
            return give_up(f"no turn within {self._patience.deadline_s:g} s")

    async def _admit(self, *, again: bool) -> "_Ticket | Failure":
        while True:
            number = await self._pace.enter(again=again)
            gate = self._breaker.check(_now_s())
            if isinstance(gate, Go):
                return _Ticket(number, gate)
            self._pace.leave()
            if isinstance(gate, Failure):
                return gate
            await asyncio.sleep(gate.wait_s)

    async def _attempt(self, course: _Course, ticket: "_Ticket") -> Reply | Setback | Failure:
        """One request; the place and the probe are given back however it ends."""
        outcome: Reply | Setback | None = None
        try:
            spent = self._budget.reserve()
            if spent is not None:
                return spent
            course.n_requests += 1
            try:
                outcome = await self._send(course)
            finally:
                usage = None if outcome is None else outcome.usage
                self._budget.settle(usage, answered=isinstance(outcome, Reply))
            return outcome
        finally:
            self._learn(outcome, ticket)
            self._pace.leave()

    async def _send(self, course: _Course) -> Reply | Setback:
        started_s = _now_s()
        ends_at_s = min(course.ends_at_s, started_s + self._patience.attempt_s)
        try:
            async with asyncio.timeout_at(ends_at_s):
                raw = await self._transport.send(course.body, key=course.key)
        except TimeoutError:
            detail = f"no reply within {ends_at_s - started_s:.1f} s"
            return Setback(failure=Failure(FailureReason.OUT_OF_TIME, detail))
        if isinstance(raw, Failure):
            return Setback(failure=raw)
        outcome = self._read(raw)
        if isinstance(outcome, Reply):
            return replace(outcome, latency_us=to_us(_now_s() - started_s))
        return outcome

    def _read(self, raw: RawReply) -> Reply | Setback:
        try:
            return self.read(raw, now=datetime.now(UTC))
        except Exception as error:  # noqa: BLE001  what no reader foresaw costs one answer, not the run
            detail = f"the reply cannot be read ({type(error).__name__})"
            return Setback(failure=Failure(FailureReason.MALFORMED_REPLY, detail))

    def _learn(self, outcome: Reply | Setback | None, ticket: "_Ticket") -> None:
        if outcome is None:  # cancelled, or cut off by the deadline
            self._breaker.drop(ticket.gate)
        elif isinstance(outcome, Reply) or not _blames_server(outcome.failure):
            self._breaker.record_answer()
            self._pace.record(Signal.FINE, number=ticket.number)
        else:
            failure = outcome.failure
            self._breaker.record_failure(
                failure,
                now_s=_now_s(),
                probe=ticket.gate.probe,
                wait_s=outcome.retry_after_s,
            )
            if failure.reason in _SIGNALS:
                self._pace.record(_SIGNALS[failure.reason], number=ticket.number)

    def _jitter_s(self, course: _Course) -> float:
        return backoff_s(self._patience, key=course.key, attempt=course.n_requests, seed=self._seed)


@dataclass(frozen=True, slots=True)
class _Ticket:
    number: int
    gate: Go


def _blames_server(failure: Failure) -> bool:
    if failure.reason is FailureReason.REQUEST_REJECTED:
        return not failure.detail.startswith(_ONLY_THIS_QUESTION)
    return failure.reason not in _SERVER_WORKS


def _now_s() -> float:
    return asyncio.get_running_loop().time()
