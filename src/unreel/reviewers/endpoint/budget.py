"""Limits of requests and cost: reserved before a request is sent, settled after its answer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from unreel.core.answer import Usage
from unreel.core.document import read_toml
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason

MILLION: Final = 1_000_000
_DEAREST_USD: Final = 1_000_000
"""For a million tokens. Together with a bound on tokens it keeps every sum exact."""
_FIELDS: Final = ("input_usd_per_million", "output_usd_per_million")
_FORM: Final = (
    f'Write one table per model: [models."openai/gpt-5"] with {_FIELDS[0]} and {_FIELDS[1]}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of a model's tokens. Cached tokens are counted at the full price."""

    input_usd_per_million: Decimal
    output_usd_per_million: Decimal

    def cost_usd(self, usage: Usage) -> Decimal:
        """Return the cost of `usage`."""
        paid = (
            usage.input_tokens * self.input_usd_per_million
            + usage.output_tokens * self.output_usd_per_million
        )
        return paid / MILLION


def read_prices(path: Path) -> Mapping[str, Price]:
    """Prices by model name (`provider/name`) from a TOML file; unknown words in it are refused."""
    content = read_toml(path, "price table", remedy=_FORM, parse_float=Decimal)
    models = content.pop("models", None)
    if content or not isinstance(models, dict):
        raise UnreadableSourceError(str(path), "no price table", _FORM)
    return {name: _read_price(path, name, entry) for name, entry in models.items()}


def _read_price(path: Path, name: str, entry: Any) -> Price:
    if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
        raise UnreadableSourceError(str(path), f"{name!r} has no full price", _FORM)
    amounts = {field: entry[field] for field in _FIELDS}
    if not all(_is_amount(amount) for amount in amounts.values()):
        raise UnreadableSourceError(str(path), f"{name!r} has a price that is no amount", _FORM)
    return Price(**{field: Decimal(amount) for field, amount in amounts.items()})


def _is_amount(value: object) -> bool:
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return False
    return math.isfinite(value) and 0 <= value <= _DEAREST_USD


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Requests and cost so far."""

    n_questions: int
    n_requests: int
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """`None` when no price is known: unknown is not 0."""
    n_uncounted: int
    """Replies whose tokens the server did not tell: the cost leaves them out."""


class Budget:
    """Caps on requests and money. A cap on money needs a price, and is kept with requests in flight."""

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_cost_usd: Decimal | None = None,
        price: Price | None = None,
    ) -> None:
        if max_cost_usd is not None and price is None:
            problem = "no price is known for this model, so its cost cannot be capped"
            setting = "max_cost_usd"
            raise InvalidSettingError(setting, problem, f"Add it to the price file. {_FORM}")
        self._max_requests = max_requests
        self._max_cost_usd = max_cost_usd
        self._price = price
        self._n_questions = 0
        self._n_requests = 0
        self._in_flight = 0
        self._input_tokens = 0
        self._output_tokens = 0
        self._n_uncounted = 0
        self._cost_usd = Decimal(0)
        self._dearest_usd = Decimal(0)

    def spending(self) -> Spending:
        """The state of the account."""
        return Spending(
            n_questions=self._n_questions,
            n_requests=self._n_requests,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd if self._price else None,
            n_uncounted=self._n_uncounted,
        )

    def count_question(self) -> None:
        """A question was put."""
        self._n_questions += 1

    def reserve(self) -> Failure | None:
        """Count one request as sent, or say which cap forbids it.

        Requests in flight are taken to cost as much as the dearest answer so far.
        """
        if self._max_requests is not None and self._n_requests >= self._max_requests:
            return Failure(FailureReason.BUDGET_SPENT, f"{self._n_requests} requests were sent")
        if self._max_cost_usd is not None:
            planned_usd = self._cost_usd + (self._in_flight + 1) * self._dearest_usd
            if planned_usd > self._max_cost_usd or self._cost_usd >= self._max_cost_usd:
                spent = f"{self._cost_usd:.4f} of {self._max_cost_usd} USD were spent"
                return Failure(FailureReason.BUDGET_SPENT, spent)
        self._n_requests += 1
        self._in_flight += 1
        return None

    def settle(self, usage: Usage | None, *, answered: bool) -> None:
        """The request ended; a failed one may have cost tokens too."""
        self._in_flight -= 1
        if usage is None:
            self._n_uncounted += answered
            return
        self._input_tokens += usage.input_tokens
        self._output_tokens += usage.output_tokens
        if self._price:
            cost_usd = self._price.cost_usd(usage)
            self._cost_usd += cost_usd
            self._dearest_usd = max(self._dearest_usd, cost_usd)
