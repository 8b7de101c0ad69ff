"""Every two contenders on the clips that both answered."""

import itertools
from typing import Final

from unreel.core.estimate import Estimate
from unreel.report.boards.board import Board, Panel
from unreel.report.boards.differences import LEVEL, Difference, compare
from unreel.report.boards.own_figures import DIFFERENCE
from unreel.report.boards.ranking import name_cell
from unreel.report.boards.tables import (
    Cell,
    Column,
    Line,
    Notes,
    Table,
    exact_cell,
    figure_column,
    measured_cell,
)

_COLUMNS: Final = (
    Column(title="Reviewer", numbers=False),
    Column(title="Less", numbers=False),
    figure_column(DIFFERENCE),
    Column(title="In common"),
    Column(title="Told apart", numbers=False),
)


def differences(board: Board) -> Panel | None:
    """How far every two lie apart, with intervals that hold for all of them at once."""
    placed = [contender for contender in board.shown if not contender.unranked]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(placed, 2)
        if "reviewer" in (one.kind, other.kind)
    ]
    if not pairs:
        return None
    level = 1 - (1 - LEVEL) / len(pairs)
    found = [compare(one.entrant, other.entrant, level=level) for one, other in pairs]
    notes = Notes()
    lines = [
        Line(cells=(name_cell(one), name_cell(other), *_cells(difference, notes)))
        for (one, other), difference in zip(pairs, found, strict=True)
    ]
    return Panel(
        id=f"{board.id}-differences",
        heading="Paired differences",
        lead=(
            "Every two on the clips that both answered: what both find hard cancels. Intervals are "
            f"widened for {len(pairs)} comparisons (Bonferroni), so that all hold at once 95 times of "
            "100. The command unreel compare tells the differences of every figure."
        ),
        tables=(
            Table(
                caption=f"The first less the second, {found[0].of}",
                columns=_COLUMNS,
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def _cells(difference: Difference, notes: Notes) -> tuple[Cell, ...]:
    measured = difference.measured
    apart = isinstance(measured, Estimate) and not measured.low <= 0 <= measured.high
    return (
        measured_cell(measured, notes, places=difference.places),
        exact_cell(difference.n_clips),
        Cell(text="yes" if apart else "no"),
    )
