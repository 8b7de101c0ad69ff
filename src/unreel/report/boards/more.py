"""The figures that no other panel shows, and what each clip was called."""

from unreel.core.estimate import Estimate
from unreel.protocols.figures import Figure
from unreel.report.boards.board import Board, Panel
from unreel.report.boards.figures import metric_of
from unreel.report.boards.ranking import line_of
from unreel.report.boards.tables import (
    Column,
    Notes,
    Table,
    exact_cell,
    figure_column,
    measured_cell,
)


def more(board: Board) -> Panel | None:
    """Return the panel of further metrics of a protocol, as far as an entrant has them."""
    tables = [table for table in (_figures(board), _confusion(board)) if table is not None]
    if not tables:
        return None
    return Panel(
        id=f"{board.id}-more",
        heading="More figures",
        lead="What else was measured: figures of a score or a confidence where one was given, and counts.",
        tables=tuple(tables),
    )


def _figures(board: Board) -> Table | None:
    figures = [figure for figure in _unshown(board) if _is_known(board, figure)]
    if not figures:
        return None
    notes = Notes()
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
    return Table(
        caption="Further figures",
        columns=(Column(title="Reviewer", numbers=False), *map(figure_column, figures)),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _unshown(board: Board) -> list[Figure]:
    figures = board.asked.figures
    shown = {*figures.leading, *figures.sides, figures.per_creator}
    if board.asked.needs_box_space:
        shown.add("whole-frame-boxes")
    return [figure for figure in figures if figure.metric not in shown]


def _is_known(board: Board, figure: Figure) -> bool:
    return any(isinstance(metric_of(e, figure.metric), Estimate) for e in board.entrants)


def _confusion(board: Board) -> Table | None:
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
    return Table(
        caption="Clips by what they are and what they were called",
        columns=(Column(title="Reviewer", numbers=False), *(Column(title=c) for c in calls)),
        lines=tuple(lines),
    )
