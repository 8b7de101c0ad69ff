"""Implementation of `run_season`; it is imported only when `run_season` is called."""

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from unreel.arena.fairness.holdout import log_holdout_secret_hash
from unreel.arena.run.job import SeasonJob, run_season
from unreel.arena.run.outcome import SeasonOutcome
from unreel.arena.season.folder import resolve_season_folder
from unreel.arena.season.recipe import read_season
from unreel.arena.submission.entry import add_accepted_entries, log_played_entries
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import JobCallbacks
from unreel.engine.run import ALL_FAILURES
from unreel.engine.storage_access import build_clip_access_settings


def open_season_job(  # noqa: PLR0913  one parameter for each option
    season: str | Path,
    *,
    out: str | Path | None,
    only: Collection[str],
    allow_outside: bool,
    engine: str = "local",
    retry_failed: bool = False,
    weak_cage: bool = False,
    trusted: bool = False,
) -> SeasonJob:
    """Read the season with its accepted entries, and return the job that runs it."""
    read = read_season(Path(season))
    folder, settings = resolve_season_folder(read, out), read_environment_settings()
    return SeasonJob(
        season=add_accepted_entries(read, folder.path),
        folder=folder,
        access=build_clip_access_settings(
            replace(settings, weak_cage=1) if weak_cage else settings, trusted=trusted
        ),
        outside=allow_outside,
        engine=engine,
        retry_failed=ALL_FAILURES if retry_failed else frozenset(),
        only=frozenset(only),
    )


def run_season_job(job: SeasonJob, callbacks: JobCallbacks) -> SeasonOutcome:
    """Run the season of the job, and record in its log which entries took part."""
    log_holdout_secret_hash(job.folder.path, job.season.recipe, at_us=time.time_ns() // 1000)
    outcome = run_season(job, callbacks)
    turns = (*outcome.creators, *outcome.reviewers)
    played = {turn.title for turn in turns if not turn.problem}
    log_played_entries(job.folder.path, played, at_us=time.time_ns() // 1000)
    return outcome
