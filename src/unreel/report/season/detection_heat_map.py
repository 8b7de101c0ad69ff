"""Heat map of a season: detection rates of reviewers on creators, with links to the clips."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from unreel.arena.boards.leaderboard_types import LeaderboardRow
from unreel.arena.boards.leaderboard_types import ReviewerCreatorCell as Met
from unreel.core.estimate import Estimate
from unreel.report.boards.table_downloads import FOLDER
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_estimate_cell,
)
from unreel.report.season.leaderboards import SeasonConditionBoard, build_season_entrant_cell
from unreel.report.season.page_data import PAGES, get_entrant_page_name

SHADES: Final = 10
_ROOMY: Final = 12
"""Maximum number of columns with intervals below the rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapCell:
    """Cell of the heat map: the detection rate of one reviewer on one creator."""

    shade: int | None
    """Colour level, 0 to `SHADES`; `None` if nothing was measured."""
    text: str
    ends: str
    """Ends of the confidence interval, as text."""
    n: int
    link: str
    creator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMapRow:
    """Row of the heat map: the detection rates of one reviewer on all creators."""

    head: BoardTableCell
    squares: tuple[HeatMapCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRateChart:
    """Heat map of detection rates, and the same data as a table for files."""

    id: str
    heads: tuple[BoardTableCell, ...]
    rows: tuple[HeatMapRow, ...]
    table: ReportTable
    is_roomy: bool


def build_detection_heat_map(sheet: SeasonConditionBoard) -> DetectionRateChart | None:
    """Return the heat map of detection rates; `None` if no reviewer answered about any creator."""
    standings = sheet.standings
    by_pair = {(cell.reviewer, cell.creator): cell for cell in standings.cells}
    if not by_pair:
        return None
    answered = {creator for _, creator in by_pair}
    columns = [c for c in standings.creators if c.name in answered]
    rows = []
    for reviewer in standings.reviewers:
        squares = [
            _build_heat_map_cell(sheet, reviewer, c, by_pair.get((reviewer.name, c.name)))
            for c in columns
        ]
        head = replace(build_season_entrant_cell(reviewer, "reviewer"), doubt="")
        rows.append(HeatMapRow(head=head, squares=tuple(squares)))
    return DetectionRateChart(
        id=f"{sheet.id}-matrix",
        heads=tuple(replace(build_season_entrant_cell(c, "creator"), doubt="") for c in columns),
        rows=tuple(rows),
        table=_build_matrix_table(sheet, columns, by_pair),
        is_roomy=len(columns) <= _ROOMY,
    )


def build_heat_map_cell_anchor(sheet: str, reviewer: str) -> str:
    """Return the anchor on a creator's page of the answers of one reviewer under one condition."""
    return f"{sheet}-{get_entrant_page_name('reviewer', reviewer)}"


def _build_heat_map_cell(
    sheet: SeasonConditionBoard, reviewer: LeaderboardRow, creator: LeaderboardRow, met: Met | None
) -> HeatMapCell:
    page = f"{PAGES}/{get_entrant_page_name('creator', creator.name)}.html"
    link = (
        f"{page}#{build_heat_map_cell_anchor(sheet.id, reviewer.name)}"
        if sheet.shows_clips
        else page
    )
    caught = met.caught if met else None
    if not isinstance(caught, Estimate):
        return HeatMapCell(
            shade=None, text="", ends="", n=0, link=link if met else "", creator=creator.name
        )
    return HeatMapCell(
        shade=round(caught.value / 100 * SHADES),
        text=f"{caught.value:.0f}",
        ends=f"{caught.low:.0f} to {caught.high:.0f}",
        n=caught.n,
        link=link,
        creator=creator.name,
    )


def _build_matrix_table(
    sheet: SeasonConditionBoard, columns: list[LeaderboardRow], met: Mapping[tuple[str, str], Met]
) -> ReportTable:
    notes = TableFootnotes()
    lines = []
    for reviewer in sheet.standings.reviewers:
        row = [met.get((reviewer.name, creator.name)) for creator in columns]
        cells = [build_estimate_cell(cell.caught if cell else None, notes) for cell in row]
        lines.append(
            BoardTableRow(cells=(BoardTableCell(text=reviewer.name), *cells), kind=reviewer.kind)
        )
    heads = [
        BoardTableColumn(title="Reviewer", numbers=False),
        *(BoardTableColumn(title=c.name) for c in columns),
    ]
    caption = f"Percent of each creator's clips that each reviewer called generated, {sheet.standings.condition}"
    return ReportTable(
        caption=caption,
        columns=tuple(heads),
        lines=tuple(lines),
        notes=notes.listed(),
        file=f"{FOLDER}/{sheet.id}-matrix",
    )
