"""Panel of the metrics that no other panel shows, and of the labels that clips were given."""

from unreel.core.estimate import Estimate
from unreel.protocols.figures import MetricDefinition
from unreel.report.boards.board import BoardPanel, ReportBoard
from unreel.report.boards.figures import metric_of
from unreel.report.boards.ranking import line_of
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableColumn,
    exact_cell,
    figure_column,
    measured_cell,
)


def build_other_figures_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of further metrics of a protocol, as far as an entrant has them."""
    tables = [
        table
        for table in (_build_other_metrics_table(board), _build_confusion_table(board))
        if table is not None
    ]
    if not tables:
        return None
    return BoardPanel(
        id=f"{board.id}-more",
        heading="More metrics",
        lead="Other metrics: those of a score or a confidence if one was given, and counts.",
        tables=tuple(tables),
    )


def _build_other_metrics_table(board: ReportBoard) -> BoardTable | None:
    figures = [figure for figure in _select_other_metrics(board) if _is_known(board, figure)]
    if not figures:
        return None
    notes = FootnoteMarks()
    lines = [
        line_of(
            contender,
            (
                measured_cell(metric_of(contender.entrant, f.metric), notes, places=f.places)
                for f in figures
            ),
        )
        for contender in board.contenders
    ]
    return BoardTable(
        caption="Further metrics",
        columns=(TableColumn(title="Reviewer", numbers=False), *map(figure_column, figures)),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _select_other_metrics(board: ReportBoard) -> list[MetricDefinition]:
    figures = board.asked.figures
    shown = {*figures.leading, *figures.sides, figures.per_creator, "whole-frame-boxes"}
    return [figure for figure in figures if figure.metric not in shown]


def _is_known(board: ReportBoard, figure: MetricDefinition) -> bool:
    return any(isinstance(metric_of(e, figure.metric), Estimate) for e in board.entrants)


def _build_confusion_table(board: ReportBoard) -> BoardTable | None:
    calls = list(dict.fromkeys(call for e in board.entrants for call in e.card.confusion))
    if not calls:
        return None
    lines = [
        line_of(
            contender,
            (exact_cell(contender.entrant.card.confusion.get(call, 0)) for call in calls),
        )
        for contender in board.contenders
    ]
    return BoardTable(
        caption="Clips by true label and answer",
        columns=(
            TableColumn(title="Reviewer", numbers=False),
            *(TableColumn(title=c) for c in calls),
        ),
        lines=tuple(lines),
    )
