"""Static site of a season (`unreel arena site`), which opens from disk or from a web server."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.arena.answers.answer_table import REAL
from unreel.arena.boards.leaderboard_types import LeaderboardRow, SeasonLeaderboard
from unreel.arena.submission.season_log import SeasonLogEvent
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.server_keys import hide_server_addresses, remove_server_from_model_name
from unreel.pages.html_page import build_html_page, render_template
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.table_downloads import (
    FOLDER,
    add_table_file_names,
    build_latex_downloads,
    build_table_files,
    replace_report_files,
)
from unreel.report.boards.table_downloads import FOLDER as TABLES
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    build_count_cell,
)
from unreel.report.season.clip_answers import ReviewerByClipAnswers, index_answers_by_clip
from unreel.report.season.creator_page import build_creator_page
from unreel.report.season.detection_heat_map import DetectionRateChart, build_detection_heat_map
from unreel.report.season.entrant_page import STYLES, build_entrant_page_files
from unreel.report.season.exports import FOLDER as HUB
from unreel.report.season.exports import (
    HuggingFaceListing,
    build_entrant_json,
    build_history_json,
    build_hugging_face_files,
    build_matrix_json,
    build_standings_json,
    format_strict_json,
)
from unreel.report.season.history_and_ablations import build_history_panel, iter_ablation_panels
from unreel.report.season.leaderboards import SeasonConditionBoard, build_season_board_panel
from unreel.report.season.metric_names import (
    SIDES,
    Side,
    build_metric_definitions,
    get_metric_definition,
    get_ranking_metric,
)
from unreel.report.season.page_data import (
    PAGES,
    SeasonPageData,
    get_entrant_page_name,
    get_leaderboard_side_rows,
)
from unreel.report.season.reviewer_page import build_reviewer_page

_LETTER: Final = 6.6
"""Width of a letter in pixels at font size 11; narrower text is stretched to fit."""
_MARGIN: Final = 8.0
_LONGEST: Final = 40


def format_rank_badge(
    season: str, standing: LeaderboardRow, board: Sequence[LeaderboardRow], side: Side
) -> str:
    """Return an SVG badge with the rank and the ranking metric of an entrant; it contains only text."""
    left = _shorten_line(f"unreel {season}")
    right = _shorten_line(_format_standing(standing, board, side))
    widths = [len(text) * _LETTER + 2 * _MARGIN for text in (left, right)]
    return str(
        render_template(
            "unreel.report.season:badge.svg",
            left=left,
            right=right,
            left_width=widths[0],
            right_width=widths[1],
            margin=_MARGIN,
            is_first=standing.first_class and standing.rank is not None,
        )
    )


def _format_standing(standing: LeaderboardRow, board: Sequence[LeaderboardRow], side: Side) -> str:
    figure = get_metric_definition(get_ranking_metric(side, board))
    known = standing.figures.get(figure.metric)
    number = "no value"
    if isinstance(known, Estimate):
        value, low, high = (f"{n:z.{figure.places}f}" for n in (known.value, known.low, known.high))
        number = f"{value} {figure.unit} [{low}, {high}]".replace("  ", " ")
    if standing.rank is None:
        return f"{standing.kind}: {number}" if standing.kind != side else f"not ranked: {number}"
    n_ranked = sum(row.rank is not None for row in board)
    return f"#{standing.rank} of {n_ranked}: {number}"


def _shorten_line(text: str) -> str:
    line = sanitise_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


_TITLES: Final = ("When (UTC)", "Entry", "Kind", "Team", "Attempt", "State", "Why")


def build_entry_log_tables(events: Sequence[SeasonLogEvent]) -> list[ReportTable]:
    """Return a table of the log of entries, the latest first, as a list; empty without a log."""
    if not events:
        return []
    columns = tuple(BoardTableColumn(title=title, numbers=title == "Attempt") for title in _TITLES)
    caption = "Events of all entries, latest first"
    lines = tuple(map(_build_event_line, reversed(events)))
    return [ReportTable(caption=caption, columns=columns, lines=lines, file=f"{FOLDER}/entries")]


def _build_event_line(event: SeasonLogEvent) -> BoardTableRow:
    when = f"{event.when:%Y-%m-%d %H:%M}" if event.when else ""
    texts = (when, remove_server_from_model_name(event.entry), event.kind, event.team)
    return BoardTableRow(
        cells=(
            *(BoardTableCell(text=text) for text in texts),
            build_count_cell(event.attempt),
            BoardTableCell(text=event.state.value),
            BoardTableCell(text=hide_server_addresses("; ".join(event.reasons))),
        )
    )


PAGE: Final = "index.html"
BADGES: Final = "badges"
SCRIPTS: Final = (
    "unreel.report.boards:vendor/vega.min.js",
    "unreel.report.boards:vendor/vega-lite.min.js",
    "unreel.report.boards:vendor/vega-interpreter.js",
    "unreel.report.boards:charts.js",
    "unreel.report:layout.js",
    "unreel.report.season:season.js",
)
_OURS: Final = re.compile(
    r"(reviewer|creator)-[a-z0-9-]+\.(html|json|csv|tex|svg)|(c\d+|history|ablations|entries)[a-z0-9-]*\.(csv|tex)"
)
"""Pattern of file names that earlier pages may have left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPageSection:
    """Section of the season's page about one condition."""

    id: str
    title: str
    told: str
    panels: tuple[BoardPanel, ...]
    heat: DetectionRateChart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSeasonSite:
    """Result of writing the site of a season: the first page, and counts."""

    page: Path
    size_bytes: int
    """Size of the first page."""
    n_seasons: int
    n_reviewers: int
    n_creators: int
    n_files: int


def write_season_site(
    seasons: Sequence[SeasonPageData], out: Path, *, listing: HuggingFaceListing | None = None
) -> WrittenSeasonSite:
    """Write the pages of the last of `seasons`, with the history over all, to the folder `out`.

    Args:
        seasons: In their order; no question is sent.
        out: A folder, created if missing; files of earlier pages are replaced.
        listing: Listing of the results on Hugging Face; without it no files for the hub are written.
    """
    if not seasons:
        setting, problem = "seasons", "there is none to show"
        raise InvalidSettingError(setting, problem, "Name at least one season")
    season = seasons[-1]
    by_id = {f"c{number}": index_answers_by_clip(play) for number, play in enumerate(season.plays)}
    files = dict(_iter_entrant_files(season, by_id))
    files |= _build_data_files(seasons)
    if listing is not None:
        files |= build_hugging_face_files(season, listing)
    index, tables = _build_index_page(seasons, has_hub=listing is not None)
    folder = OutputDirectory(out, published=True)
    replace_report_files(folder, {**files, **tables}, (PAGES, TABLES, BADGES), _OURS)
    page = folder.write(PAGE, index.encode())
    sides = [side for side, _ in season.entrants()]
    return WrittenSeasonSite(
        page=page,
        size_bytes=page.stat().st_size,
        n_seasons=len(seasons),
        n_reviewers=sides.count("reviewer"),
        n_creators=sides.count("creator"),
        n_files=len(files) + len(tables) + 1,
    )


def _iter_entrant_files(
    season: SeasonPageData, by_id: Mapping[str, ReviewerByClipAnswers]
) -> Iterator[tuple[str, str]]:
    for side, name in season.entrants():
        make = build_reviewer_page if side == "reviewer" else build_creator_page
        yield from build_entrant_page_files(season, make(season, by_id, name)).items()
    if season.shows_clips:
        yield from build_entrant_page_files(season, build_creator_page(season, by_id, REAL)).items()


def _build_data_files(seasons: Sequence[SeasonPageData]) -> dict[str, str]:
    season = seasons[-1]
    files = {
        "standings.json": format_strict_json(build_standings_json(season)),
        "matrix.json": format_strict_json(build_matrix_json(season)),
        "history.json": format_strict_json(build_history_json(seasons)),
    }
    for side, name in season.entrants():
        files[f"{PAGES}/{get_entrant_page_name(side, name)}.json"] = format_strict_json(
            build_entrant_json(season, side, name)
        )
    first = season.standings[0]
    for side in SIDES:
        board = get_leaderboard_side_rows(first, side)
        for standing in board:
            badge = format_rank_badge(season.name, standing, board, side)
            files[f"{BADGES}/{get_entrant_page_name(side, standing.name)}.svg"] = badge
    return files


def _build_index_page(
    seasons: Sequence[SeasonPageData], *, has_hub: bool
) -> tuple[str, dict[str, str]]:
    season = seasons[-1]
    sheets = [_build_condition_section(season, number) for number in range(len(season.standings))]
    panels_by_side = (build_history_panel(seasons, side) for side in SIDES)
    history = [add_table_file_names(panel) for panel in panels_by_side if panel is not None]
    changes = [
        add_table_file_names(p) for p in iter_ablation_panels(season.ablations, season.leanings)
    ]
    entries = build_entry_log_tables(season.entries)
    panels = [*(panel for sheet in sheets for panel in sheet.panels), *changes, *history]
    tables = [table for panel in panels for table in panel.all_tables]
    tables += [*entries, *(sheet.heat.table for sheet in sheets if sheet.heat)]
    files = {name: text for table in tables for name, text in build_table_files(table).items()}
    body = render_template(
        "unreel.report.season:season.html",
        season=season,
        sheets=sheets,
        parts=list(_iter_page_sections(changes, history)),
        names=build_metric_definitions(
            figure.metric for table in tables for figure in table.figures
        ),
        changes=changes,
        history=history,
        entries=entries,
        tiles=list(_iter_summary_tiles(season)),
        files=list(_iter_data_descriptions(has_hub=has_hub)),
    )
    charts = {chart.id: chart.spec for panel in panels for chart in panel.charts}
    document = build_html_page(
        title=f"Season {season.name}, unreel arena",
        body=body,
        styles=STYLES,
        scripts=SCRIPTS,
        data={"report-charts": charts, **build_latex_downloads(files)},
    )
    return document, files


def _build_condition_section(season: SeasonPageData, number: int) -> ConditionPageSection:
    standings = season.standings[number]
    sheet = SeasonConditionBoard(
        id=f"c{number}",
        standings=standings,
        attempts=season.attempts,
        retired=season.retired,
        shows_clips=season.shows_clips,
    )
    return ConditionPageSection(
        id=sheet.id,
        title=standings.condition,
        told=_format_data_basis(standings),
        panels=tuple(add_table_file_names(build_season_board_panel(sheet, side)) for side in SIDES),
        heat=build_detection_heat_map(sheet),
    )


def _format_data_basis(standings: SeasonLeaderboard) -> str:
    if not standings.n_resamples:
        return (
            f"{standings.n_scenes:,} scenes; pairs of clips, one of which had to be chosen as real."
        )
    return (
        f"{standings.n_scenes:,} scenes; intervals from {standings.n_resamples:,} resamples of whole scenes, "
        "each with all its clips."
    )


def _iter_page_sections(
    changes: Sequence[BoardPanel], history: Sequence[BoardPanel]
) -> Iterator[tuple[str, str]]:
    if changes:
        yield "ablations", "Ablations"
    if history:
        yield "history", "Over the seasons"
    yield "about", "Setup and warnings"
    yield "season-figures", "Definitions of the metrics"


def _iter_summary_tiles(season: SeasonPageData) -> Iterator[tuple[str, str]]:
    kinds = [standings[0].kind for standings in season.entrants().values()]
    for kind in ("reviewer", "floor", "creator", "control"):
        if count := kinds.count(kind):
            word = "baseline" if kind == "floor" else kind
            yield f"{count:,}", f"{word}{'' if count == 1 else 's'}"
    yield f"{season.standings[0].n_scenes:,}", "scenes"
    if season.plays:
        yield f"{sum(len(play.said) for play in season.plays):,}", "answers"


def _iter_data_descriptions(*, has_hub: bool) -> Iterator[tuple[str, str]]:
    yield "standings.json", "both boards under every condition"
    yield "matrix.json", "every cell of the matrix"
    yield "history.json", "the ranking metric by season"
    if has_hub:
        yield f"{HUB}/dataset/eval.yaml", "registers the benchmark at Hugging Face"
