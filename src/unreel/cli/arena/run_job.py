"""Implementation of `unreel arena run` and `plan`, imported when they run."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unreel.api.arena_job import open_season_job
from unreel.arena.run.job import (
    EntrantForecast,
    SeasonForecast,
    SeasonJob,
    forecast_season,
    run_season,
)
from unreel.arena.run.outcome import EntrantRunSummary, SeasonOutcome
from unreel.cli.contacted_services import (
    print_creator_services,
    print_external_reviewers,
    print_model_servers,
)
from unreel.cli.output import echo, print_json, print_message, print_table
from unreel.cli.process_signals import add_resume_note_on_stop, limit_malloc_arenas
from unreel.cli.progress import ProgressMeter
from unreel.core.output_files import OutputDirectory
from unreel.media.access import require_sandbox_protection

Tell = Callable[[], int]
_MOST_NAMED = 10
_DIGEST = re.compile(r"^digest\s*=.*$", re.MULTILINE)
_BENCHMARK = re.compile(r"^benchmark\s*=.*$", re.MULTILINE)


def run_season_command(meter: ProgressMeter, options: Mapping[str, Any], *, as_json: bool) -> Tell:
    """Run a season; return a function that prints the result and returns the exit status."""
    job = _open_season_job(options)
    limit_malloc_arenas()
    require_sandbox_protection(job.access.settings, trusted=job.access.trusted)
    asked = [each for each in job.season.recipe.judges if job.calls(each.shown)]
    print_model_servers([each.model for each in asked], job.access.settings)
    print_external_reviewers(asked, job.access.settings)
    called = [each for each in job.season.creators if job.calls(each.name)]
    print_creator_services(called, job.access.settings)
    with add_resume_note_on_stop(job.folder.place.uri, meter):
        outcome = run_season(job, meter.callbacks())
    return partial(_print_season_outcome, outcome, as_json=as_json)


def forecast_season_run(meter: ProgressMeter, options: Mapping[str, Any], *, as_json: bool) -> Tell:
    """Count the clips and questions that a season still needs; return a function that prints them."""
    meter.tell("reading the season")
    job = _open_season_job(options)
    foreseen = forecast_season(job)
    if options.get("pin") and not foreseen.is_pinned:
        _write_benchmark_digest(Path(options["season"]), foreseen.digest)
    return partial(
        _print_season_forecast, foreseen, pinned=bool(options.get("pin")), as_json=as_json
    )


def _open_season_job(typed: Mapping[str, Any]) -> SeasonJob:
    options = {name: value for name, value in typed.items() if name not in {"outside", "pin"}}
    return open_season_job(**options, allow_outside=typed["outside"])


def _write_benchmark_digest(file: Path, digest: str) -> None:
    """Write the benchmark's hash into the season file, and change nothing else in it."""
    text, line = file.read_text(encoding="utf-8"), f'digest = "{digest}"'
    if _DIGEST.search(text):
        pinned = _DIGEST.sub(line, text, count=1)
    else:
        pinned = _BENCHMARK.sub(lambda match: f"{match[0]}\n{line}", text, count=1)
    OutputDirectory(file.absolute().parent).write(file.name, pinned.encode())


def _print_season_outcome(outcome: SeasonOutcome, *, as_json: bool) -> int:
    if as_json:
        plan = outcome.plan
        short = None if plan is None else {"n_due": plan.n_due, "n_chosen": len(plan.chosen)}
        print_json(
            {
                "season": outcome.season,
                "folder": outcome.folder,
                "digest": outcome.digest,
                "creators": outcome.creators,
                "reviewers": outcome.reviewers,
                "n_rejected": outcome.n_rejected,
                "plan": short,
                "cost_usd": outcome.cost_usd,
            }
        )
        return 1 if outcome.n_failed else 0
    _print_entrant_counts("creators", "clips made", outcome.creators)
    _print_entrant_counts("reviewers", "questions put", outcome.reviewers)
    _print_entrant_problems((*outcome.creators, *outcome.reviewers))
    if outcome.is_stopped:
        print_message(
            "no question was sent: first give every creator a usable clip, or remove it from the season"
        )
    if any(turn.n_failed for turn in (*outcome.creators, *outcome.reviewers)):
        print_message("to retry failures, add --retry-failed to this command")
    if outcome.plan is not None:
        chosen, due = len(outcome.plan.chosen), outcome.plan.n_due
        print_message(f"the budget allows {chosen} of {due} questions: see plan.json")
    if outcome.cost_usd is not None:
        print_message(f"cost so far: {outcome.cost_usd:.2f} USD, as far as reported")
    print_message(f"next: unreel arena rank {outcome.folder}")
    echo(outcome.folder)
    return 1 if outcome.n_failed else 0


def _print_entrant_counts(what: str, done: str, summaries: Sequence[EntrantRunSummary]) -> None:
    rows = [
        {what: turn.title, done: turn.done, "failed": turn.n_failed, "there before": turn.already}
        for turn in summaries
    ]
    print_table((what, done, "failed", "there before"), rows)


def _print_entrant_problems(summaries: Sequence[EntrantRunSummary]) -> None:
    for turn in summaries:
        for reason, n in sorted(turn.failures.items()):
            print_message(f"{turn.title}: {n} {reason}")
        if turn.failed_before:
            print_message(f"{turn.title}: {turn.failed_before} failed in an earlier call")
        _print_missing_files(turn.title, turn.missing_files)
        if turn.problem:
            print_message(f"{turn.title}: {turn.problem}")


def _print_missing_files(title: str, files: Sequence[str]) -> None:
    if files:
        more = f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
        print_message(f"{title}: add to its folder: {', '.join(files[:_MOST_NAMED])}{more}")


def _print_season_forecast(foreseen: SeasonForecast, *, pinned: bool, as_json: bool) -> int:
    if as_json:
        totals = {"n_clips_due": foreseen.n_clips, "n_questions_due": foreseen.n_questions}
        print_json({"plan": foreseen, **totals})
        return 0
    _print_pending_work("creators", "clips due", foreseen.creators)
    _print_pending_work("reviewers", "questions due", foreseen.reviewers)
    for entrant in (*foreseen.creators, *foreseen.reviewers):
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
        f"{len(foreseen.scenes)} scenes, {foreseen.n_real} real clips, conditions: "
        f"{', '.join(foreseen.conditions)}",
        f"due: {foreseen.n_clips} clips, {foreseen.n_questions} questions",
    )
    if foreseen.max_questions is not None:
        print_message(f"the budget allows {foreseen.max_questions} questions, without baselines")
    if not foreseen.is_pinned:
        print_message(
            "the digest was written into the season" if pinned else "write this into the season:"
        )
    echo(f'digest = "{foreseen.digest}"')
    return 0


def _print_pending_work(what: str, due: str, entrants: Sequence[EntrantForecast]) -> None:
    rows = [{what: e.title, due: e.n_due, "there": e.n_done} for e in entrants]
    print_table((what, due, "there"), rows)
