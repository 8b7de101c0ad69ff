"""Every two contenders on the clips that both answered."""

import itertools
from typing import Final

from unreel.report.boards.board import Board, Panel
from unreel.report.boards.differences import Difference, compare
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
from unreel.stats.many import holm

CHANCE: Final = 0.05
_COLUMNS: Final = (
    Column(title="Reviewer", numbers=False),
    Column(title="Less", numbers=False),
    figure_column(DIFFERENCE),
    Column(title="In common"),
    Column(title="p, corrected"),
    Column(title="Told apart", numbers=False),
)


def differences(board: Board) -> Panel | None:
    """How far every two lie apart, and whether that can be chance among so many comparisons."""
    placed = [contender for contender in board.shown if not contender.unranked]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(placed, 2)
        if "reviewer" in (one.kind, other.kind)
    ]
    if not pairs:
        return None
    found = [compare(one.entrant, other.entrant) for one, other in pairs]
    corrected = iter(holm([each.p for each in found if each.p is not None]))
    chances = [None if each.p is None else next(corrected) for each in found]
    notes = Notes()
    lines = [
        Line(cells=(name_cell(one), name_cell(other), *_cells(difference, chance, notes)))
        for (one, other), difference, chance in zip(pairs, found, chances, strict=True)
    ]
    return Panel(
        id=f"{board.id}-differences",
        heading="Paired differences",
        lead=(
            "Every two on the clips that both answered: what both find hard cancels. p-values are "
            f"corrected for {len(pairs)} comparisons (Holm). The command unreel compare tells the "
            "differences of every figure."
        ),
        tables=(
            Table(
                caption=f"The first less the second, {found[0].figure.title.lower()}",
                columns=_COLUMNS,
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def _cells(difference: Difference, chance: float | None, notes: Notes) -> tuple[Cell, ...]:
    return (
        measured_cell(difference.measured, notes, places=difference.figure.places),
        exact_cell(difference.n_questions),
        Cell() if chance is None else Cell(text=f"{chance:.3f}"),
        Cell(text="yes" if chance is not None and chance < CHANCE else "no"),
    )
