"""Cost of a run's questions: read from its answers, and added to the cost of later attempts."""

from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from unreel.asking.answer_table import ESTIMATED, PAID
from unreel.core.output_files import OutputDirectory
from unreel.engine.progress import Progress
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.reviewers.endpoint.budget import (
    EarlierSpending,
    compact_spending_log,
    read_spending_total,
)
from unreel.reviewers.factory import ReviewerFactory

ESTIMATE_NOTE = (
    "the server reported no token usage for some requests: their cost is estimated from the request "
    "and the token limit (usage_estimated in the answers)"
)
_LOG = "answers.spending"


def sum_run_cost_usd(answer_table: LanceTable, ledgers: Path) -> Decimal | None:
    """Return a run's cost in USD with failures and lost replies; `None` if no cost is known."""
    costs = _list_answer_costs(answer_table)
    logged = read_spending_total(ledgers / _LOG)
    return max(sum(costs, Decimal()), logged) if costs or logged else None


def add_earlier_run_cost(
    factory: ReviewerFactory, answer_table: LanceTable, ledgers: Path
) -> ReviewerFactory:
    """Return the factory with the run's earlier cost counted; no other process may send then."""
    if factory.max_cost_usd is None:
        return factory
    costs = _list_answer_costs(answer_table)
    log = OutputDirectory(ledgers).make() / _LOG
    before = EarlierSpending(
        spent_usd=compact_spending_log(log, at_least_usd=sum(costs, Decimal())),
        dearest_usd=max(costs, default=Decimal()),
        log=log,
    )
    return factory.after(before)


def add_earlier_question_costs(
    questions: Iterable[Row], answer_table: LanceTable, *, retry: Collection[str]
) -> Iterator[Row]:
    """Yield the questions; a retried one gets the tokens and cost of its earlier attempts."""
    paid = _read_paid_failures(answer_table, retry)
    for question in questions:
        before = paid.get(question["key"])
        yield question if before is None else question | {"_paid": before}


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


def _list_answer_costs(answer_table: LanceTable) -> list[Decimal]:
    if not answer_table.exists():
        return []
    rows = answer_table.rows(["cost_usd"], where="cost_usd IS NOT NULL")
    return [Decimal(str(row["cost_usd"])) for row in rows]


def _read_paid_failures(answer_table: LanceTable, retry: Collection[str]) -> dict[str, Row]:
    if not answer_table.exists():
        return {}
    where = "failure_reason IS NOT NULL AND (input_tokens IS NOT NULL OR cost_usd IS NOT NULL)"
    return {
        row["key"]: {name: row.get(name) for name in (*PAID, ESTIMATED)}
        for row in answer_table.rows(where=where)
        if row["failure_reason"] in retry
    }
