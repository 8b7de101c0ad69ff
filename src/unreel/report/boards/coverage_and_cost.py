"""Panels of a board about the outcomes of the questions and the cost of the answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from unreel.core.safe_text import sanitise_line
from unreel.report.boards.board import BoardContender, BoardPanel, ReportBoard
from unreel.report.boards.charts import BoardChart, build_stacked_chart
from unreel.report.boards.entrant_metrics import (
    SECONDS,
    TOKENS_EACH,
    USD_EACH,
    AnswerCost,
    QuestionOutcomeCounts,
    count_question_outcomes,
    sum_answer_cost,
)
from unreel.report.boards.ranking_panels import build_contender_line
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_metric_column,
    build_optional_count_cell,
)

_READABLE, _UNREADABLE, _NOT_ASKED = "readable", "unreadable", "not asked yet"


def build_coverage_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel of question outcomes: readable answers, unreadable answers, failures by cause."""
    outcomes = {
        contender.name: count_question_outcomes(contender.entrant) for contender in board.contenders
    }
    causes = sorted({cause for outcome in outcomes.values() for cause in outcome.failures})
    order = [_READABLE, _UNREADABLE, *causes, _NOT_ASKED]
    rows = [
        row
        for contender in board.contenders
        for row in _iter_outcome_shares(contender, outcomes[contender.name], order)
    ]
    present = [part for part in order if any(row["part"] == part for row in rows)]
    chart = BoardChart(
        id=f"{board.id}-coverage",
        title="Status of the questions",
        alt=" ".join(
            _format_outcome_summary(contender, outcomes[contender.name])
            for contender in board.spoken
        ),
        spec=build_stacked_chart(
            rows, order=present, names=[contender.name for contender in board.contenders]
        ),
    )
    columns = [BoardTableColumn(title="Reviewer", numbers=False), BoardTableColumn(title="Asked")]
    columns += [BoardTableColumn(title=name.capitalize()) for name in order]
    lines = []
    for contender in board.contenders:
        counts = _count_outcomes(outcomes[contender.name], order)
        cells = [build_count_cell(n) for n in (outcomes[contender.name].n_asked, *counts.values())]
        lines.append(build_contender_line(contender, cells))
    tables = [
        ReportTable(caption="Questions by outcome", columns=tuple(columns), lines=tuple(lines))
    ]
    if any(outcome.parts for outcome in outcomes.values()):
        tables.append(_build_unreadable_parts_table(board, outcomes))
    lead = (
        "A failure does not count as an answer: it is in no score and is counted here by its "
        "cause. An answer whose label or score cannot be read is unreadable."
    )
    if n_others := sum(sum(entrant.card.answered_by.values()) for entrant in board.entrants):
        lead += f" {n_others:,} answers came from a model other than the requested one."
        tables.append(_build_other_models_table(board))
    return BoardPanel(
        id=f"{board.id}-coverage",
        heading="Coverage and failures",
        lead=lead,
        charts=(chart,),
        tables=tuple(tables),
    )


def build_cost_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel of the answers' cost: tokens, money and time."""
    notes = TableFootnotes()
    costs_by_name = {
        contender.name: sum_answer_cost(contender.entrant) for contender in board.contenders
    }
    lines = [
        build_contender_line(contender, _build_cost_cells(costs_by_name[contender.name], notes))
        for contender in board.contenders
    ]
    columns = (
        BoardTableColumn(title="Reviewer", numbers=False),
        BoardTableColumn(title="Answers"),
        BoardTableColumn(title="Tokens in"),
        BoardTableColumn(title="Tokens out"),
        build_metric_column(TOKENS_EACH),
        BoardTableColumn(title="USD"),
        build_metric_column(USD_EACH),
        build_metric_column(SECONDS),
    )
    return BoardPanel(
        id=f"{board.id}-costs",
        heading="Cost",
        lead="Sums are exact and include paid failures; means are over answers and have an interval.",
        tables=(
            ReportTable(
                caption="Tokens, money and time",
                columns=columns,
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
        is_open=True,
    )


def _build_cost_cells(cost: AnswerCost, notes: TableFootnotes) -> tuple[BoardTableCell, ...]:
    reason = "no answer reports its tokens"
    usd = BoardTableCell(note=notes.mark("no price is known"))
    if cost.cost_usd is not None:
        usd = BoardTableCell(text=f"{cost.cost_usd:,.4f}", number=cost.cost_usd)
    return (
        build_count_cell(cost.n_answers),
        build_optional_count_cell(cost.input_tokens, notes, reason=reason),
        build_optional_count_cell(cost.output_tokens, notes, reason=reason),
        build_estimate_cell(cost.tokens_each, notes, places=TOKENS_EACH.places),
        usd,
        build_estimate_cell(cost.usd_each, notes, places=USD_EACH.places),
        build_estimate_cell(cost.latency_s, notes, places=SECONDS.places),
    )


def _count_outcomes(outcomes: QuestionOutcomeCounts, order: list[str]) -> dict[str, int]:
    counts = {
        _READABLE: outcomes.readable,
        _UNREADABLE: outcomes.unreadable,
        _NOT_ASKED: outcomes.n_not_asked,
        **outcomes.failures,
    }
    return {name: counts.get(name, 0) for name in order}


def _iter_outcome_shares(
    contender: BoardContender, outcomes: QuestionOutcomeCounts, order: list[str]
) -> Iterator[Mapping[str, Any]]:
    counts = _count_outcomes(outcomes, order)
    total = max(1, sum(counts.values()))
    for rank, (part, n) in enumerate(counts.items()):
        if n:
            yield {
                "who": contender.name,
                "part": part,
                "rank": rank,
                "share": 100 * n / total,
                "tip": f"{contender.name}: {n:,} of {total:,} {part}",
            }


def _format_outcome_summary(contender: BoardContender, outcomes: QuestionOutcomeCounts) -> str:
    failed = "".join(f", {n:,} {cause}" for cause, n in outcomes.failures.items())
    readable = f"{contender.name}: {outcomes.readable:,} of {outcomes.n_asked:,} readable"
    return f"{readable}, {outcomes.unreadable:,} unreadable{failed}."


def _build_other_models_table(board: ReportBoard) -> ReportTable:
    return ReportTable(
        caption="Answers from models other than the requested one, by the name in the response",
        columns=(
            BoardTableColumn(title="Reviewer", numbers=False),
            BoardTableColumn(title="Model that answered", numbers=False),
            BoardTableColumn(title="Answers"),
        ),
        lines=tuple(
            build_contender_line(
                contender, (BoardTableCell(text=sanitise_line(name)), build_count_cell(n))
            )
            for contender in board.contenders
            for name, n in contender.entrant.card.answered_by.items()
        ),
    )


def _build_unreadable_parts_table(
    board: ReportBoard, outcomes: Mapping[str, QuestionOutcomeCounts]
) -> ReportTable:
    names = sorted({name for outcome in outcomes.values() for name in outcome.parts})
    columns = [BoardTableColumn(title="Reviewer", numbers=False)]
    columns += [BoardTableColumn(title=name) for name in names]
    lines = [
        build_contender_line(
            contender,
            (build_count_cell(outcomes[contender.name].parts.get(name, 0)) for name in names),
        )
        for contender in board.contenders
    ]
    return ReportTable(
        caption="Parts of answers that could not be read, by reason",
        columns=tuple(columns),
        lines=tuple(lines),
    )
