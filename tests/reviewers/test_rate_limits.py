"""A server with a rate limit refuses most of what it is asked at once, and still answers every question."""

import asyncio
import json
import logging
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

logger = logging.getLogger(__name__)
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
    server: LimitedServer, n: int, *, connections: int, patience: RetryPolicy
) -> Counter[str]:
    """Outcomes by kind of `n` questions, as many at once as there are connections."""

    async def work() -> Counter[str]:
        asker = ModelServerClient(
            server,
            pace=ConcurrencyLimiter(max_connections=connections),
            patience=patience,
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
    assert ask_all(server, 60, connections=32, patience=patience) == {"answered": 60}
    assert server.n_requests < 12 * 60


def test_a_server_that_only_refuses_for_its_rate_ends_the_questions() -> None:
    server = LimitedServer(per_s=0, retry_after=None, _left=0)
    patience = RetryPolicy(deadline_s=2, attempt_s=1, backoff_s=0.05, outage_s=0.5)
    assert ask_all(server, 50, connections=8, patience=patience) == {"rate-limited": 50}
    assert server.n_requests < 50


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("connections", [1, 8, 32])
def test_two_requests_a_second_answer_two_hundred_questions(connections: int) -> None:
    server = LimitedServer(per_s=2, retry_after="1")
    patience = RetryPolicy(deadline_s=120, attempt_s=60, outage_s=60)
    started_s = time.monotonic()
    outcomes = ask_all(server, 200, connections=connections, patience=patience)
    took_s = time.monotonic() - started_s
    logger.info("%d connections: %d requests in %.0f s", connections, server.n_requests, took_s)
    assert outcomes == {"answered": 200}
