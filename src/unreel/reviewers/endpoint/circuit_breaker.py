"""When a server answers nothing at all: stop asking, look again now and then, and say why."""

from dataclasses import dataclass
from typing import Final

from unreel.core.failure import Failure

STREAK: Final = 10
"""Requests in a row without an answer that count as an outage."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class RequestPermit:
    """Permission to send a request; a `probe` tests whether the outage is over."""

    probe: bool


@dataclass(frozen=True, slots=True)
class CircuitOpen:
    """An outage: look again after `wait_s`."""

    wait_s: float


Gate = RequestPermit | CircuitOpen | Failure


class CircuitBreaker:
    """Opens after `STREAK` requests in a row without an answer, closes with the first answer.

    Refusals for a rate limit are no sign of an outage before they last `outage_s`.

    While open, one request at a time probes the server and other questions wait. When an outage
    lasts `outage_s`, those questions end at once with its cause; the probes go on.
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
        """Return the permission for a question at `now_s`; a probe must be returned with `record` or `drop`."""
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
        return CircuitOpen(min(patience_s, LONGEST_PAUSE_S if self._probing else probe_s, 0.25))

    def record_answer(self) -> None:
        """Record that the server answered."""
        self._streak = 0
        self._opened_at_s = self._throttled_since_s = None
        self._pause_s = FIRST_PAUSE_S
        self._probing = False

    def record_failure(self, failure: Failure, *, now_s: float, probe: bool, wait_s: float) -> None:
        """Record that the server gave no answer and asked for a wait of `wait_s` seconds."""
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
        """Record that the server is rate-limiting requests.

        Rate limiting counts as an outage if the server gives no other reply for `outage_s` seconds.
        """
        if self._throttled_since_s is None:
            self._throttled_since_s = now_s
        if probe or now_s >= self._throttled_since_s + self._outage_s:
            self._streak = max(self._streak, STREAK)
            self.record_failure(failure, now_s=now_s, probe=probe, wait_s=wait_s)

    def drop(self, gate: RequestPermit) -> None:
        """Record that the request was never finished, so that another request may probe."""
        if gate.probe:
            self._probing = False
