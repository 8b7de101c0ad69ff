"""Static site of a season (`unreel arena site`), which opens from disk or from a web server."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.arena.answers.answer_table import REAL
from unreel.arena.boards.leaderboard_metrics import (
    LeaderboardRow,
    ReviewerCreatorCell,
    SeasonLeaderboard,
)
from unreel.core.estimate import Estimate, Measured
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.pages.html_page import build_html_page, render_template
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.table_downloads import FOLDER as TABLES
from unreel.report.boards.table_downloads import (
    add_table_file_names,
    build_latex_downloads,
    build_table_files,
    replace_report_files,
)
from unreel.report.season.clip_answers import ReviewerByClipAnswers, index_answers_by_clip
from unreel.report.season.entrant_page import (
    STYLES,
    build_creator_page,
    build_entrant_page_files,
    build_reviewer_page,
)
from unreel.report.season.leaderboards import (
    DetectionRateChart,
    SeasonConditionBoard,
    build_detection_heat_map,
    build_season_board_panel,
    iter_ablation_panels,
)
from unreel.report.season.page_data import (
    ENTRANT_KINDS,
    PAGES,
    SeasonPageData,
    Side,
    build_metric_definitions,
    get_entrant_page_name,
    get_leaderboard_side_rows,
    get_metric_definition,
    get_ranking_metric,
)


def build_standings_json(season: SeasonPageData) -> dict[str, Any]:
    """Return both leaderboards of every condition as JSON values."""
    return _build_season_json(season) | {
        "conditions": [_build_board_json(board) for board in season.leaderboards]
    }


def build_matrix_json(season: SeasonPageData) -> dict[str, Any]:
    """Return the detection rates of each reviewer on each creator as JSON values, by condition."""
    conditions = [
        {"condition": board.condition, "cells": [_build_cell_json(cell) for cell in board.cells]}
        for board in season.leaderboards
    ]
    return _build_season_json(season) | {"conditions": conditions}


def build_entrant_json(season: SeasonPageData, side: str, name: str) -> dict[str, Any]:
    """Return the results of one entrant as JSON values: by condition, overall and by opponent."""
    conditions = []
    for board in season.leaderboards:
        for row in get_leaderboard_side_rows(board, side):
            if row.name == name:
                cells = [cell for cell in board.cells if getattr(cell, side) == name]
                result = {"condition": board.condition, **_build_row_json(row)}
                conditions.append(result | {"cells": [_build_cell_json(cell) for cell in cells]})
    return _build_season_json(season) | {"side": side, "name": name, "conditions": conditions}


def format_strict_json(value: Mapping[str, Any]) -> str:
    """Return `value` as JSON text; NaN is rejected."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def build_estimate_json(measured: Measured) -> dict[str, Any]:
    """Return a number with interval, count and level as JSON values, or `null` with the reason."""
    if isinstance(measured, Estimate):
        return {
            "value": measured.value,
            "low": measured.low,
            "high": measured.high,
            "n": measured.n,
            "level": measured.level,
        }
    return {"value": None, "why": measured.why}


def _build_season_json(season: SeasonPageData) -> dict[str, Any]:
    return {"season": season.name, "facts": dict(season.facts)}


def _build_board_json(leaderboard: SeasonLeaderboard) -> dict[str, Any]:
    names = dict.fromkeys(
        name for row in (*leaderboard.reviewers, *leaderboard.creators) for name in row.figures
    )
    return {
        "condition": leaderboard.condition,
        "n_scenes": leaderboard.n_scenes,
        "n_resamples": leaderboard.n_resamples,
        "figures": {name: get_metric_definition(name).meaning for name in names},
        "reviewers": [_build_row_json(row) for row in leaderboard.reviewers],
        "creators": [_build_row_json(row) for row in leaderboard.creators],
    }


def _build_row_json(row: LeaderboardRow) -> dict[str, Any]:
    side = "reviewer" if row.kind in {"reviewer", "floor"} else "creator"
    return {
        "name": row.name,
        "kind": row.kind,
        "page": f"entrants/{get_entrant_page_name(side, row.name)}.html",
        "rank": row.rank,
        "leading": row.first_class,
        "lacks": list(row.lacks),
        "figures": {name: build_estimate_json(value) for name, value in row.figures.items()},
        "above": {name: round(probability, 6) for name, probability in row.above.items()},
    }


def _build_cell_json(cell: ReviewerCreatorCell) -> dict[str, Any]:
    return {
        "reviewer": cell.reviewer,
        "creator": cell.creator,
        "caught": build_estimate_json(cell.caught),
        "n_asked": cell.n_asked,
        "n_silent": cell.n_silent,
    }


_LETTER = 6.6
"""Width of a letter in pixels at font size 11; narrower text is stretched to fit."""
_MARGIN = 8.0
_LONGEST = 40


def format_rank_badge(
    season: str, row: LeaderboardRow, rows: Sequence[LeaderboardRow], side: Side
) -> str:
    """Return an SVG badge with the rank and the ranking metric of an entrant; it contains only text."""
    metric = get_metric_definition(get_ranking_metric(side, rows))
    measured = row.figures.get(metric.metric)
    number = "no value"
    if isinstance(measured, Estimate):
        numbers = (measured.value, measured.low, measured.high)
        value, low, high = (f"{number:z.{metric.places}f}" for number in numbers)
        number = f"{value} {metric.unit} [{low}, {high}]".replace("  ", " ")
    rank = f"#{row.rank} of {sum(each.rank is not None for each in rows)}"
    if row.rank is None:
        rank = row.kind if row.kind != side else "not ranked"
    left, right = _shorten_line(f"unreel {season}"), _shorten_line(f"{rank}: {number}")
    widths = [len(text) * _LETTER + 2 * _MARGIN for text in (left, right)]
    return str(
        render_template(
            "unreel.report.season:badge.svg",
            left=left,
            right=right,
            left_width=widths[0],
            right_width=widths[1],
            margin=_MARGIN,
            is_first=row.first_class and row.rank is not None,
        )
    )


def _shorten_line(text: str) -> str:
    line = sanitise_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


PAGE = "index.html"
BADGES = "badges"
SCRIPTS = (
    "unreel.report.boards:vendor/vega.min.js",
    "unreel.report.boards:vendor/vega-lite.min.js",
    "unreel.report.boards:vendor/vega-interpreter.js",
    "unreel.report.boards:charts.js",
    "unreel.report:layout.js",
    "unreel.report.season:season.js",
)
_OURS = re.compile(
    r"(reviewer|creator)-[a-z0-9-]+\.(html|json|csv|tex|svg)|(c\d+|history|ablations|entries)[a-z0-9-]*\.(csv|tex)"
)
"""Pattern of file names that earlier pages may have left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionPageSection:
    """Section of the season's page about one condition."""

    id: str
    title: str
    basis: str
    panels: tuple[BoardPanel, ...]
    heat: DetectionRateChart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSeasonSite:
    """Result of writing the site of a season: the first page, and counts."""

    page: Path
    size_bytes: int
    """Size of the first page."""
    n_reviewers: int
    n_creators: int
    n_files: int


def write_season_site(season: SeasonPageData, out: Path) -> WrittenSeasonSite:
    """Write the pages of `season` to the folder `out`; no question is sent."""
    by_id = {
        f"c{number}": index_answers_by_clip(answers)
        for number, answers in enumerate(season.answer_tables)
    }
    files = _build_entrant_files(season, by_id) | {
        "standings.json": format_strict_json(build_standings_json(season)),
        "matrix.json": format_strict_json(build_matrix_json(season)),
    }
    index, tables = _build_index_page(season)
    folder = OutputDirectory(out, published=True)
    replace_report_files(folder, {**files, **tables}, (PAGES, TABLES, BADGES), _OURS)
    page = folder.write(PAGE, index.encode())
    kinds = [side for side, _ in season.entrants()]
    return WrittenSeasonSite(
        page=page,
        size_bytes=page.stat().st_size,
        n_reviewers=kinds.count("reviewer"),
        n_creators=kinds.count("creator"),
        n_files=len(files) + len(tables) + 1,
    )


def _build_entrant_files(
    season: SeasonPageData, by_id: Mapping[str, ReviewerByClipAnswers]
) -> dict[str, str]:
    files: dict[str, str] = {}
    for side, name in season.entrants():
        build_page = build_reviewer_page if side == "reviewer" else build_creator_page
        files |= build_entrant_page_files(season, build_page(season, by_id, name))
        document = format_strict_json(build_entrant_json(season, side, name))
        files[f"{PAGES}/{get_entrant_page_name(side, name)}.json"] = document
    if season.shows_clips:
        files |= build_entrant_page_files(season, build_creator_page(season, by_id, REAL))
    first = season.leaderboards[0]
    for side in ENTRANT_KINDS:
        board = get_leaderboard_side_rows(first, side)
        for row in board:
            badge = format_rank_badge(season.name, row, board, side)
            files[f"{BADGES}/{get_entrant_page_name(side, row.name)}.svg"] = badge
    return files


def _build_index_page(season: SeasonPageData) -> tuple[str, dict[str, str]]:
    numbers = range(len(season.leaderboards))
    sections = [_build_condition_section(season, number) for number in numbers]
    changes = [
        add_table_file_names(p) for p in iter_ablation_panels(season.ablations, season.leanings)
    ]
    panels = [*(panel for section in sections for panel in section.panels), *changes]
    tables = [table for panel in panels for table in panel.all_tables]
    tables += [section.heat.table for section in sections if section.heat]
    files = {name: text for table in tables for name, text in build_table_files(table).items()}
    body = render_template(
        "unreel.report.season:season.html",
        season=season,
        sections=sections,
        parts=[
            *([("ablations", "Ablations")] if changes else []),
            ("about", "Setup and notes"),
            ("season-figures", "Definitions of the metrics"),
        ],
        names={
            "id": "season",
            "metrics": build_metric_definitions(
                metric.metric for table in tables for metric in table.metrics
            ),
        },
        changes=changes,
        tiles=list(_iter_summary_tiles(season)),
        files=[
            ("standings.json", "both boards under every condition"),
            ("matrix.json", "every cell of the matrix"),
        ],
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
    leaderboards = season.leaderboards[number]
    board = SeasonConditionBoard(
        id=f"c{number}",
        leaderboards=leaderboards,
        retired=season.retired,
        shows_clips=season.shows_clips,
    )
    basis = (
        f"{leaderboards.n_scenes:,} scenes; pairs of clips, one of which had to be chosen as real."
    )
    if leaderboards.n_resamples:
        basis = (
            f"{leaderboards.n_scenes:,} scenes; intervals from {leaderboards.n_resamples:,} resamples "
            "of whole scenes, each with all its clips."
        )
    return ConditionPageSection(
        id=board.id,
        title=leaderboards.condition,
        basis=basis,
        panels=tuple(
            add_table_file_names(build_season_board_panel(board, side)) for side in ENTRANT_KINDS
        ),
        heat=build_detection_heat_map(board),
    )


def _iter_summary_tiles(season: SeasonPageData) -> Iterator[tuple[str, str]]:
    kinds = [leaderboards[0].kind for leaderboards in season.entrants().values()]
    for kind in ("reviewer", "floor", "creator", "control"):
        if count := kinds.count(kind):
            word = "baseline" if kind == "floor" else kind
            yield f"{count:,}", f"{word}{'' if count == 1 else 's'}"
    yield f"{season.leaderboards[0].n_scenes:,}", "scenes"
    if season.answer_tables:
        yield f"{sum(len(answers.answer_codes) for answers in season.answer_tables):,}", "answers"
