"""Parts that the pages of reviewers and creators share: metrics per condition, and the page frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from unreel.arena.answers.answer_table import REAL
from unreel.arena.boards.leaderboard_types import LeaderboardRow
from unreel.pages import player
from unreel.pages.html_page import build_html_page, render_template
from unreel.report.boards.table_downloads import (
    build_latex_downloads,
    build_table_files,
    format_table_csv,
)
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_estimate_cell,
)
from unreel.report.season.clip_answers import ReviewerAnswerSection
from unreel.report.season.leaderboards import shorten_name_list
from unreel.report.season.metric_names import Side, get_metric_definition
from unreel.report.season.page_data import PAGES, REAL_TITLE, SeasonPageData, get_entrant_page_name

HOME: Final = "../index.html"
MOST: Final = 200
"""Maximum number of lines of a table on a page; the CSV file has all."""
STYLES: Final = (player.STYLE, "unreel.report:report.css", "unreel.report.season:season.css")
_LAYOUT: Final = ("unreel.report:layout.js", "unreel.report.season:season.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantPageSection:
    """Section of an entrant's page: a heading, a sentence and a table."""

    id: str
    heading: str
    lead: str
    table: ReportTable


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantPage:
    """Content of the page of one reviewer or creator of a season."""

    side: Side
    name: str
    badge: str
    told: str
    tiles: tuple[tuple[str, str], ...]
    parts: tuple[EntrantPageSection, ...]
    sections: tuple[ReviewerAnswerSection, ...] = ()
    clips: Mapping[str, Any] = field(default_factory=dict)
    """Player configuration of each clip that may be shown, by the clip's index."""
    has_badge: bool = True

    @property
    def title(self) -> str:
        """Return the heading of the entrant's page."""
        return REAL_TITLE if self.name == REAL else self.name

    @property
    def address(self) -> str:
        """Return the file name of the entrant's page, without its extension."""
        return get_entrant_page_name(self.side, self.name)


def build_entrant_page_files(season: SeasonPageData, page: EntrantPage) -> dict[str, str]:
    """Build an entrant's page, with the first table lines, and its full CSV files; texts by file name."""
    tables: dict[str, str] = {}
    parts = []
    for part in page.parts:
        first = truncate_board_table(part.table)
        tables |= build_table_files(first) | {
            f"{part.table.file}.csv": format_table_csv(part.table)
        }
        parts.append((part, first, len(part.table.lines)))
    body = render_template(
        "unreel.report.season:entrant.html", season=season, page=page, home=HOME, parts=parts
    )
    scripts = (player.SCRIPT, *_LAYOUT) if page.clips else _LAYOUT
    document = build_html_page(
        title=f"{page.title}, season {season.name}, unreel arena",
        body=body,
        styles=STYLES,
        scripts=scripts,
        data={**build_latex_downloads(tables), "season-clips": page.clips},
    )
    return {f"{PAGES}/{page.address}.html": document, **tables}


def truncate_board_table(table: ReportTable) -> ReportTable:
    """Return the table with only its first 200 rows."""
    return replace(table, lines=table.lines[:MOST])


def format_entrant_ranks(season: SeasonPageData, standings: Sequence[LeaderboardRow | None]) -> str:
    """Return the ranks of an entrant under each condition, as a sentence."""
    pairs = zip(season.standings, standings, strict=True)
    return (
        "; ".join(f"{board.condition}: {_format_rank(standing)}" for board, standing in pairs) + "."
    )


def _format_rank(standing: LeaderboardRow | None) -> str:
    if standing is None:
        return "absent"
    if standing.rank is not None:
        return f"rank {standing.rank}{', leading' if standing.first_class else ''}"
    return (
        f"not ranked, missing {shorten_name_list(standing.lacks)}"
        if standing.lacks
        else "not ranked"
    )


def build_entrant_metric_table(
    season: SeasonPageData, standings: Sequence[LeaderboardRow | None], *, file: str
) -> ReportTable:
    """Build a table of all metrics of an entrant, with one column for each condition."""
    names = dict.fromkeys(name for standing in standings if standing for name in standing.figures)
    notes = TableFootnotes()
    lines = []
    for name in names:
        figure = get_metric_definition(name)
        cells = [BoardTableCell(text=figure.title, link=f"{HOME}#season-figure-{name}")]
        cells.append(BoardTableCell(text=figure.meaning))
        for standing in standings:
            known = standing.figures.get(name) if standing else None
            cells.append(build_estimate_cell(known, notes, places=figure.places))
        lines.append(BoardTableRow(cells=tuple(cells)))
    columns = [BoardTableColumn(title=title, numbers=False) for title in ("Figure", "Meaning")]
    columns += [BoardTableColumn(title=board.condition) for board in season.standings]
    return ReportTable(
        caption="Metrics with 95 % intervals",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        file=file,
    )
