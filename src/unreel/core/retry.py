"""Retry delays with full jitter, and a budget that limits the number of retries."""

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError

LONGEST_BACKOFF_S = 30.0
LONGEST_WAIT_S = 60.0
"""Longest wait that a server's Retry-After causes; after it the usual delays apply."""
MAX_ATTEMPTS = 8
SHARE_AGAIN = 0.5
"""Number of retries that each question adds to the budget; 0.43 are needed if 30 % of requests fail."""
RESERVE = 10
SAVINGS = 100
"""Maximum number of retries in the budget, so that an outage after a long quiet time causes no flood of requests."""
TRICKLE_PER_S = 0.2
"""Retries per second that are added to the budget, so that the last questions of a run need not wait for new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Timeouts of one question and of one request, and the first delay before a retry."""

    deadline_s: float = 180.0
    attempt_s: float = 80.0
    backoff_s: float = 0.5
    outage_s: float = 60.0
    """Timeout in seconds of questions that wait for a server that answers nothing; then they fail."""

    def __post_init__(self) -> None:
        if not 0 < self.attempt_s <= self.deadline_s or self.backoff_s <= 0 or self.outage_s < 0:
            raise InvalidSettingError(
                "patience",
                f"cannot use {self}",
                "Give seconds above 0, and an attempt no longer than the deadline",
            )


class RetryBudget:
    """Limit of all requests: `1 + SHARE_AGAIN` times the number of questions, plus a small reserve."""

    def __init__(self) -> None:
        self._tokens = float(RESERVE)
        self._seen_s: float | None = None

    def earn(self) -> None:
        """Add `SHARE_AGAIN` retries to the budget for a new question, up to `SAVINGS` in total."""
        self._tokens = min(SAVINGS, self._tokens + SHARE_AGAIN)

    def take(self, now_s: float) -> bool:
        """Return whether one more retry may be sent at `now_s`; if so, subtract it from the budget."""
        if self._seen_s is not None:
            self._tokens = min(SAVINGS, self._tokens + TRICKLE_PER_S * (now_s - self._seen_s))
        self._seen_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def backoff_s(retry_policy: RetryPolicy, *, key: str, attempt: int, seed: int) -> float:
    """Compute the wait in seconds after `attempt` (from 1), with full jitter, equal for equal arguments."""
    longest = min(LONGEST_BACKOFF_S, retry_policy.backoff_s * 2 ** (attempt - 1))
    return random.Random(digest(str(seed), key, str(attempt))).uniform(0, longest)  # noqa: S311  no secret


def parse_retry_after(value: str | None, *, now: datetime) -> float:
    """Parse Retry-After (seconds or date) as up to `LONGEST_WAIT_S` seconds; 0 if missing or invalid."""
    if value is None:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return 0.0
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (aware - now).total_seconds()
    return min(max(0.0, seconds), LONGEST_WAIT_S) if math.isfinite(seconds) else 0.0
