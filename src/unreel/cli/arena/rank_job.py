"""Implementation of `unreel arena rank`, `ablations` and `site`, imported when they run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unreel.api.arena import rank_season
from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.boards.ablations import (
    AblationEffect,
    ReviewerBias,
    compare_answer_tables,
    measure_ablation_effects,
    measure_reviewer_biases,
)
from unreel.arena.boards.leaderboard_metrics import (
    CREATOR_FIGURES,
    REVIEWER_FIGURES,
    LeaderboardMetric,
    LeaderboardRow,
    SeasonLeaderboard,
)
from unreel.arena.boards.preference_ranking import PreferenceRates, compare_pairs_with_single_clips
from unreel.arena.boards.ranking import read_pair_answers
from unreel.arena.season.folder import SeasonFolder, find_season_folder, read_stored_season_recipe
from unreel.cli.arena import format_value_with_interval
from unreel.cli.output import Form, echo, print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.report.clips.clip_files import ReportMediaFolder
from unreel.report.season.read_season import build_clip_publisher, read_season_page_data
from unreel.report.season.site import write_season_site
from unreel.stats.resampling import RESAMPLES


def write_arena_site(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the static pages of a season, and print their path."""
    showing = options["media"]
    media = ReportMediaFolder(
        out=OutputDirectory(options["out"], published=True),
        media="copy" if showing == "licensed" else showing,
        access=build_clip_access_settings(read_environment_settings()),
    )
    season = read_season_page_data(
        find_season_folder(options["season"]),
        resamples=options["resamples"] or RESAMPLES,
        show=None if showing == "none" else build_clip_publisher(media, showing),
    )
    written = write_season_site(season, options["out"])
    if as_json:
        print_json(written)
        return
    print_message(
        f"season {season.name}: {written.n_reviewers} reviewers and baselines, {written.n_creators} creators and "
        f"controls, {len(media.placed)} clips to watch"
    )
    echo(written.page)


def print_season_ablations(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the effect of each changed setting of a season, and the bias of each reviewer."""
    folder = find_season_folder(options["season"], options["out"])
    recipe = read_stored_season_recipe(folder)
    entrants, lineup = folder.require_played(), read_season_clips(folder)
    answer_tables = [
        read_season_answers(folder, title, clips=lineup) for title in entrants.conditions
    ]
    effects = list(measure_ablation_effects(answer_tables, knobs=recipe.knobs))
    if options["against"]:
        effects += _compare_with_other_season(
            answer_tables, find_season_folder(options["against"]), options["against"]
        )
    leanings = [bias for play in answer_tables for bias in measure_reviewer_biases(play)]
    if as_json:
        print_json({"season": recipe.name, "ablations": effects, "leanings": leanings})
        return
    _print_ablation_table(effects, options["form"])
    _print_reviewer_biases(leanings, options["form"])
    if not effects:
        print_message("this season has one condition only: add a second [[condition]] to it")


def _compare_with_other_season(
    answer_tables: Sequence[SeasonAnswerTable], other_folder: SeasonFolder, name: str
) -> list[AblationEffect]:
    """Compare conditions with those of equal title in season `other_folder`, or with its only condition."""
    entrants = other_folder.require_played()
    titles = entrants.conditions
    effects: list[AblationEffect] = []
    for play in answer_tables:
        title = play.condition if play.condition in titles else titles[0]
        if title != play.condition and len(titles) > 1:
            continue
        if entrants.is_about_pairs:
            effects += compare_pairs_with_single_clips(read_pair_answers(other_folder, title), play)
        else:
            effects += compare_answer_tables(
                play, read_season_answers(other_folder, title), knob=f"against {name}"
            )
    if not effects:
        raise InvalidSettingError(
            "--against",
            f"no condition of {name} has a title of this season's",
            "Give both the same titles",
        )
    return effects


def _print_ablation_table(effects: Sequence[AblationEffect], form: Form) -> None:
    rows = [
        {
            "what": effect.knob,
            "first": effect.first,
            "second": effect.second,
            "reviewer": effect.reviewer,
            "figure": effect.figure,
            "first less second": format_value_with_interval(effect.difference, 1),
            "p": "" if effect.p_corrected is None else f"{effect.p_corrected:.3g}",
            "pairs": effect.n_pairs,
            "left out": effect.n_left_out,
        }
        for effect in effects
    ]
    columns = ("what", "first", "second", "reviewer", "figure", "first less second", "p")
    title = "ablations: percent [95 % interval], p corrected by Holm"
    print_table((*columns, "pairs", "left out"), rows, title=title, form=form)


def _print_reviewer_biases(biases: Sequence[ReviewerBias], form: Form) -> None:
    rows = [
        {
            "condition": bias.condition,
            "reviewer": bias.reviewer,
            "said real": format_value_with_interval(bias.said_real, 1),
            "sensitivity": format_value_with_interval(bias.sensitivity, 2),
            "criterion": format_value_with_interval(bias.criterion, 2),
        }
        for bias in biases
    ]
    columns = ("condition", "reviewer", "said real", "sensitivity", "criterion")
    title = "biases: a criterion above 0 is a bias towards real"
    print_table(columns, rows, title=title, form=form)


_SHOWN = frozenset(
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
    for reviewer in entrants.reviewers:
        if reviewer.unfitted:
            print_message(f"{reviewer.title} did not take part: {reviewer.unfitted}")
    if entrants.retired:
        print_message(f"removed from the season: {', '.join(entrants.retired)}")


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


def _iter_leaderboard_notes(row: LeaderboardRow) -> Iterator[str]:
    if row.kind in {"floor", "control"}:
        yield "baseline" if row.kind == "floor" else "control"
    elif row.first_class:
        yield "first class"
    if row.lacks:
        yield f"lacks {', '.join(row.lacks)}"
