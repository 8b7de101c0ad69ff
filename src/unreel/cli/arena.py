"""`unreel arena`: competitions between creators and reviewers."""

import sys
from typing import TYPE_CHECKING

import click

from unreel.api import arena as api
from unreel.cli.lazy_group import LazyCommandGroup
from unreel.cli.options import settings_options
from unreel.cli.output import (
    Form,
    echo,
    json_option,
    print_json,
    print_message,
    print_table,
    table_format_option,
)
from unreel.cli.process_signals import add_resume_note_on_stop, limit_malloc_arenas
from unreel.cli.progress import ProgressMeter
from unreel.core.estimate import Estimate, Measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unreel.arena.boards.ablations import AblationEffect, ReviewerBias
    from unreel.arena.boards.leaderboard_metrics import LeaderboardMetric, LeaderboardRow
    from unreel.arena.run.job import EntrantForecast, SeasonForecast
    from unreel.arena.run.outcome import EntrantRunSummary, SeasonOutcome

_MAX_FILES = 10
"""Maximum number of missing files that are named."""
_TERMINAL_METRICS = frozenset(
    {"accuracy", "balanced", "said-real", "answered", "ability", "fakeness", "realism"}
    | {"called-generated", "pair-accuracy", "took-first", "strength", "taken-for-real"}
)
"""Metrics for which a terminal has room; `--json` and `--format` print all."""


@click.group(cls=LazyCommandGroup)
def arena() -> None:
    """Let reviewers judge the clips of creators on one frozen benchmark, and rank both.

    SEASON is a TOML file with the benchmark's hash, the creators, the reviewers and the conditions.
    """


@arena.command(short_help="Write a commented season file for a benchmark.")
@settings_options(api.InitSettings)
@json_option
def init(settings: api.InitSettings, *, as_json: bool) -> None:
    """Write a commented season file for BENCHMARK, with the creators of its clips."""
    creators = api.write_template(settings)
    if as_json:
        print_json({"season": str(settings.out), "creators": creators})
        return
    print_message(f"next: unreel arena plan {settings.out} --pin")
    echo(settings.out)


@arena.command(short_help="Print the clips and questions that a season needs.")
@settings_options(api.PlanSettings)
@click.option(
    "--pin",
    is_flag=True,
    help="Write the hash of the benchmark to the SEASON file. Later runs then reject a changed benchmark.",
)
@json_option
def plan(settings: api.PlanSettings, *, pin: bool, as_json: bool) -> None:
    """Print the clips and questions that SEASON still needs, and the hash of its benchmark.

    Sends nothing and generates no clip.
    """
    with ProgressMeter() as meter:
        meter.tell("counting")
        forecast = api.forecast_season(settings, pin=pin)
    _print_forecast(forecast, pinned=pin, as_json=as_json)


def _print_forecast(forecast: "SeasonForecast", *, pinned: bool, as_json: bool) -> None:
    if as_json:
        totals = {"n_clips_due": forecast.n_clips, "n_questions_due": forecast.n_questions}
        print_json({"plan": forecast, **totals})
        return
    _print_pending_work("creators", "clips due", forecast.creators)
    _print_pending_work("reviewers", "questions due", forecast.reviewers)
    for entrant in (*forecast.creators, *forecast.reviewers):
        if entrant.problem:
            print_message(f"{entrant.title}: {entrant.problem}")
        if entrant.missing_files and not entrant.n_done:
            print_message(
                f"{entrant.title}: warning: its folder lacks {len(entrant.missing_files)} files"
            )
        _print_missing_files(entrant.title, entrant.missing_files)
        if entrant.n_failed:
            print_message(
                f"{entrant.title}: {entrant.n_failed} clips failed; --retry-failed repeats them"
            )
    print_message(
        f"{len(forecast.scenes)} scenes, {forecast.n_real} real clips, conditions: "
        f"{', '.join(forecast.conditions)}",
        f"due: {forecast.n_clips} clips, {forecast.n_questions} questions",
    )
    if forecast.max_questions is not None:
        print_message(f"the budget allows {forecast.max_questions} questions, without baselines")
    if not forecast.is_pinned:
        print_message(
            "the digest was written into the season" if pinned else "write this into the season:"
        )
    echo(f'digest = "{forecast.digest}"')


def _print_pending_work(kind: str, due: str, entrants: "Sequence[EntrantForecast]") -> None:
    rows = [
        {kind: entrant.title, due: entrant.n_due, "there": entrant.n_done} for entrant in entrants
    ]
    print_table((kind, due, "there"), rows)


def _print_missing_files(title: str, files: "Sequence[str]") -> None:
    if files:
        more = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
        print_message(f"{title}: add to its folder: {', '.join(files[:_MAX_FILES])}{more}")


@arena.command(short_help="Audit the clips of an entry before it joins.")
@settings_options(api.CheckSettings)
@json_option
def check(settings: api.CheckSettings, *, as_json: bool) -> None:
    """Audit ENTRY, a folder with one clip for each scene, before it joins a season.

    Checks names, decoding, length, frame rate, size, sound, licence, watermarks, and file properties
    that reveal the label. Sends nothing, and changes nothing.

    Exits with status 1 if the entry has an error.
    """
    audit, n_scenes = api.audit_entry(settings)
    if as_json:
        print_json({"n_clips": audit.n_clips, "findings": audit.findings})
    else:
        for finding in audit.findings:
            print_message(f"{'error' if finding.is_error else 'warning'}: {finding}")
        print_message(f"{audit.n_clips} clips for {n_scenes} scenes")
        echo("errors" if audit.has_errors else "no errors")
    sys.exit(int(audit.has_errors))


@arena.command(short_help="Run a season, or resume it.")
@settings_options(api.RunSettings)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the missing clips and answers. Generate and send nothing.",
)
@json_option
def run(settings: api.RunSettings, *, dry_run: bool, as_json: bool) -> None:
    """Run SEASON: generate the missing clips, and send every missing question to every reviewer.

    SEASON is a TOML file: see docs/arena.md. A second call sends only questions without an answer,
    also after kill -9; for a new creator or reviewer, only its own questions are sent.

    Exits with status 1 if a clip or an answer failed, or a reviewer could not be queried.
    """
    if dry_run:
        with ProgressMeter() as meter:
            meter.tell("reading the season")
            forecast = api.forecast_season(settings)
        _print_forecast(forecast, pinned=False, as_json=as_json)
        return
    with ProgressMeter() as meter:
        meter.tell("getting ready")
        job = api.open_season_job(settings)
        limit_malloc_arenas()
        print_message(*api.describe_contacts(job))
        with add_resume_note_on_stop(job.folder.place.uri, meter):
            outcome = api.run_season_job(job, meter.callbacks())
    _print_outcome(outcome, as_json=as_json)
    sys.exit(1 if outcome.n_failed else 0)


def _print_outcome(outcome: "SeasonOutcome", *, as_json: bool) -> None:
    if as_json:
        plan = outcome.plan
        n_chosen = None if plan is None else {"n_due": plan.n_due, "n_chosen": len(plan.chosen)}
        names = ("season", "folder", "digest", "creators", "reviewers", "n_rejected")
        document = {name: getattr(outcome, name) for name in names}
        print_json(document | {"plan": n_chosen, "cost_usd": outcome.cost_usd})
        return
    entrants = (*outcome.creators, *outcome.reviewers)
    _print_entrant_counts("creators", "clips made", outcome.creators)
    _print_entrant_counts("reviewers", "questions put", outcome.reviewers)
    for summary in entrants:
        for reason, n in sorted(summary.failures.items()):
            print_message(f"{summary.title}: {n} {reason}")
        if summary.failed_before:
            print_message(f"{summary.title}: {summary.failed_before} failed in an earlier call")
        _print_missing_files(summary.title, summary.missing_files)
        if summary.problem:
            print_message(f"{summary.title}: {summary.problem}")
    if outcome.is_stopped:
        print_message(
            "no question was sent: first give every creator a usable clip, or remove it from the season"
        )
    if any(summary.n_failed for summary in entrants):
        print_message("to retry failures, add --retry-failed to this command")
    if outcome.plan is not None:
        chosen, due = len(outcome.plan.chosen), outcome.plan.n_due
        print_message(f"the budget allows {chosen} of {due} questions: see plan.json")
    if outcome.cost_usd is not None:
        print_message(f"cost so far: {outcome.cost_usd:.2f} USD, as far as reported")
    print_message(f"next: unreel arena rank {outcome.folder}")
    echo(outcome.folder)


def _print_entrant_counts(kind: str, done: str, summaries: "Sequence[EntrantRunSummary]") -> None:
    rows = [
        {
            kind: summary.title,
            done: summary.done,
            "failed": summary.n_failed,
            "there before": summary.already,
        }
        for summary in summaries
    ]
    print_table((kind, done, "failed", "there before"), rows)


@arena.command(short_help="Add the votes of people to a season.")
@settings_options(api.PeopleSettings)
@json_option
def people(settings: api.PeopleSettings, *, as_json: bool) -> None:
    """Store human votes with SEASON: `unreel arena rank` then ranks each voter and their majority.

    Without --campaign or --votes, the votes of the benchmark are used. Votes stored before are replaced.
    """
    counts = api.store_votes(settings)
    if as_json:
        print_json(counts)
        return
    print_message(
        f"{counts['n_votes']} votes of {counts['n_people']} people on {counts['n_clips']} clips, from {counts['source']}",
        f"{counts['n_elsewhere']} votes are about clips that the season does not play",
    )


@arena.command(short_help="Rank reviewers and creators.")
@settings_options(api.RankSettings)
@table_format_option
@json_option
def rank(settings: api.RankSettings, *, form: Form, as_json: bool) -> None:
    """Rank the reviewers and creators of SEASON by the stored answers. Sends nothing.

    SEASON is its TOML file, or the folder of the season. Creators of a preference season are ranked by the
    fraction of pairs in which their clip is taken for the real one.
    """
    entrants = api.read_season_entrants(settings)
    boards = api.rank_season(
        settings.season,
        out=settings.out,
        titles=settings.titles,
        resamples=settings.resamples,
        nuisances=settings.nuisances,
    )
    unfitted = {each.title: each.unfitted for each in entrants.reviewers if each.unfitted}
    if as_json:
        document = {name: getattr(entrants, name) for name in ("season", "digest", "protocol")}
        if entrants.is_about_pairs:
            print_json({**document, "preferences": boards})
            return
        more = {"standings": boards, "unfitted": unfitted, "retired": entrants.retired}
        print_json(document | more)
        return
    for board in boards:
        counts, slopes = api.describe_board(board)
        print_message(f"condition {board.condition}: {counts} [95 % interval]")
        _print_leaderboard(
            "reviewer", board.reviewers, api.list_leaderboard_metrics("reviewer"), form=form
        )
        _print_leaderboard(
            "creator", board.creators, api.list_leaderboard_metrics("creator"), form=form
        )
        print_message(*slopes)
    for title, reason in unfitted.items():
        print_message(f"{title} did not take part: {reason}")
    if entrants.retired:
        print_message(f"removed from the season: {', '.join(entrants.retired)}")


def _print_leaderboard(
    kind: str,
    board: "Sequence[LeaderboardRow]",
    metrics: "Sequence[LeaderboardMetric]",
    *,
    form: Form,
) -> None:
    measured = {name for row in board for name in row.figures}
    metrics = [
        metric
        for metric in metrics
        if metric.name in measured and (form != "text" or metric.name in _TERMINAL_METRICS)
    ]
    rows = []
    for row in board:
        notes = {"floor": ["baseline"], "control": ["control"]}.get(row.kind, [])
        if not notes and row.first_class:
            notes = ["first class"]
        if row.lacks:
            notes = [*notes, f"lacks {', '.join(row.lacks)}"]
        cells = {
            metric.name: _format_value_with_interval(
                row.figures.get(metric.name), 2 if metric.unit == "logit" else 1
            )
            for metric in metrics
        }
        rows.append({"rank": row.rank or "", kind: row.name, **cells, "note": "; ".join(notes)})
    columns = ["rank", kind, *(metric.name for metric in metrics), "note"]
    print_table(columns, rows, title=f"{kind}s", form=form)


def _format_value_with_interval(value: Measured | None, places: int) -> str:
    if not isinstance(value, Estimate):
        return ""
    return f"{value.value:.{places}f} [{value.low:.{places}f}, {value.high:.{places}f}]"


@arena.command(short_help="Measure the effect of each changed setting.")
@settings_options(api.AblationSettings)
@table_format_option
@json_option
def ablations(settings: api.AblationSettings, *, form: Form, as_json: bool) -> None:
    """Print the effect of each change on the answers of SEASON: paired differences with intervals.

    Compares conditions that differ in one setting, settings of a creator, and changed real clips with
    the originals, and estimates each reviewer's bias towards "real". Sends nothing.
    """
    season, effects, biases = api.measure_ablations(settings)
    if as_json:
        print_json({"season": season, "ablations": effects, "leanings": biases})
        return
    rows = [_build_ablation_row(effect) for effect in effects]
    columns = ("what", "first", "second", "reviewer", "figure", "first less second", "p")
    title = "ablations: percent [95 % interval], p corrected by Holm"
    print_table((*columns, "pairs", "left out"), rows, title=title, form=form)
    bias_columns = ("condition", "reviewer", "said real", "sensitivity", "criterion")
    title = "biases: a criterion above 0 is a bias towards real"
    print_table(bias_columns, map(_build_bias_row, biases), title=title, form=form)
    if not effects:
        print_message("this season has one condition only: add a second [[condition]] to it")


def _build_ablation_row(effect: "AblationEffect") -> dict[str, object]:
    return {
        "what": effect.knob,
        "first": effect.first,
        "second": effect.second,
        "reviewer": effect.reviewer,
        "figure": effect.figure,
        "first less second": _format_value_with_interval(effect.difference, 1),
        "p": "" if effect.p_corrected is None else f"{effect.p_corrected:.3g}",
        "pairs": effect.n_pairs,
        "left out": effect.n_left_out,
    }


def _build_bias_row(bias: "ReviewerBias") -> dict[str, object]:
    return {
        "condition": bias.condition,
        "reviewer": bias.reviewer,
        "said real": _format_value_with_interval(bias.said_real, 1),
        "sensitivity": _format_value_with_interval(bias.sensitivity, 2),
        "criterion": _format_value_with_interval(bias.criterion, 2),
    }


@arena.command(short_help="Write static web pages about a season.")
@settings_options(api.SiteSettings)
@json_option
def site(settings: api.SiteSettings, *, as_json: bool) -> None:
    """Write static web pages about SEASON: both leaderboards, the detection matrix, and a page per entrant.

    Sends nothing. SEASON is its TOML file, or the folder of the season.
    """
    name, written, n_clips = api.write_site(settings)
    if as_json:
        print_json(written)
        return
    print_message(
        f"season {name}: {written.n_reviewers} reviewers and baselines, {written.n_creators} creators and "
        f"controls, {n_clips} clips to watch"
    )
    echo(written.page)
