"""Implementation of `unreel arena rank`, imported when it runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from unreel.api.arena import rank_season
from unreel.arena.boards.leaderboard_metrics import (
    CREATOR_FIGURES,
    REVIEWER_FIGURES,
    LeaderboardMetric,
)
from unreel.arena.boards.leaderboard_types import LeaderboardRow, SeasonLeaderboard
from unreel.arena.boards.preference_ranking import PreferenceRates
from unreel.arena.season.folder import SeasonEntrants, find_season_folder
from unreel.cli.arena import format_value_with_interval
from unreel.cli.output import Form, print_json, print_message, print_table

_SHOWN: Final = frozenset(
    {"accuracy", "balanced", "said-real", "answered", "ability", "fakeness", "realism"}
    | {"called-generated", "pair-accuracy", "took-first", "strength", "taken-for-real"}
)
"""Metrics for which a terminal has room; `--json` and `--format` print all."""


def print_season_leaderboards(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Rank the entrants of a season, and print both leaderboards for each condition."""
    entrants = find_season_folder(options["season"], options["out"]).require_played()
    boards = rank_season(
        options["season"],
        out=options["out"],
        titles=options["conditions"],
        resamples=options["resamples"],
        nuisances=options["nuisances"],
    )
    if as_json:
        document = {name: getattr(entrants, name) for name in ("season", "digest", "protocol")}
        if entrants.is_about_pairs:
            print_json({**document, "preferences": boards})
            return
        unfitted = {each.title: each.unfitted for each in entrants.reviewers if each.unfitted}
        more = {"standings": boards, "unfitted": unfitted, "retired": entrants.retired}
        print_json(document | more)
        return
    for each in boards:
        _print_condition_leaderboards(each, form=options["form"])
    _print_absent_entrants(entrants)


def _print_condition_leaderboards(
    boards: SeasonLeaderboard | PreferenceRates, *, form: Form
) -> None:
    if isinstance(boards, SeasonLeaderboard):
        counts = f"{boards.n_scenes} scenes, {boards.n_resamples} resamples; percent"
    else:
        counts = "pairs; percent taken for real"
    print_message(f"condition {boards.condition}: {counts} [95 % interval]")
    _print_leaderboard("reviewer", boards.reviewers, REVIEWER_FIGURES, form=form)
    _print_leaderboard("creator", boards.creators, CREATOR_FIGURES, form=form)
    for name, slope in boards.sway.items() if isinstance(boards, SeasonLeaderboard) else ():
        print_message(
            f"{name} adds to the log-odds of generated, for each standard deviation: {slope}"
        )


def _print_leaderboard(
    what: str,
    board: Sequence[LeaderboardRow],
    metrics: Mapping[str, LeaderboardMetric],
    *,
    form: Form,
) -> None:
    measured = {name for row in board for name in row.figures}
    columns_shown = [
        metric
        for metric in metrics.values()
        if metric.name in measured and (form != "text" or metric.name in _SHOWN)
    ]
    rows = [
        {"rank": row.rank or "", what: row.name}
        | {
            f.name: format_value_with_interval(
                row.figures.get(f.name), 2 if f.unit == "logit" else 1
            )
            for f in columns_shown
        }
        | {"note": "; ".join(_iter_leaderboard_notes(row))}
        for row in board
    ]
    columns = ["rank", what, *(metric.name for metric in columns_shown), "note"]
    print_table(columns, rows, title=f"{what}s", form=form)


def _iter_leaderboard_notes(standing: LeaderboardRow) -> Iterator[str]:
    if standing.kind in {"floor", "control"}:
        yield "baseline" if standing.kind == "floor" else "control"
    elif standing.first_class:
        yield "first class"
    if standing.lacks:
        yield f"lacks {', '.join(standing.lacks)}"


def _print_absent_entrants(entrants: SeasonEntrants) -> None:
    for reviewer in entrants.reviewers:
        if reviewer.unfitted:
            print_message(f"{reviewer.title} did not take part: {reviewer.unfitted}")
    if entrants.retired:
        print_message(f"removed from the season: {', '.join(entrants.retired)}")
