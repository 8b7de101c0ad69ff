"""Number of requests in flight: adapted to the server, and limited."""

import asyncio
import heapq
import math
from enum import Enum, auto
from typing import Final

from unreel.core.errors import InvalidSettingError

FIRST_LIMIT: Final = 4
"""Requests in flight before anything is known of the server."""


class LoadSignal(Enum):
    """Load signal of one finished request."""

    FINE = auto()
    THROTTLED = auto()
    """Status 429: fewer requests are wanted."""
    TROUBLED = auto()
    """Status 5xx, a lost connection or a time-out: more requests would not help."""


class ConcurrencyLimit:
    """A limit that doubles with each round of good answers and halves when the server asks for it.

    After the first sign of load it grows by one per round, and trouble stops growth for a round.
    """

    def __init__(self, *, max_connections: int) -> None:
        if max_connections < 1:
            problem = f"cannot use {max_connections}"
            setting = "max_connections"
            raise InvalidSettingError(setting, problem, "Give a whole number from 1")
        self._ceiling = float(max_connections)
        self._limit = float(min(FIRST_LIMIT, max_connections))
        self._slow_start = True
        self._calm = 0
        self._in_flight = 0
        self._sent = 0
        self._halved_at = 0
        self._paused_until_s = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        """By deadline, and in the order in which they came."""
        self._n_waited = 0

    @property
    def limit(self) -> int:
        """Return the number of requests that may be in flight now."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """Return the number of requests that are in flight now."""
        return self._in_flight

    async def enter(self, *, before_s: float = math.inf) -> int:
        """Wait for a place and return its number; who must have one `before_s` goes before the others."""
        if self._waiting or self._in_flight >= self.limit or self.is_paused:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._n_waited += 1
            heapq.heappush(self._waiting, (before_s, self._n_waited, place))
            self._let_in()
            try:
                await place
            except asyncio.CancelledError:
                if not place.cancelled():  # the place came together with the cancellation
                    self.leave()
                raise
        else:
            self._in_flight += 1
        self._sent += 1
        return self._sent

    def leave(self) -> None:
        """Give the place back."""
        self._in_flight -= 1
        self._let_in()

    @property
    def is_paused(self) -> bool:
        """Return whether requests are paused."""
        return asyncio.get_running_loop().time() < self._paused_until_s

    def pause(self, until_s: float) -> None:
        """Let no request in before `until_s`: the server asked for it."""
        if until_s > self._paused_until_s:
            self._paused_until_s = until_s
            asyncio.get_running_loop().call_at(until_s, self._resume, until_s)

    def record(self, signal: LoadSignal, *, number: int) -> None:
        """Adjust the limit by the result of request `number`."""
        match signal:
            case LoadSignal.FINE:
                self._grow()
            case LoadSignal.THROTTLED:
                self._slow_start = False
                self._calm = 0
                if number > self._halved_at:  # one burst of refusals halves once
                    self._halved_at = self._sent
                    self._limit = max(1.0, self._limit / 2)
            case LoadSignal.TROUBLED:
                self._slow_start = False
                self._calm = 0

    def _grow(self) -> None:
        self._calm += 1
        if self._in_flight < self.limit:
            return  # an unused limit teaches nothing
        if self._slow_start:
            self._limit = min(self._ceiling, self._limit + 1)
        elif self._calm > self._limit:
            self._limit = min(self._ceiling, self._limit + 1 / self._limit)

    def _resume(self, until_s: float) -> None:
        if until_s == self._paused_until_s:  # no later pause was asked for
            self._paused_until_s = 0.0
            self._let_in()

    def _let_in(self) -> None:
        if self.is_paused:
            return
        while self._waiting and self._in_flight < self.limit:
            _, _, place = heapq.heappop(self._waiting)
            if not place.done():
                self._in_flight += 1
                place.set_result(None)
