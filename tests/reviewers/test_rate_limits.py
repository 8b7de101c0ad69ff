"""A server with a rate limit refuses most of what it is asked at once, and still answers every question."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass

import pytest

from unreel.core.failure import Failure
from unreel.core.retry import RetryPolicy
from unreel.network.http_client import HttpReply
from unreel.reviewers.endpoint.budget import RequestBudget
from unreel.reviewers.endpoint.client import ModelServerClient
from unreel.reviewers.endpoint.load_control import ConcurrencyLimiter

GOOD = json.dumps({"choices": [{"message": {"content": "<answer>0</answer>"}}]}).encode()


@dataclass
class LimitedServer:
    """Answers `per_s` requests a second and refuses the others with status 429."""

    per_s: float
    retry_after: str | None
    n_requests: int = 0
    _left: float = 1.0
    _seen_s: float = 0.0

    async def send(self, body: bytes, *, key: str) -> HttpReply:
        self.n_requests += 1
        now_s = time.monotonic()
        self._left = min(2.0, self._left + self.per_s * (now_s - self._seen_s))
        self._seen_s = now_s
        await asyncio.sleep(0.001)
        if self._left < 1:
            return HttpReply(429, b'{"error": {"message": "slow down"}}', self.retry_after)
        self._left -= 1
        return HttpReply(200, GOOD)

    async def close(self) -> None:
        """Nothing is open."""


def ask_all(
    server: LimitedServer, n: int, *, connections: int, retry_policy: RetryPolicy
) -> Counter[str]:
    """Outcomes by kind of `n` questions, as many at once as there are connections."""

    async def work() -> Counter[str]:
        asker = ModelServerClient(
            server,
            limiter=ConcurrencyLimiter(max_connections=connections),
            retry_policy=retry_policy,
            budget=RequestBudget(),
            redact=str,
            seed=0,
        )
        permits = asyncio.Semaphore(connections)

        async def ask(number: int) -> str:
            async with permits:
                outcome = await asker.ask(b"{}", key=str(number))
            return outcome.reason.value if isinstance(outcome, Failure) else "answered"

        return Counter(await asyncio.gather(*map(ask, range(n))))

    return asyncio.run(work())


@pytest.mark.parametrize("retry_after", ["0.1", None])
def test_a_rate_limit_costs_time_and_no_question(retry_after: str | None) -> None:
    server = LimitedServer(per_s=20, retry_after=retry_after)
    patience = RetryPolicy(deadline_s=12, attempt_s=6, backoff_s=0.05, outage_s=6)
    assert ask_all(server, 60, connections=32, retry_policy=patience) == {"answered": 60}
    assert server.n_requests < 12 * 60
