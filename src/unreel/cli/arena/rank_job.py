"""Implementation of `unreel arena rank`, imported when it runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from unreel.arena.boards.figures import CREATOR_FIGURES, REVIEWER_FIGURES, BoardColumn
from unreel.arena.boards.standings import LeaderboardRow, SeasonLeaderboard
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder, find_folder
from unreel.arena.season_ranking import rank_pairs, rank_season
from unreel.cli.arena.options import format_interval
from unreel.cli.output import Form, print_json, print_message, print_table

_SHOWN: Final = frozenset(
    {"accuracy", "balanced", "said-real", "answered", "ability", "fakeness", "realism"}
    | {"called-generated", "pair-accuracy", "took-first", "strength", "taken-for-real"}
)
"""Figures that a terminal has room for; `--json` and `--format` print all."""


def print_ranks(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Rank the stored answers, and print both boards under each condition."""
    folder = find_folder(options["season"], options["out"])
    entrants = folder.require_played()
    if entrants.is_about_pairs:
        _print_preferences(folder, options, as_json=as_json)
        return
    more = {} if options["resamples"] is None else {"resamples": options["resamples"]}
    more["nuisances"] = options["nuisances"]
    standings = [each.standings for each in rank_season(folder, options["conditions"], **more)]
    if as_json:
        print_json(
            {
                "season": entrants.season,
                "digest": entrants.digest,
                "protocol": entrants.protocol,
                "standings": standings,
                "unfitted": {
                    each.title: each.unfitted for each in entrants.reviewers if each.unfitted
                },
                "retired": entrants.retired,
            }
        )
        return
    for each in standings:
        _print_boards(each, form=options["form"])
    _say_absent(entrants)


def _print_preferences(folder: SeasonFolder, options: Mapping[str, Any], *, as_json: bool) -> None:
    entrants = folder.require_played()
    found = [each.preferences for each in rank_pairs(folder, options["conditions"])]
    if as_json:
        told = {"season": entrants.season, "digest": entrants.digest}
        print_json({**told, "protocol": entrants.protocol, "preferences": found})
        return
    for each in found:
        print_message(f"condition {each.condition}: pairs; fraction taken for real [95 % interval]")
        _print_board("reviewer", each.reviewers, REVIEWER_FIGURES, form=options["form"])
        _print_board("creator", each.creators, CREATOR_FIGURES, form=options["form"])
    _say_absent(entrants)


def _print_boards(standings: SeasonLeaderboard, *, form: Form) -> None:
    print_message(
        f"condition {standings.condition}: {standings.n_scenes} scenes, "
        f"{standings.n_resamples} resamples; percent [95 % interval]"
    )
    _print_board("reviewer", standings.reviewers, REVIEWER_FIGURES, form=form)
    _print_board("creator", standings.creators, CREATOR_FIGURES, form=form)
    for name, slope in standings.sway.items():
        print_message(
            f"{name} adds to the log-odds of generated, for each standard deviation: {slope}"
        )


def _print_board(
    what: str, board: Sequence[LeaderboardRow], figures: Mapping[str, BoardColumn], *, form: Form
) -> None:
    told = {name for each in board for name in each.figures}
    kept = [
        figure
        for figure in figures.values()
        if figure.name in told and (form != "text" or figure.name in _SHOWN)
    ]
    rows = [
        {"rank": each.rank or "", what: each.name}
        | {
            f.name: format_interval(each.figures.get(f.name), 2 if f.unit == "logit" else 1)
            for f in kept
        }
        | {"note": "; ".join(_notes(each))}
        for each in board
    ]
    columns = ["rank", what, *(figure.name for figure in kept), "note"]
    print_table(columns, rows, title=f"{what}s", form=form)


def _notes(standing: LeaderboardRow) -> Iterator[str]:
    if standing.kind in {"floor", "control"}:
        yield "baseline" if standing.kind == "floor" else "control"
    elif standing.first_class:
        yield "first class"
    if standing.lacks:
        yield f"lacks {', '.join(standing.lacks)}"


def _say_absent(entrants: SeasonEntrants) -> None:
    for each in entrants.reviewers:
        if each.unfitted:
            print_message(f"{each.title} took no part: {each.unfitted}")
    if entrants.retired:
        print_message(f"taken out of the season: {', '.join(entrants.retired)}")
