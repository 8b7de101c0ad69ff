"""Export of a season as JSON: the content of its pages, each number with interval, count and reason."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unreel.arena.boards.standings import LeaderboardRow, MatrixCell, SeasonLeaderboard
from unreel.core.estimate import Estimate, Measured
from unreel.report.season.history import track
from unreel.report.season.metric_names import SIDES, figure_of, ranks_by
from unreel.report.season.view import SeasonView, get_page_name, select_side


def standings_json(season: SeasonView) -> dict[str, Any]:
    """Return both boards of every condition."""
    return _build_season_json(season) | {
        "conditions": [_build_board_json(board) for board in season.standings]
    }


def matrix_json(season: SeasonView) -> dict[str, Any]:
    """Return every cell of every condition."""
    conditions = [
        {"condition": board.condition, "cells": [_build_cell_json(cell) for cell in board.cells]}
        for board in season.standings
    ]
    return _build_season_json(season) | {"conditions": conditions}


def history_json(seasons: Sequence[SeasonView]) -> dict[str, Any]:
    """Return the ranking metric of every entrant in every season; `null` if it did not take part."""
    told: dict[str, Any] = {"seasons": [season.name for season in seasons]}
    for side in SIDES:
        rows = track(seasons, side)
        board = select_side(seasons[-1].standings[0], side)
        told[f"{side}s"] = {
            name: [_build_rank_json(standing, ranks_by(side, board)) for standing in row]
            for name, row in rows.items()
        }
    return told


def entrant_json(season: SeasonView, side: str, name: str) -> dict[str, Any]:
    """Return one entrant under each condition, with all its cells."""
    found = []
    for board in season.standings:
        for standing in select_side(board, side):
            if standing.name == name:
                cells = [cell for cell in board.cells if getattr(cell, side) == name]
                told = {"condition": board.condition, **_build_standing_json(standing)}
                found.append(told | {"cells": [_build_cell_json(cell) for cell in cells]})
    return _build_season_json(season) | {"side": side, "name": name, "conditions": found}


def to_text(value: Mapping[str, Any]) -> str:
    """Return `value` as standard JSON text, which has no NaN."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def measured_json(measured: Measured) -> dict[str, Any]:
    """Return a number with its interval, count and level, or `null` with the reason."""
    if isinstance(measured, Estimate):
        return {
            "value": measured.value,
            "low": measured.low,
            "high": measured.high,
            "n": measured.n,
            "level": measured.level,
        }
    return {"value": None, "why": measured.why}


def _build_season_json(season: SeasonView) -> dict[str, Any]:
    return {"season": season.name, "facts": dict(season.facts)}


def _build_board_json(board: SeasonLeaderboard) -> dict[str, Any]:
    names = dict.fromkeys(
        name for standing in (*board.reviewers, *board.creators) for name in standing.figures
    )
    return {
        "condition": board.condition,
        "n_scenes": board.n_scenes,
        "n_resamples": board.n_resamples,
        "figures": {name: figure_of(name).meaning for name in names},
        "reviewers": [_build_standing_json(standing) for standing in board.reviewers],
        "creators": [_build_standing_json(standing) for standing in board.creators],
    }


def _build_standing_json(standing: LeaderboardRow) -> dict[str, Any]:
    side = "reviewer" if standing.kind in {"reviewer", "floor"} else "creator"
    return {
        "name": standing.name,
        "kind": standing.kind,
        "page": f"entrants/{get_page_name(side, standing.name)}.html",
        "rank": standing.rank,
        "leading": standing.first_class,
        "lacks": list(standing.lacks),
        "figures": {name: measured_json(value) for name, value in standing.figures.items()},
        "above": {name: round(share, 6) for name, share in standing.above.items()},
    }


def _build_rank_json(standing: LeaderboardRow | None, metric: str) -> dict[str, Any] | None:
    if standing is None:
        return None
    known = standing.figures.get(metric)
    figure = (
        {"value": None, "why": "it has no such metric"} if known is None else measured_json(known)
    )
    return {"rank": standing.rank, "leading": standing.first_class, metric: figure}


def _build_cell_json(cell: MatrixCell) -> dict[str, Any]:
    return {
        "reviewer": cell.reviewer,
        "creator": cell.creator,
        "caught": measured_json(cell.caught),
        "n_asked": cell.n_asked,
        "n_silent": cell.n_silent,
    }
