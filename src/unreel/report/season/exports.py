"""Exports of a season: its results as JSON, and files with which Hugging Face lists them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from unreel.arena.boards.leaderboard_types import (
    LeaderboardRow,
    ReviewerCreatorCell,
    SeasonLeaderboard,
)
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate, Measured
from unreel.core.safe_text import sanitise_line
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.season.history_and_ablations import collect_rows_over_seasons
from unreel.report.season.metric_names import SIDES, Side, get_metric_definition, get_ranking_metric
from unreel.report.season.page_data import (
    SeasonPageData,
    get_entrant_page_name,
    get_leaderboard_side_rows,
)

FOLDER: Final = "hub"
DATASET_FILE: Final = f"{FOLDER}/dataset/eval.yaml"
FRAMEWORK: Final = "unreel"
_REPOSITORY: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_ADDRESS: Final = re.compile(r"https?://[!-~]{1,2000}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceListing:
    """Data set, URL and split under which Hugging Face lists the results of a season."""

    dataset: str
    """`OWNER/NAME` of the benchmark on the hub."""
    url: str = ""
    """URL of the season's pages, as the source of every result; "" if unknown."""
    split: str = "test"

    def __post_init__(self) -> None:
        setting, remedy = "hub", "Write it as OWNER/NAME, as in the URL of its page on the hub"
        if not _REPOSITORY.fullmatch(self.dataset):
            raise InvalidSettingError(setting, f"{self.dataset!a} is not a data set", remedy)
        if self.url and not _ADDRESS.fullmatch(self.url):
            problem = f"{self.url!a} is not the URL of a page"
            setting, remedy = "url", "Write it with https://, without spaces"
            raise InvalidSettingError(setting, problem, remedy)


def build_hugging_face_files(season: SeasonPageData, listing: HuggingFaceListing) -> dict[str, str]:
    """Return the files for Hugging Face by name: one for the data set, one for each ranked entrant."""
    files = {DATASET_FILE: _format_dataset_registration(season, listing)}
    for side in SIDES:
        for name in dict.fromkeys(name for kind, name in season.entrants() if kind == side):
            entries = list(_iter_result_entries(season, listing, side, name))
            if entries:
                path = f"{FOLDER}/models/{get_entrant_page_name(side, name)}/.eval_results"
                files[f"{path}/unreel-{_format_slug(season.name)}.yaml"] = "".join(entries)
    return files


def get_hugging_face_task_id(season: SeasonPageData, side: Side, board: SeasonLeaderboard) -> str:
    """Return a leaderboard's id on Hugging Face from its condition, numbered if it repeats an earlier one."""
    slugs = [_format_slug(other.condition) for other in season.standings]
    number = season.standings.index(board)
    suffix = f"-{number + 1}" if slugs[number] in slugs[:number] else ""
    return f"{side}s_{slugs[number]}{suffix}"


def _format_dataset_registration(season: SeasonPageData, listing: HuggingFaceListing) -> str:
    first = season.standings[0]
    reviewers = _get_ranking_metric(first, "reviewer")
    creators = _get_ranking_metric(first, "creator")
    prefix = "100 minus " if creators.better == "less" else ""
    description = (
        f"Season {season.name} of an arena of video creators against reviewers. Tasks reviewers_*: {reviewers.title.lower()} "
        f"({reviewers.meaning}). Tasks creators_*: {prefix}{creators.title.lower()} ({creators.meaning})."
    )
    lines = [
        f"name: {_quote_yaml_string(season.name)}",
        f"description: {_quote_yaml_string(description)}",
        f"evaluation_framework: {_quote_yaml_string(FRAMEWORK)}",
        "tasks:",
    ]
    for board in season.standings:
        for side in SIDES:
            lines.append(
                f"  - id: {_quote_yaml_string(get_hugging_face_task_id(season, side, board))}"
            )
            lines += ["    config: default", f"    split: {_quote_yaml_string(listing.split)}"]
    return "\n".join(lines) + "\n"


def _iter_result_entries(
    season: SeasonPageData, listing: HuggingFaceListing, side: Side, name: str
) -> Iterator[str]:
    for board in season.standings:
        figure = _get_ranking_metric(board, side)
        for standing in get_leaderboard_side_rows(board, side):
            value = standing.figures.get(figure.metric)
            if standing.name == name and standing.rank is not None and isinstance(value, Estimate):
                task = get_hugging_face_task_id(season, side, board)
                converted = _convert_to_higher_better(value, figure)
                notes = f"{board.condition}; {_format_interval(converted)}; {standing.name}"
                yield _format_result_entry(listing, task, converted, notes)


def _get_ranking_metric(board: SeasonLeaderboard, side: Side) -> MetricDefinition:
    return get_metric_definition(get_ranking_metric(side, get_leaderboard_side_rows(board, side)))


def _convert_to_higher_better(known: Estimate, figure: MetricDefinition) -> Estimate:
    """Return the estimate, as 100 minus it if lower is better, because the hub needs higher as better."""
    if figure.better != "less":
        return known
    value, low, high = 100 - known.value, 100 - known.high, 100 - known.low
    return Estimate(value=value, low=low, high=high, n=known.n, level=known.level)


def _format_interval(known: Estimate) -> str:
    return f"95 % interval {known.low:.2f} to {known.high:.2f}, n {known.n}"


def _format_result_entry(
    listing: HuggingFaceListing, task: str, known: Estimate, notes: str
) -> str:
    lines = [
        "- dataset:",
        f"    id: {_quote_yaml_string(listing.dataset)}",
        f"    task_id: {_quote_yaml_string(task)}",
        f"  value: {known.value:.4f}",
    ]
    if listing.url:
        lines += [
            "  source:",
            f"    url: {_quote_yaml_string(listing.url)}",
            "    name: unreel arena",
        ]
    lines += [
        f"  evaluation_framework: {_quote_yaml_string(FRAMEWORK)}",
        f"  notes: {_quote_yaml_string(notes)}",
    ]
    return "\n".join(lines) + "\n"


def _quote_yaml_string(text: str) -> str:
    """Return `text` as a quoted YAML string; a JSON string is also valid YAML."""
    return json.dumps(sanitise_line(text), ensure_ascii=False)


def _format_slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "main"


def build_standings_json(season: SeasonPageData) -> dict[str, Any]:
    """Return both leaderboards of every condition as JSON values."""
    return _build_season_json(season) | {
        "conditions": [_build_board_json(board) for board in season.standings]
    }


def build_matrix_json(season: SeasonPageData) -> dict[str, Any]:
    """Return the detection rates of each reviewer on each creator as JSON values, by condition."""
    conditions = [
        {"condition": board.condition, "cells": [_build_cell_json(cell) for cell in board.cells]}
        for board in season.standings
    ]
    return _build_season_json(season) | {"conditions": conditions}


def build_history_json(seasons: Sequence[SeasonPageData]) -> dict[str, Any]:
    """Return every entrant's ranking metric in every season as JSON values; `null` if it was absent."""
    history: dict[str, Any] = {"seasons": [season.name for season in seasons]}
    for side in SIDES:
        rows = collect_rows_over_seasons(seasons, side)
        board = get_leaderboard_side_rows(seasons[-1].standings[0], side)
        history[f"{side}s"] = {
            name: [_build_rank_json(standing, get_ranking_metric(side, board)) for standing in row]
            for name, row in rows.items()
        }
    return history


def build_entrant_json(season: SeasonPageData, side: str, name: str) -> dict[str, Any]:
    """Return the results of one entrant as JSON values: by condition, overall and by opponent."""
    conditions = []
    for board in season.standings:
        for standing in get_leaderboard_side_rows(board, side):
            if standing.name == name:
                cells = [cell for cell in board.cells if getattr(cell, side) == name]
                result = {"condition": board.condition, **_build_standing_json(standing)}
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


def _build_board_json(board: SeasonLeaderboard) -> dict[str, Any]:
    names = dict.fromkeys(
        name for standing in (*board.reviewers, *board.creators) for name in standing.figures
    )
    return {
        "condition": board.condition,
        "n_scenes": board.n_scenes,
        "n_resamples": board.n_resamples,
        "figures": {name: get_metric_definition(name).meaning for name in names},
        "reviewers": [_build_standing_json(standing) for standing in board.reviewers],
        "creators": [_build_standing_json(standing) for standing in board.creators],
    }


def _build_standing_json(standing: LeaderboardRow) -> dict[str, Any]:
    side = "reviewer" if standing.kind in {"reviewer", "floor"} else "creator"
    return {
        "name": standing.name,
        "kind": standing.kind,
        "page": f"entrants/{get_entrant_page_name(side, standing.name)}.html",
        "rank": standing.rank,
        "leading": standing.first_class,
        "lacks": list(standing.lacks),
        "figures": {name: build_estimate_json(value) for name, value in standing.figures.items()},
        "above": {name: round(probability, 6) for name, probability in standing.above.items()},
    }


def _build_rank_json(standing: LeaderboardRow | None, metric: str) -> dict[str, Any] | None:
    if standing is None:
        return None
    known = standing.figures.get(metric)
    figure = (
        {"value": None, "why": "it does not have this metric"}
        if known is None
        else build_estimate_json(known)
    )
    return {"rank": standing.rank, "leading": standing.first_class, metric: figure}


def _build_cell_json(cell: ReviewerCreatorCell) -> dict[str, Any]:
    return {
        "reviewer": cell.reviewer,
        "creator": cell.creator,
        "caught": build_estimate_json(cell.caught),
        "n_asked": cell.n_asked,
        "n_silent": cell.n_silent,
    }
