"""`run_season` and `rank_season`: a season and its leaderboards, from Python."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unreel.core.registry import LazyImport
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks, OnStep
from unreel.media.access import require_sandbox_protection

if TYPE_CHECKING:
    from unreel.arena.boards.leaderboard_metrics import SeasonLeaderboard
    from unreel.arena.boards.preference_ranking import PreferenceRates
    from unreel.arena.run.outcome import SeasonOutcome


def run_season(
    season: str | Path,
    *,
    out: str | Path | None = None,
    only: Collection[str] = (),
    engine: str = "local",
    retry_failed: bool = False,
    allow_outside: bool = False,
    trusted: bool = False,
    on_progress: OnStep | None = None,
) -> "SeasonOutcome":
    """Make the missing clips of a season, and send every missing question to every reviewer.

    A second call sends only questions without an answer, also after a crash.

    Args:
        season: TOML file of the season.
        out: Folder of the season; `seasons/NAME` by default.
        only: Run only these creators and reviewers; all by default.
        engine: `local` or `ray`.
        retry_failed: Retry failed clips and answers.
        allow_outside: Let the benchmark name files outside its folder; only for your own tables.
        trusted: Open clips in this process; by default a confined child does.
        on_progress: Callback with a part and its progress, called from another thread.

    Raises:
        InvalidSettingError: The season has an unsupported setting.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No entrant has a name of `only`.
        UnreadableSourceError: The season or its benchmark cannot be read, or the benchmark changed.
    """
    open_job = LazyImport("unreel.api.arena_job:open_season_job", "eval").load()
    run_job = LazyImport("unreel.arena.run.job:run_season", "eval").load()
    job = open_job(
        season,
        out=out,
        only=only,
        engine=engine,
        retry_failed=retry_failed,
        allow_outside=allow_outside,
        trusted=trusted,
    )
    require_sandbox_protection(job.access.settings, trusted=trusted)
    callbacks = JobCallbacks(on_step=on_progress) if on_progress else NO_CALLBACKS
    outcome: SeasonOutcome = run_job(job, callbacks)
    return outcome


def rank_season(
    season: str | Path,
    *,
    out: str | Path | None = None,
    titles: Sequence[str] = (),
    resamples: int | None = None,
    nuisances: Sequence[str] = (),
) -> "tuple[SeasonLeaderboard, ...] | tuple[PreferenceRates, ...]":
    """Rank the reviewers and creators of a season by the stored answers; no question is sent.

    There is one result for each condition: `PreferenceRates` if the season shows pairs.

    Args:
        season: Folder of the season, or its TOML file.
        out: Folder of the season, if `season` is a file; `seasons/NAME` by default.
        titles: Titles of the conditions to rank; all by default.
        resamples: Number of bootstrap resamples (over scenes); not for `preference`.
        nuisances: Properties that the skill model adds: clip length, resolution or sound.

    Raises:
        MissingExtraError: A required package is not installed.
        UnknownNameError: No condition has that title.
        UnreadableSourceError: The season was not run.
    """
    find_folder = LazyImport("unreel.arena.season.folder:find_season_folder", "eval").load()
    from unreel.arena.boards import ranking

    folder = find_folder(season, out)
    if folder.require_played().is_about_pairs:
        boards = ranking.iter_pair_answers_and_leaderboards(folder, titles)
        return tuple(preferences for _, preferences in boards)
    options = {} if resamples is None else {"resamples": resamples}
    ranked = ranking.iter_season_leaderboards(folder, titles, nuisances=nuisances, **options)
    return tuple(leaderboard for _, leaderboard in ranked)
