"""Spend limit of a service: reserved before a job is submitted, released if it is rejected."""

from dataclasses import dataclass
from decimal import Decimal

from unreel.core.failure import Failure, FailureReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipPrice:
    """Price of a clip; the requested length is charged."""

    usd_per_clip: Decimal = Decimal(0)
    usd_per_second: Decimal = Decimal(0)

    def cost_usd(self, seconds: int) -> Decimal:
        """Return the price of a clip of that length."""
        return self.usd_per_clip + seconds * self.usd_per_second


class SpendLimit:
    """Caps on clips and money of one run. A job that failed stays counted: it may have been paid for."""

    def __init__(
        self, *, price: ClipPrice | None, max_clips: int | None, max_cost_usd: Decimal | None
    ) -> None:
        self._price = price
        self._max_clips = max_clips
        self._max_cost_usd = max_cost_usd
        self._n_clips = 0
        self._spent_usd = Decimal(0)

    def cost_usd(self, seconds: int) -> Decimal | None:
        """Return the price of a clip; `None` if no price is known."""
        return None if self._price is None else self._price.cost_usd(seconds)

    def reserve(self, seconds: int) -> Failure | None:
        """Count one job; a failure where it would pass a cap."""
        cost = self.cost_usd(seconds) or Decimal(0)
        if self._max_clips is not None and self._n_clips >= self._max_clips:
            detail = f"not asked: {self._n_clips} clips of max_clips={self._max_clips} are ordered"
            return Failure(FailureReason.BUDGET_SPENT, detail)
        if self._max_cost_usd is not None and self._spent_usd + cost > self._max_cost_usd:
            spent = f"{self._spent_usd} of max_cost_usd={self._max_cost_usd}"
            detail = f"not asked: {spent} are spent, and this clip costs {cost}"
            return Failure(FailureReason.BUDGET_SPENT, detail)
        self._n_clips += 1
        self._spent_usd += cost
        return None

    def release(self, seconds: int) -> None:
        """Release the reserved cost of a job that the service did not accept."""
        self._n_clips -= 1
        self._spent_usd -= self.cost_usd(seconds) or Decimal(0)
