"""Creators against reviewers as a heat map: a table with a colour for each share, and a way to the clips."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from unreel.arena.boards.standings import LeaderboardRow
from unreel.arena.boards.standings import MatrixCell as Met
from unreel.core.estimate import Estimate
from unreel.report.boards.downloads import FOLDER
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableCell,
    TableColumn,
    TableLine,
    measured_cell,
)
from unreel.report.season.boards import ConditionSheet, name_cell
from unreel.report.season.view import PAGES, get_page_name

SHADES: Final = 10
_ROOMY: Final = 12
"""Columns up to which intervals stand below the shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSquare:
    """One reviewer against one creator, as the map shows it."""

    shade: int | None
    """0 to `SHADES`; `None` where nothing was measured."""
    text: str
    ends: str
    """Of the interval."""
    n: int
    link: str
    creator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One reviewer against all."""

    head: TableCell
    squares: tuple[MatrixSquare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionMatrix:
    """The whole map, and the same as a table for files."""

    id: str
    heads: tuple[TableCell, ...]
    rows: tuple[MatrixRow, ...]
    table: BoardTable
    is_roomy: bool


def heat_map(sheet: ConditionSheet) -> DetectionMatrix | None:
    """Return the detection rate of each reviewer on each creator's clips; `None` without a common clip."""
    standings = sheet.standings
    met = {(cell.reviewer, cell.creator): cell for cell in standings.cells}
    if not met:
        return None
    met_by_somebody = {creator for _, creator in met}
    columns = [c for c in standings.creators if c.name in met_by_somebody]
    rows = []
    for reviewer in standings.reviewers:
        found = [
            _build_matrix_square(sheet, reviewer, c, met.get((reviewer.name, c.name)))
            for c in columns
        ]
        head = replace(name_cell(reviewer, "reviewer"), doubt="")
        rows.append(MatrixRow(head=head, squares=tuple(found)))
    return DetectionMatrix(
        id=f"{sheet.id}-matrix",
        heads=tuple(replace(name_cell(c, "creator"), doubt="") for c in columns),
        rows=tuple(rows),
        table=_build_matrix_table(sheet, columns, met),
        is_roomy=len(columns) <= _ROOMY,
    )


def cell_id(sheet: str, reviewer: str) -> str:
    """Return the anchor on a creator's page for one reviewer under one condition."""
    return f"{sheet}-{get_page_name('reviewer', reviewer)}"


def _build_matrix_square(
    sheet: ConditionSheet, reviewer: LeaderboardRow, creator: LeaderboardRow, met: Met | None
) -> MatrixSquare:
    page = f"{PAGES}/{get_page_name('creator', creator.name)}.html"
    link = f"{page}#{cell_id(sheet.id, reviewer.name)}" if sheet.shows_clips else page
    caught = met.caught if met else None
    if not isinstance(caught, Estimate):
        return MatrixSquare(
            shade=None, text="", ends="", n=0, link=link if met else "", creator=creator.name
        )
    return MatrixSquare(
        shade=round(caught.value / 100 * SHADES),
        text=f"{caught.value:.0f}",
        ends=f"{caught.low:.0f} to {caught.high:.0f}",
        n=caught.n,
        link=link,
        creator=creator.name,
    )


def _build_matrix_table(
    sheet: ConditionSheet, columns: list[LeaderboardRow], met: Mapping[tuple[str, str], Met]
) -> BoardTable:
    notes = FootnoteMarks()
    lines = []
    for reviewer in sheet.standings.reviewers:
        found = [met.get((reviewer.name, creator.name)) for creator in columns]
        cells = [measured_cell(cell.caught if cell else None, notes) for cell in found]
        lines.append(TableLine(cells=(TableCell(text=reviewer.name), *cells), kind=reviewer.kind))
    heads = [
        TableColumn(title="Reviewer", numbers=False),
        *(TableColumn(title=c.name) for c in columns),
    ]
    caption = f"Percent of each creator's clips that each reviewer called generated, {sheet.standings.condition}"
    return BoardTable(
        caption=caption,
        columns=tuple(heads),
        lines=tuple(lines),
        notes=notes.listed(),
        file=f"{FOLDER}/{sheet.id}-matrix",
    )
