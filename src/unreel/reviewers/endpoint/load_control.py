"""Control of the load on a server: an adaptive limit of requests in flight, and a circuit breaker."""

import asyncio
import heapq
import math
from dataclasses import dataclass
from enum import Enum, auto

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure

STREAK = 10
"""Number of consecutive requests without an answer that counts as an outage."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class RequestPermit:
    """Permission of the circuit breaker to send a request; a `probe` tests whether the outage is over."""

    probe: bool


Gate = RequestPermit | float | Failure
"""Decision of the circuit breaker: a permit, the seconds to wait during an outage, or a failure."""


class CircuitBreaker:
    """Circuit breaker that opens after `STREAK` failed requests in a row and closes on an answer.

    Rejections for a rate limit count as an outage only if they last `outage_s`.

    While it is open, one request at a time probes the server and other questions wait. When an
    outage lasts `outage_s`, these questions fail immediately with its cause; the probes go on.
    """

    def __init__(self, *, outage_s: float) -> None:
        self._outage_s = outage_s
        self._streak = 0
        self._opened_at_s: float | None = None
        self._probe_at_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._probing = False
        self._last: Failure | None = None
        self._throttled_since_s: float | None = None

    @property
    def is_open(self) -> bool:
        """Return whether there is an outage."""
        return self._opened_at_s is not None

    def check(self, now_s: float) -> Gate:
        """Return whether a question may be sent at `now_s`: a permit, a wait time, or a failure.

        After a probe the caller must call `record_answer`, `record_failure`, `record_throttled` or
        `drop`.
        """
        if self._opened_at_s is None or self._last is None:
            return RequestPermit(probe=False)
        if not self._probing and now_s >= self._probe_at_s:
            self._probing = True
            return RequestPermit(probe=True)
        patience_s = self._opened_at_s + self._outage_s - now_s
        if patience_s <= 0:
            detail = f"not asked, as {self._streak} requests in a row failed: {self._last.detail}"
            return Failure(self._last.reason, detail)
        probe_s = max(0.01, self._probe_at_s - now_s)
        return min(patience_s, LONGEST_PAUSE_S if self._probing else probe_s, 0.25)

    def record_answer(self) -> None:
        """Record that the server answered."""
        self._streak = 0
        self._opened_at_s = self._throttled_since_s = None
        self._pause_s = FIRST_PAUSE_S
        self._probing = False

    def record_failure(self, failure: Failure, *, now_s: float, probe: bool, wait_s: float) -> None:
        """Record a failed request, after which the server asked for a wait of `wait_s` seconds."""
        self._streak += 1
        self._last = failure
        if probe:
            self._probing = False
            self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
            self._probe_at_s = now_s + max(self._pause_s, wait_s)
        elif self._opened_at_s is None and self._streak >= STREAK:
            self._opened_at_s = now_s
            self._probe_at_s = now_s + max(self._pause_s, wait_s)

    def record_throttled(
        self, failure: Failure, *, now_s: float, probe: bool, wait_s: float
    ) -> None:
        """Record a rate limit, which is an outage if nothing else is replied for `outage_s` seconds."""
        if self._throttled_since_s is None:
            self._throttled_since_s = now_s
        if probe or now_s >= self._throttled_since_s + self._outage_s:
            self._streak = max(self._streak, STREAK)
            self.record_failure(failure, now_s=now_s, probe=probe, wait_s=wait_s)

    def drop(self, permit: RequestPermit) -> None:
        """Record that the request of the permit `permit` was never finished, so that another may probe."""
        if permit.probe:
            self._probing = False


FIRST_LIMIT = 4


class ServerLoadSignal(Enum):
    """Load of a server as one finished request shows it: fine, throttled or troubled."""

    FINE = auto()
    THROTTLED = auto()
    """Status 429: the limit is halved."""
    TROUBLED = auto()
    """Status 5xx, a lost connection or a timeout: the limit stops growing for a round."""


class ConcurrencyLimiter:
    """Limit of requests in flight, which grows with good answers and halves on rate limiting.

    The limit doubles with each round of good answers until the first sign of load, and then grows
    by one per round. A failed request stops growth for a round.
    """

    def __init__(self, *, max_connections: int) -> None:
        if max_connections < 1:
            raise InvalidSettingError(
                "max_connections", f"cannot use {max_connections}", "Give a whole number from 1"
            )
        self._ceiling = float(max_connections)
        self._limit = float(min(FIRST_LIMIT, max_connections))
        self._slow_start = True
        self._calm = 0
        self._in_flight = 0
        self._sent = 0
        self._halved_at = 0
        self._paused_until_s = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        """Heap of waiting requests, by deadline and then by arrival."""
        self._n_waited = 0

    @property
    def limit(self) -> int:
        """Return the current maximum number of requests in flight."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """Return the current number of requests in flight."""
        return self._in_flight

    async def enter(self, *, before_s: float = math.inf) -> int:
        """Wait, earliest deadline `before_s` first, until a request may start; return its sequence number."""
        if self._waiting or self._in_flight >= self.limit or self.is_paused:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._n_waited += 1
            heapq.heappush(self._waiting, (before_s, self._n_waited, turn))
            self._let_in()
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # the slot was granted before the cancellation
                    self.leave()
                raise
        else:
            self._in_flight += 1
        self._sent += 1
        return self._sent

    def leave(self) -> None:
        """Release the concurrency slot of a finished request."""
        self._in_flight -= 1
        self._let_in()

    @property
    def is_paused(self) -> bool:
        """Return whether requests are paused."""
        return asyncio.get_running_loop().time() < self._paused_until_s

    def pause(self, until_s: float) -> None:
        """Admit no request before the event-loop time `until_s`, as the server requested."""
        if until_s > self._paused_until_s:
            self._paused_until_s = until_s
            asyncio.get_running_loop().call_at(until_s, self._resume, until_s)

    def record(self, signal: ServerLoadSignal, *, number: int) -> None:
        """Adjust the limit by the load signal of the request with sequence number `number`."""
        match signal:
            case ServerLoadSignal.FINE:
                self._grow()
            case ServerLoadSignal.THROTTLED:
                self._slow_start = False
                self._calm = 0
                if number > self._halved_at:  # a burst of rejections halves the limit once
                    self._halved_at = self._sent
                    self._limit = max(1.0, self._limit / 2)
            case ServerLoadSignal.TROUBLED:
                self._slow_start = False
                self._calm = 0

    def _grow(self) -> None:
        self._calm += 1
        if self._in_flight < self.limit:
            return  # the limit was not reached, so it is not tested
        if self._slow_start:
            self._limit = min(self._ceiling, self._limit + 1)
        elif self._calm > self._limit:
            self._limit = min(self._ceiling, self._limit + 1 / self._limit)

    def _resume(self, until_s: float) -> None:
        if until_s == self._paused_until_s:  # no later pause was requested
            self._paused_until_s = 0.0
            self._let_in()

    def _let_in(self) -> None:
        if self.is_paused:
            return
        while self._waiting and self._in_flight < self.limit:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)
