"""Limits of requests and cost, with a log on disk.

The expected cost is reserved before a request and corrected after its reply.
"""

import asyncio
import errno
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from unreel.core.answer import Usage
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason
from unreel.core.input_files import read_toml_file
from unreel.core.output_files import OutputDirectory


class SpendingLog:
    """Open spending log with its running total. Open it in the process that sends the requests."""

    def __init__(self, path: Path) -> None:
        folder = OutputDirectory(path.parent)
        self.total_usd = read_spending_total(path)
        self._file = folder.open(path.name, os.O_WRONLY | os.O_APPEND)

    def add(self, amount_usd: Decimal) -> None:
        """Append an amount in USD to the log; raise `OSError` if it fails, so that no more may be sent."""
        line = f"{amount_usd}\n".encode()
        n_written = os.write(self._file, line)
        if n_written != len(line):  # the disk is full: a partial line would corrupt the next one
            os.ftruncate(self._file, os.fstat(self._file).st_size - n_written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.total_usd += amount_usd

    def close(self) -> None:
        """Close the file of the log."""
        os.close(self._file)


def read_spending_total(path: Path) -> Decimal:
    """Return the sum of the amounts in the spending log at `path`; 0 if the file is missing."""
    try:
        with OutputDirectory(path.parent).read(path.name) as file:
            return sum((_parse_usd_amount(line) for line in file), Decimal())
    except FileNotFoundError:
        return Decimal()


def compact_spending_log(path: Path, *, at_least_usd: Decimal) -> Decimal:
    """Replace the spending log by its sum, at least `at_least_usd`, and return it; no other may spend."""
    spent_usd = max(read_spending_total(path), at_least_usd)
    OutputDirectory(path.parent).write(path.name, f"{spent_usd}\n".encode())
    return spent_usd


def _parse_usd_amount(line: bytes) -> Decimal:
    try:
        amount = Decimal(line.decode()) if line.endswith(b"\n") else Decimal()
    except (InvalidOperation, UnicodeDecodeError):
        return Decimal()  # the line is incomplete, for example after a power failure
    return amount if amount.is_finite() else Decimal()


MILLION = 1_000_000
_DEAREST_USD = 1_000_000
"""Maximum price of a million tokens. With the maximum number of tokens it keeps all sums exact."""
_FIELDS = ("input_usd_per_million", "output_usd_per_million")
_FORM = f'Write one table per model: [models."openai/gpt-5"] with {_FIELDS[0]} and {_FIELDS[1]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Price of a model's tokens. Cached tokens are counted at the full price."""

    input_usd_per_million: Decimal
    output_usd_per_million: Decimal

    def cost_usd(self, usage: Usage) -> Decimal:
        """Return the cost of the tokens in `usage`, in US dollars."""
        paid = (
            usage.input_tokens * self.input_usd_per_million
            + usage.output_tokens * self.output_usd_per_million
        )
        return paid / MILLION

    def halve(self) -> "TokenPrice":
        """Return half of the price, which questions in batches cost."""
        return TokenPrice(
            input_usd_per_million=self.input_usd_per_million / 2,
            output_usd_per_million=self.output_usd_per_million / 2,
        )


def read_token_prices(path: Path) -> Mapping[str, TokenPrice]:
    """Read prices by model name (`provider/name`) from a TOML file; unknown keys are rejected."""
    content = read_toml_file(path, "price table", remedy=_FORM, parse_float=Decimal)
    models = content.pop("models", None)
    if content or not isinstance(models, dict):
        raise UnreadableSourceError(str(path), "no price table", _FORM)
    prices: dict[str, TokenPrice] = {}
    for name, entry in models.items():
        if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
            raise UnreadableSourceError(str(path), f"{name!r} has no full price", _FORM)
        for amount in entry.values():
            is_number = isinstance(amount, int | Decimal) and not isinstance(amount, bool)
            if not (is_number and math.isfinite(amount) and 0 <= amount <= _DEAREST_USD):
                raise UnreadableSourceError(str(path), f"{name!r} has an invalid price", _FORM)
        prices[name] = TokenPrice(**{field: Decimal(entry[field]) for field in _FIELDS})
    return prices


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingSummary:
    """Questions, requests, tokens and cost that a budget has counted so far."""

    n_questions: int
    n_requests: int
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """Cost of all requests; `None`, not 0, if no price is known."""
    n_uncounted: int
    """Number of replies without reported tokens: if a price is known, the cost is estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSpending:
    """Cost of a run's earlier calls, which counts towards the cost limit when the run resumes."""

    spent_usd: Decimal = Decimal(0)
    dearest_usd: Decimal = Decimal(0)
    log: Path | None = None


_NOTHING_BEFORE = EarlierSpending()


class RequestBudget:
    """Limits on the number and cost of requests to a model. A cost limit needs a price.

    The maximum expected cost of a request is reserved before it is sent, and replaced by the
    actual cost after its reply. So spent and reserved cost together, with that of the run's calls
    `before`, stay below `max_cost_usd`, also while the first requests are in flight.
    """

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_cost_usd: Decimal | None = None,
        price: TokenPrice | None = None,
        before: EarlierSpending = _NOTHING_BEFORE,
    ) -> None:
        if max_cost_usd is not None and price is None:
            raise InvalidSettingError(
                "max_cost_usd",
                "no price is known for this model, so its cost cannot be capped",
                f"Add it to the price file. {_FORM}",
            )
        self._max_requests = max_requests
        self._max_cost_usd = max_cost_usd
        self._price = price
        self._n_questions = 0
        self._n_requests = 0
        self._input_tokens = 0
        self._output_tokens = 0
        self._n_uncounted = 0
        self._cost_usd = Decimal(0)
        self._dearest_usd = before.dearest_usd
        # A worker on another machine cannot access the log; it adds its own cost to `spent_usd`.
        reachable = before.log is not None and before.log.parent.is_dir()
        self._log = SpendingLog(before.log) if before.log is not None and reachable else None
        self._before_usd = before.spent_usd if self._log is None else self._log.total_usd
        self._reserved_usd: list[Decimal] = []
        self._settled: asyncio.Event | None = None

    @property
    def has_price(self) -> bool:
        """Return whether the price of tokens is known."""
        return self._price is not None

    def spending(self) -> SpendingSummary:
        """Return the questions, requests, tokens and cost so far."""
        return SpendingSummary(
            n_questions=self._n_questions,
            n_requests=self._n_requests,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            cost_usd=self._cost_usd if self._price else None,
            n_uncounted=self._n_uncounted,
        )

    def count_question(self) -> None:
        """Add one to the number of questions."""
        self._n_questions += 1

    async def reserve(self, max_usage: Usage) -> Decimal | Failure:
        """Reserve the cost of a request with at most the tokens `max_usage`; return the amount in USD.

        Return a failure if a limit does not allow the request. If requests in flight may still turn out
        cheaper than reserved, wait for them first. No request is estimated below the most expensive
        question so far.
        """
        if self._max_requests is not None and self._n_requests >= self._max_requests:
            return Failure(FailureReason.BUDGET_SPENT, f"{self._n_requests} requests were sent")
        planned_usd = Decimal(0)
        if self._price is not None:
            planned_usd = max(self._price.cost_usd(max_usage), self._dearest_usd)
        while not self._allows(planned_usd + sum(self._reserved_usd)):
            if not self._reserved_usd or not self._allows(planned_usd):
                spent = f"{self._spent_usd:.4f} of {self._max_cost_usd} USD are spent"
                detail = f"{spent}, and one more request may cost {planned_usd:.4f} USD"
                return Failure(FailureReason.BUDGET_SPENT, detail)
            self._settled = self._settled or asyncio.Event()
            await self._settled.wait()
        if self._log is not None:
            self._log.add(planned_usd)
        self._n_requests += 1
        self._reserved_usd.append(planned_usd)
        return planned_usd

    def settle(self, reserved_usd: Decimal, usage: Usage | None, *, answered: bool) -> None:
        """Replace the reserved cost of a finished request by its actual cost; 0 without `usage`."""
        cost_usd = Decimal(0)
        self._n_uncounted += answered and (usage is None or usage.is_estimated)
        if usage is not None:
            self._input_tokens += usage.input_tokens
            self._output_tokens += usage.output_tokens
            if self._price is not None:
                cost_usd = self._price.cost_usd(usage)
        if self._log is not None:
            with suppress(OSError):  # the log keeps the reserved amount, and the reply is not lost
                self._log.add(cost_usd - reserved_usd)
        self._reserved_usd.remove(reserved_usd)
        self._cost_usd += cost_usd
        self._dearest_usd = max(self._dearest_usd, cost_usd)
        if self._settled is not None:
            self._settled.set()
            self._settled = None

    def close(self) -> None:
        """Close the spending log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def _spent_usd(self) -> Decimal:
        return self._before_usd + self._cost_usd

    def _allows(self, more_usd: Decimal) -> bool:
        return self._max_cost_usd is None or self._spent_usd + more_usd <= self._max_cost_usd
