"""Data for the pages of a season, read from its folder; no question is sent."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from unreel.arena.answers.play import NOBODY, SAID_GENERATED, SAID_REAL, AnswerTable
from unreel.arena.answers.read_play import encode_label, read_answers
from unreel.arena.boards.ablations import measure_ablations
from unreel.arena.boards.bias import find_leanings
from unreel.arena.fairness.attempts import TeamAttempts, count_tries
from unreel.arena.run.budget import sum_cost_usd
from unreel.arena.run.plan import read_plan
from unreel.arena.season.benchmark import look_table, open_set, read_controls
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.arena.season.recipe import SeasonRecipe
from unreel.arena.season.stored_recipe import read_stored_recipe
from unreel.arena.submission.log import read_log
from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip, get_maker
from unreel.core.server_keys import hide_addresses
from unreel.core.settings import read_settings
from unreel.creators.contract import ClipClass
from unreel.engine.survey import ClipSurvey
from unreel.report.season.boards import read_boards
from unreel.report.season.cautions import (
    iter_gaps,
    iter_log_edits,
    iter_repeated_attempts,
    iter_seen_before,
    iter_similar_reviewers,
    select_team_rows,
)
from unreel.report.season.cells import shorten_reason
from unreel.report.season.shown_clips import Show
from unreel.report.season.view import ClipDetails, SeasonView
from unreel.stats.resampling import RESAMPLES

_SERVICE: Final = "service"
"""Parameter of a clip that names the server which made it: not published."""
_HIDING: Final = "Some scenes are hidden during the season, so these pages show no single clips. Metrics count all of them."


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonReadOptions:
    """Amount of data to read from a season."""

    resamples: int = RESAMPLES
    reveals: bool = False
    """Show single clips although some are hidden: after the end of the season."""
    show: Show | None = None
    """Function that puts clips next to pages; `None` without clips."""


def read_season_view(folder: SeasonFolder, reading: SeasonReadOptions) -> SeasonView:
    """Read everything that the pages of a season show."""
    boards = read_boards(folder, resamples=reading.resamples)
    entrants, recipe = folder.require_played(), read_stored_recipe(folder)
    hidden = bool(recipe.holdout.share or recipe.holdout.canaries) and not reading.reveals
    hides = hidden or entrants.is_about_pairs
    log = read_log(folder.path)
    tries = count_tries(log)
    made = [] if hides else _read_generation_rows(folder)
    return SeasonView(
        name=boards.name,
        facts=tuple(_iter_season_facts(folder, entrants, recipe, log.head if log.lines else "")),
        plays=boards.plays,
        standings=boards.standings,
        clips={} if hides else dict(_iter_clip_details(folder, entrants, made, reading.show)),
        unmade={} if hides else _group_generation_failures(made, entrants),
        words={} if hides else _read_reviewer_reasons(folder, entrants, boards.plays),
        attempts=_count_attempts(tries, boards.plays[:1]),
        entries=log.events,
        ablations=measure_ablations(boards.plays, knobs=recipe.knobs),
        leanings=tuple(found for play in boards.plays for found in find_leanings(play)),
        notes=(*((_HIDING,) if hidden else ()), *_iter_season_notes(folder, boards.plays, tries)),
        plan=tuple(_iter_plan_facts(folder, entrants, recipe)),
        retired=boards.retired,
        shows_clips=not hides,
    )


def _iter_season_facts(
    folder: SeasonFolder, entrants: SeasonEntrants, recipe: SeasonRecipe, head: str
) -> Iterator[tuple[str, str]]:
    yield "Benchmark", recipe.benchmark.rpartition("/")[2]
    yield "Digest of the benchmark", entrants.digest
    yield "Protocol", entrants.protocol
    yield "Seed", str(entrants.seed)
    cost = sum_cost_usd(folder, entrants)
    yield "Cost", "not reported" if cost is None else f"{cost:,.2f} USD, as far as reported"
    if head:
        yield "Last hash of the log", head


def _read_generation_rows(folder: SeasonFolder) -> list[Mapping[str, Any]]:
    return list(folder.made.rows()) if folder.made.exists() else []


def _iter_clip_details(
    folder: SeasonFolder,
    entrants: SeasonEntrants,
    made: Sequence[Mapping[str, Any]],
    show: Show | None,
) -> Iterator[tuple[str, ClipDetails]]:
    benchmark, controls = open_set(folder), read_controls(folder)
    entries = [row for row in benchmark if isinstance(row, Entry)]
    shown = entrants.shown(entrants.creators)
    rows = {_get_clip_key(row, shown): row for row in made if row["failure_reason"] is None}
    for entry, clip in ClipSurvey(look_table(folder)).find(benchmark, entries):
        maker = controls.get(entry.name) or get_maker(entry.origin)
        row = rows.get((maker, entry.group))
        facts = tuple(_iter_origin_facts(row)) if row else ()
        spec = show(entry, clip) if show and isinstance(clip, Clip) else None
        yield (
            entry.name,
            ClipDetails(
                facts=(*facts, *((("Licence", entry.licence),) if entry.licence else ())),
                cost_usd=_parse_cost_usd(row),
                took_us=row["took_us"] if row else None,
                player=spec,
            ),
        )


def _get_clip_key(row: Mapping[str, Any], shown: Mapping[str, str]) -> tuple[str, str]:
    """Return the creator (by board title) and scene of a row."""
    creator = shown.get(row["name"]) or str(row["creator"])
    is_control = row["side"] == ClipClass.CONTROL.value
    maker = creator if is_control else f"{creator}/{row['setting']}"
    return maker, str(row["scene"])


def _iter_origin_facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Model", str(row["model"] or "")
    yield "Seed", "" if row["seed"] is None else str(row["seed"])
    yield "Parameters", _format_parameters(row["parameters"])
    yield "SHA-256", str(row["sha256"] or "")


def _format_parameters(parameters: str | None) -> str:
    try:
        found = json.loads(parameters or "{}")
    except ValueError:
        return ""
    if not isinstance(found, dict):
        return ""
    return ", ".join(hide_addresses(f"{k} {v}") for k, v in found.items() if k != _SERVICE)


def _parse_cost_usd(row: Mapping[str, Any] | None) -> Decimal | None:
    known = row["cost_usd"] if row else None
    return None if known is None else Decimal(str(known))


def _group_generation_failures(
    made: Sequence[Mapping[str, Any]], entrants: SeasonEntrants
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    shown = entrants.shown(entrants.creators)
    for row in made:
        if row["failure_reason"] is not None:
            maker, scene = _get_clip_key(row, shown)
            why = f"{row['failure_reason']}: {shorten_reason(hide_addresses(row['failure_detail'] or ''))}"
            found.setdefault(maker, {})[scene] = why
    return found


def _read_reviewer_reasons(
    folder: SeasonFolder, entrants: SeasonEntrants, plays: Sequence[AnswerTable]
) -> dict[tuple[str, str, str], str]:
    """Return the reviewers' texts for wrong answers; rule-based reviewers have none."""
    settings, shown = read_settings(), entrants.shown(entrants.reviewers)
    words = {}
    for play in plays:
        made = play.lineup.creator != NOBODY
        truth = dict(zip(play.lineup.clips, made.tolist(), strict=True))
        for reviewer in entrants.reviewers:
            if reviewer.floor:
                continue
            for planned, row, read in read_answers(folder, reviewer, play.condition, settings):
                right = SAID_GENERATED if truth.get(planned.name) else SAID_REAL
                if encode_label(read) != right and isinstance(row["text"], str):
                    words[play.condition, shown[reviewer.name], planned.name] = shorten_reason(
                        row["text"]
                    )
    return words


def _count_attempts(tries: Sequence[TeamAttempts], plays: Sequence[AnswerTable]) -> dict[str, int]:
    """Return the number of submissions of each row's team to that board."""
    return {row: t.submitted for play in plays for t in tries for row in select_team_rows(t, play)}


def _iter_season_notes(
    folder: SeasonFolder, plays: Sequence[AnswerTable], tries: Sequence[TeamAttempts]
) -> Iterator[str]:
    entrants = folder.require_played()
    yield from iter_log_edits(read_log(folder.path))
    yield from iter_gaps(entrants)
    for play in plays:
        yield from iter_similar_reviewers(play, seed=entrants.seed)
        yield from iter_seen_before(folder, play)
    for play in plays[:1]:
        yield from iter_repeated_attempts(play, tries, seed=entrants.seed)


def _iter_plan_facts(
    folder: SeasonFolder, entrants: SeasonEntrants, recipe: SeasonRecipe
) -> Iterator[tuple[str, str]]:
    budget = recipe.budget
    named = (
        ("Questions at most", budget.max_questions),
        ("US dollars at most", budget.max_cost_usd),
        ("Clips at most", budget.max_clips),
    )
    told = [(term, f"{most:,}") for term, most in named if most is not None]
    yield from told
    plan = read_plan(folder)
    if plan is None:
        if told:
            yield "Plan", "the budget was long enough for all questions"
        return
    shown = entrants.shown(entrants.reviewers)
    yield "Plan", f"{len(plan.chosen):,} of {plan.n_due:,} questions, the most informative first"
    for name, count in plan.left.items():
        yield f"Left out of {shown.get(name, name)}", f"{count:,} questions"
