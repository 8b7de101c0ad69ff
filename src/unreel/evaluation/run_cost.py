"""Cost of a run's questions: read from its answers, and added to the cost of later attempts."""

from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from unreel.core.answer import Usage
from unreel.core.output_files import OutputDirectory
from unreel.engine.progress import Progress
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.evaluation.table_schemas import build_token_columns
from unreel.reviewers.endpoint.budget import (
    EarlierSpending,
    compact_spending_log,
    read_spending_total,
)
from unreel.reviewers.factory import ReviewerFactory

ESTIMATED: Final = "usage_estimated"
"""Name of the column, and of the total in `Progress`, of rows whose tokens the server did not report."""
ESTIMATE_NOTE: Final = (
    "the server reported no token usage for some requests: their cost is estimated from the request "
    "and the token limit (usage_estimated in the answers)"
)
_LOG: Final = "answers.spending"
_PAID: Final = ("input_tokens", "output_tokens", "cost_usd")


def sum_run_cost_usd(answers: LanceTable, ledgers: Path) -> Decimal | None:
    """Return a run's cost in USD with failures and lost replies; `None` if no cost is known."""
    costs = _list_answer_costs(answers)
    logged = read_spending_total(ledgers / _LOG)
    return max(sum(costs, Decimal()), logged) if costs or logged else None


def add_earlier_run_cost(
    factory: ReviewerFactory, answers: LanceTable, ledgers: Path
) -> ReviewerFactory:
    """Return the factory with the run's earlier cost counted; no other process may send then."""
    if factory.max_cost_usd is None:
        return factory
    costs = _list_answer_costs(answers)
    log = OutputDirectory(ledgers).make() / _LOG
    before = EarlierSpending(
        spent_usd=compact_spending_log(log, at_least_usd=sum(costs, Decimal())),
        dearest_usd=max(costs, default=Decimal()),
        log=log,
    )
    return factory.after(before)


def add_earlier_question_costs(
    questions: Iterable[Row], answers: LanceTable, *, retry: Collection[str]
) -> Iterator[Row]:
    """Yield the questions; a retried one gets the tokens and cost of its earlier attempts."""
    paid = _read_paid_failures(answers, retry)
    for question in questions:
        before = paid.get(question["key"])
        yield question if before is None else question | {"_paid": before}


def build_cost_columns(usage: Usage | None, cost_usd: Decimal | None, before: Row | None) -> Row:
    """Return the token and cost columns of a question: the sum of this attempt and earlier attempts."""
    columns: dict[str, Any] = {
        **build_token_columns(usage),
        "cost_usd": None if cost_usd is None else float(cost_usd),
        ESTIMATED: True if usage is not None and usage.is_estimated else None,
    }
    for name, amount in (before or {}).items():
        if amount is not None:
            columns[name] = (columns[name] or 0) + amount if name in _PAID else amount
    return columns


def note_estimated_costs(
    on_progress: Callable[[Progress], None], on_note: Callable[[str], None]
) -> Callable[[Progress], None]:
    """Return a progress callback that also calls `on_note` once, at the first estimated cost."""
    waiting = [ESTIMATE_NOTE]

    def look_at(progress: Progress) -> None:
        if waiting and progress.totals.get(ESTIMATED):
            on_note(waiting.pop())
        on_progress(progress)

    return look_at


def _list_answer_costs(answers: LanceTable) -> list[Decimal]:
    if not answers.exists():
        return []
    rows = answers.rows(["cost_usd"], where="cost_usd IS NOT NULL")
    return [Decimal(str(row["cost_usd"])) for row in rows]


def _read_paid_failures(answers: LanceTable, retry: Collection[str]) -> dict[str, Row]:
    if not answers.exists():
        return {}
    where = "failure_reason IS NOT NULL AND (input_tokens IS NOT NULL OR cost_usd IS NOT NULL)"
    return {
        row["key"]: {name: row.get(name) for name in (*_PAID, ESTIMATED)}
        for row in answers.rows(where=where)
        if row["failure_reason"] in retry
    }
