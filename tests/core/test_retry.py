"""When to ask again, and how long to wait before."""

from datetime import UTC, datetime

import pytest

from unreel.core.retry import (
    LONGEST_WAIT_S,
    RESERVE,
    RetryBudget,
    RetryPolicy,
    backoff_s,
    parse_retry_after,
)

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)


def test_the_retry_budget_allows_half_as_many_again_and_a_reserve() -> None:
    budget = RetryBudget()
    for _ in range(20):
        budget.earn()
    taken = [budget.take(0) for _ in range(100)]
    assert sum(taken) == RESERVE + 10


def test_an_empty_budget_refills_with_time() -> None:
    budget = RetryBudget()
    while budget.take(0):
        pass
    assert budget.take(5.1)
    assert not budget.take(5.1)


def test_waits_have_full_jitter_and_repeat_with_their_seed() -> None:
    patience = RetryPolicy(backoff_s=1)

    def waits(seed: int) -> list[float]:
        return [backoff_s(patience, key=str(n), attempt=3, seed=seed) for n in range(200)]

    assert waits(1) == waits(1) != waits(2)
    assert 0 <= min(waits(1)) < 0.5
    assert 3.5 < max(waits(1)) <= 4


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        (None, 0),
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("nan", 0),
        ("inf", 0),
        ("soon", 0),
        ("Sun, 01 Nov 2026 12:01:00 GMT", 60),
        ("Sun, 01 Nov 2026 11:00:00 GMT", 0),
        ("1e308", LONGEST_WAIT_S),
        ("9" * 5000, 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT_S),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0),
        ("Mon, 01 Jan 2026 99999999999999999:00:00 GMT", 0),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999", 0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, wait_s: float) -> None:
    assert parse_retry_after(header, now=NOW) == wait_s
