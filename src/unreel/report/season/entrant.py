"""Shared parts of reviewers' and creators' pages: metrics per condition, and the page frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from unreel.arena.answers.play import REAL
from unreel.arena.boards.standings import LeaderboardRow
from unreel.pages import player
from unreel.pages.page import render, whole_page
from unreel.report.boards.downloads import latex_block, table_csv, table_files
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableCell,
    TableColumn,
    TableLine,
    measured_cell,
)
from unreel.report.season.boards import format_names
from unreel.report.season.cells import ReviewerCells
from unreel.report.season.metric_names import Side, figure_of
from unreel.report.season.view import PAGES, REAL_TITLE, SeasonView, get_page_name

HOME: Final = "../index.html"
MOST: Final = 200
"""Lines of a table that a page shows; its CSV has all."""
STYLES: Final = (player.STYLE, "unreel.report:report.css", "unreel.report.season:season.css")
_LAYOUT: Final = ("unreel.report:layout.js", "unreel.report.season:season.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """One heading of a page, its sentence and its table."""

    id: str
    heading: str
    lead: str
    table: BoardTable


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantPage:
    """All that one page shows."""

    side: Side
    name: str
    badge: str
    told: str
    tiles: tuple[tuple[str, str], ...]
    parts: tuple[PagePart, ...]
    sections: tuple[ReviewerCells, ...] = ()
    clips: Mapping[str, Any] = field(default_factory=dict)
    """Player config of each clip that may be shown, by its index."""
    has_badge: bool = True

    @property
    def title(self) -> str:
        """Return the heading."""
        return REAL_TITLE if self.name == REAL else self.name

    @property
    def address(self) -> str:
        """Return the file name of the page, without its ending."""
        return get_page_name(self.side, self.name)


def entrant_files(season: SeasonView, page: EntrantPage) -> dict[str, str]:
    """Return the page and its tables as texts by file name; the CSV files have all lines."""
    tables: dict[str, str] = {}
    shown = []
    for part in page.parts:
        first = cut(part.table)
        tables |= table_files(first) | {f"{part.table.file}.csv": table_csv(part.table)}
        shown.append((part, first, len(part.table.lines)))
    body = render(
        "unreel.report.season:entrant.html", season=season, page=page, home=HOME, parts=shown
    )
    scripts = (player.SCRIPT, *_LAYOUT) if page.clips else _LAYOUT
    document = whole_page(
        title=f"{page.title}, season {season.name}, unreel arena",
        body=body,
        styles=STYLES,
        scripts=scripts,
        data={**latex_block(tables), "season-clips": page.clips},
    )
    return {f"{PAGES}/{page.address}.html": document, **tables}


def cut(table: BoardTable) -> BoardTable:
    """Return the table with its first 200 lines only."""
    return replace(table, lines=table.lines[:MOST])


def format_ranks(season: SeasonView, standings: Sequence[LeaderboardRow | None]) -> str:
    """Return the ranks of an entrant under each condition, as a sentence."""
    pairs = zip(season.standings, standings, strict=True)
    return (
        "; ".join(f"{board.condition}: {_format_rank(standing)}" for board, standing in pairs) + "."
    )


def _format_rank(standing: LeaderboardRow | None) -> str:
    if standing is None:
        return "it did not play"
    if standing.rank is not None:
        return f"rank {standing.rank}{', leading' if standing.first_class else ''}"
    return (
        f"not ranked, never met {format_names(standing.lacks)}" if standing.lacks else "not ranked"
    )


def figures_table(
    season: SeasonView, standings: Sequence[LeaderboardRow | None], *, file: str
) -> BoardTable:
    """Build a table of all metrics of an entrant, with one column for each condition."""
    names = dict.fromkeys(name for standing in standings if standing for name in standing.figures)
    notes = FootnoteMarks()
    lines = []
    for name in names:
        figure = figure_of(name)
        cells = [TableCell(text=figure.title, link=f"{HOME}#season-figure-{name}")]
        cells.append(TableCell(text=figure.meaning))
        for standing in standings:
            known = standing.figures.get(name) if standing else None
            cells.append(measured_cell(known, notes, places=figure.places))
        lines.append(TableLine(cells=tuple(cells)))
    columns = [TableColumn(title=title, numbers=False) for title in ("Figure", "Meaning")]
    columns += [TableColumn(title=board.condition) for board in season.standings]
    return BoardTable(
        caption="What was measured, with 95 % intervals",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        file=file,
    )
