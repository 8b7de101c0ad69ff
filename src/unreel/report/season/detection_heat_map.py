"""Heat map of a season: detection rates of reviewers on creators, with links to the clips."""

from dataclasses import dataclass, replace

from unreel.arena.boards.leaderboard_metrics import LeaderboardRow
from unreel.arena.boards.leaderboard_metrics import ReviewerCreatorCell as Met
from unreel.core.estimate import Estimate
from unreel.report.boards.table_downloads import FOLDER
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_estimate_cell,
    build_report_table,
)
from unreel.report.season.leaderboards import SeasonConditionBoard, build_season_entrant_cell
from unreel.report.season.page_data import PAGES, get_entrant_page_name

SHADES = 10
_ROOMY = 12
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
class DetectionRateChart:
    """Heat map of detection rates, and the same data as a table for files."""

    id: str
    heads: tuple[BoardTableCell, ...]
    rows: tuple[tuple[BoardTableCell, tuple[HeatMapCell, ...]], ...]
    """Name of each reviewer, and its cells, one for each creator."""
    table: ReportTable
    is_roomy: bool


def build_detection_heat_map(board: SeasonConditionBoard) -> DetectionRateChart | None:
    """Return the heat map of detection rates; `None` if no reviewer answered about any creator."""
    leaderboards = board.leaderboards
    by_pair = {(cell.reviewer, cell.creator): cell for cell in leaderboards.cells}
    if not by_pair:
        return None
    answered = {creator for _, creator in by_pair}
    columns = [c for c in leaderboards.creators if c.name in answered]
    rows = []
    for reviewer in leaderboards.reviewers:
        squares = [
            _build_heat_map_cell(board, reviewer, c, by_pair.get((reviewer.name, c.name)))
            for c in columns
        ]
        head = replace(build_season_entrant_cell(reviewer, "reviewer"), detail="")
        rows.append((head, tuple(squares)))
    notes = TableFootnotes()
    lines = []
    for reviewer in leaderboards.reviewers:
        cells = [by_pair.get((reviewer.name, creator.name)) for creator in columns]
        rates = [build_estimate_cell(cell.caught if cell else None, notes) for cell in cells]
        name = BoardTableCell(text=reviewer.name)
        lines.append(BoardTableRow(cells=(name, *rates), kind=reviewer.kind))
    table = build_report_table(
        "Percent of each creator's clips that each reviewer called generated, "
        f"{board.leaderboards.condition}",
        ("Reviewer", *(creator.name for creator in columns)),
        lines,
        notes,
        file=f"{FOLDER}/{board.id}-matrix",
    )
    return DetectionRateChart(
        id=f"{board.id}-matrix",
        heads=tuple(replace(build_season_entrant_cell(c, "creator"), detail="") for c in columns),
        rows=tuple(rows),
        table=table,
        is_roomy=len(columns) <= _ROOMY,
    )


def build_heat_map_cell_anchor(condition_id: str, reviewer: str) -> str:
    """Return the anchor on a creator's page of the answers of one reviewer under one condition."""
    return f"{condition_id}-{get_entrant_page_name('reviewer', reviewer)}"


def _build_heat_map_cell(
    board: SeasonConditionBoard, reviewer: LeaderboardRow, creator: LeaderboardRow, met: Met | None
) -> HeatMapCell:
    page = f"{PAGES}/{get_entrant_page_name('creator', creator.name)}.html"
    link = (
        f"{page}#{build_heat_map_cell_anchor(board.id, reviewer.name)}"
        if board.shows_clips
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
