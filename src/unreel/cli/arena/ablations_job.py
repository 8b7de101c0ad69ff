"""Implementation of `unreel arena ablations`, imported when it runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.boards.ablations import (
    AblationEffect,
    compare_answer_tables,
    measure_ablation_effects,
)
from unreel.arena.boards.preference_ranking import compare_pairs_with_single_clips
from unreel.arena.boards.reviewer_bias import ReviewerBias, measure_reviewer_biases
from unreel.arena.season.folder import SeasonFolder, find_season_folder, read_stored_season_recipe
from unreel.arena.season_ranking import read_pair_answers
from unreel.cli.arena import format_value_with_interval
from unreel.cli.output import Form, print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError


def print_season_ablations(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the effect of each changed setting of a season, and the bias of each reviewer."""
    folder = find_season_folder(options["season"], options["out"])
    recipe = read_stored_season_recipe(folder)
    plays = _read_season_answer_tables(folder)
    effects = list(measure_ablation_effects(plays, knobs=recipe.knobs))
    if options["against"]:
        effects += _compare_with_other_season(
            plays, find_season_folder(options["against"]), options["against"]
        )
    leanings = [bias for play in plays for bias in measure_reviewer_biases(play)]
    if as_json:
        print_json({"season": recipe.name, "ablations": effects, "leanings": leanings})
        return
    _print_ablation_table(effects, options["form"])
    _print_reviewer_biases(leanings, options["form"])
    if not effects:
        print_message("this season has one condition only: add a second [[condition]] to it")


def _read_season_answer_tables(folder: SeasonFolder) -> list[SeasonAnswerTable]:
    entrants, lineup = folder.require_played(), read_season_clips(folder)
    return [read_season_answers(folder, title, lineup=lineup) for title in entrants.conditions]


def _compare_with_other_season(
    plays: Sequence[SeasonAnswerTable], other: SeasonFolder, name: str
) -> list[AblationEffect]:
    """Compare conditions with those of equal title in season `other`, or with its only condition."""
    entrants = other.require_played()
    titles = entrants.conditions
    effects: list[AblationEffect] = []
    for play in plays:
        title = play.condition if play.condition in titles else titles[0]
        if title != play.condition and len(titles) > 1:
            continue
        if entrants.is_about_pairs:
            effects += compare_pairs_with_single_clips(read_pair_answers(other, title), play)
        else:
            effects += compare_answer_tables(
                play, read_season_answers(other, title), knob=f"against {name}"
            )
    if not effects:
        setting, problem = "--against", f"no condition of {name} has a title of this season's"
        raise InvalidSettingError(setting, problem, "Give both the same titles")
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
