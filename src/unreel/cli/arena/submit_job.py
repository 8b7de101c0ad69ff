"""Implementation of `unreel arena submit`, `withdraw` and `log`, imported when they run."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unreel.arena.fairness.holdout import find_hidden_scenes, log_holdout_secret_hash
from unreel.arena.fairness.team_attempts import TeamAttempts, collect_team_attempts
from unreel.arena.season.folder import SeasonFolder, find_season_folder, resolve_season_folder
from unreel.arena.season.recipe import read_season
from unreel.arena.season.scenes import open_season_benchmark, require_benchmark_digest
from unreel.arena.submission.creator_checks import EntryCheckContext
from unreel.arena.submission.entry import read_entry_file
from unreel.arena.submission.season_log import (
    LOG,
    EntryState,
    SeasonLog,
    SeasonLogEvent,
    read_season_log,
)
from unreel.arena.submission.submit import SubmissionResult, submit_team_entry, withdraw_team_entry
from unreel.cli.contacted_services import print_external_reviewers
from unreel.cli.output import Form, echo, print_json, print_message, print_table
from unreel.core.errors import UnreadableSourceError
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import require_sandbox_protection


def submit_entry(options: Mapping[str, Any], *, as_json: bool) -> int:
    """Check an entry of a season, log it as accepted or rejected, print the result; return the status."""
    season = read_season(Path(options["season"]))
    handed = read_entry_file(Path(options["entry"]))
    settings = read_environment_settings()
    if options["weak_cage"]:
        settings = replace(settings, weak_cage=1)
    access = build_clip_access_settings(settings, trusted=options["trusted"])
    require_sandbox_protection(access.settings, trusted=access.trusted)
    scenery = open_season_benchmark(season, outside=options["outside"])
    require_benchmark_digest(season, scenery)
    folder = resolve_season_folder(season, options["out"]).path
    log_holdout_secret_hash(folder, season.recipe, at_us=_read_clock_us())
    grounds = EntryCheckContext(
        recipe=season.recipe,
        scenery=scenery,
        hidden=find_hidden_scenes(folder, season.recipe, scenery.scenes),
        folder=folder,
        access=access,
    )
    print_message(f"checking {handed.recipe.title} against {len(scenery.scenes)} scenes")
    if handed.recipe.reviewer is not None:
        print_external_reviewers([handed.recipe.reviewer], settings)
    outcome = submit_team_entry(handed, grounds, clock=_read_clock_us)
    if as_json:
        print_json(outcome)
    else:
        _print_submission(outcome)
    return 0 if outcome.state is EntryState.ACCEPTED else 1


def _print_submission(outcome: SubmissionResult) -> None:
    for finding in outcome.findings:
        print_message(f"{finding.weight.value}: {finding}")
    nth = f"try {outcome.attempt} of {outcome.team}"
    if outcome.state is EntryState.ACCEPTED:
        print_message(
            f"{outcome.entry} is accepted ({nth}). It plays with the next `unreel arena run`"
        )
    else:
        print_message(
            f"{outcome.entry} is refused ({nth}). Correct the problems above and submit it again"
        )
    print_message(f"the log ends with {outcome.head}")
    echo(outcome.state.value)


def withdraw_entry(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Withdraw an entry of a season, and print a confirmation."""
    folder = _get_season_folder(options).path
    event = withdraw_team_entry(
        folder,
        options["name"],
        reason=options["reason"],
        retire=options["retire"],
        at_us=_read_clock_us(),
    )
    if as_json:
        print_json(event)
    else:
        print_message(f"{event.entry} is withdrawn; its results stay on the boards")
        echo(event.state.value)


def print_checked_season_log(options: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the log of a season; return exit status 1 if a line was edited or removed, otherwise 0."""
    history = read_season_log(_get_season_folder(options).path)
    problem = _find_log_problem(history, options["head"])
    tries = collect_team_attempts(history)
    if as_json:
        print_json(
            {
                "head": history.head,
                "events": history.events,
                "tries": tries,
                "torn": history.torn,
                "problem": problem,
            }
        )
    else:
        _print_log_tables(history, tries, options["form"])
        if problem:
            print_message(problem)
    return 1 if problem else 0


def _find_log_problem(history: SeasonLog, head: str | None) -> str:
    try:
        history.require_whole(head)
    except UnreadableSourceError as error:
        return str(error)
    return ""


def _print_log_tables(history: SeasonLog, tries: tuple[TeamAttempts, ...], form: Form) -> None:
    columns = ("at", "entry", "board", "team", "try", "state", "told")
    print_table(
        columns, [_build_log_event_row(event) for event in history.events], title="log", form=form
    )
    if tries:
        rows = [
            {
                "team": team.team,
                "board": team.kind,
                "tries": team.submitted,
                "accepted": len(team.entries),
                "ranked": team.ranked,
                "not ranked": ", ".join(team.unranked),
            }
            for team in tries
        ]
        print_table(tuple(rows[0]), rows, title="tries", form=form)
    if history.torn:
        print_message(f"line {history.torn[0]} of {LOG} was truncated by a crash and is ignored")
    print_message(f"the log ends with {history.head}")


def _build_log_event_row(event: SeasonLogEvent) -> dict[str, object]:
    return {
        "at": f"{event.when:%Y-%m-%d %H:%M:%S}" if event.when else "",
        "entry": event.entry,
        "board": event.kind,
        "team": event.team,
        "try": event.attempt or "",
        "state": event.state.value,
        "told": "; ".join(event.reasons),
    }


def _get_season_folder(options: Mapping[str, Any]) -> SeasonFolder:
    return find_season_folder(options["season"], options["out"])


def _read_clock_us() -> int:
    return time.time_ns() // 1000
