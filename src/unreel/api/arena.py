"""Seasons: creators against reviewers on one benchmark, and their leaderboards."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unreel.api.annotation import LedgerSettings, open_campaign
from unreel.api.shared_settings import (
    EngineSettings,
    ResampleSettings,
    TableSettings,
    TrustSettings,
)
from unreel.core.command_options import NEW_FILE, Option
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import needs_extra
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks, OnStep

if TYPE_CHECKING:
    from unreel.arena.boards.ablations import AblationEffect, ReviewerBias
    from unreel.arena.boards.leaderboard_metrics import LeaderboardMetric, SeasonLeaderboard
    from unreel.arena.boards.preference_ranking import PreferenceRates
    from unreel.arena.entry_check import EntryAudit
    from unreel.arena.run.job import SeasonForecast, SeasonJob
    from unreel.arena.run.outcome import SeasonOutcome
    from unreel.arena.season.folder import SeasonEntrants
    from unreel.report.season.site import WrittenSeasonSite

_DIGEST = re.compile(r"^digest\s*=.*$", re.MULTILINE)
_BENCHMARK = re.compile(r"^benchmark\s*=.*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SeasonSettings:
    """Settings of a command about one season."""

    season: Annotated[str, Option(is_argument=True, kind="benchmark")]
    out: Annotated[str | None, Option(metavar="FOLDER")] = None
    """Folder of the season, with its clips and answers.  [default: seasons/NAME]"""


@dataclass(frozen=True, kw_only=True)
class PlanSettings(TableSettings, SeasonSettings):
    """Settings of `forecast_season`."""

    only: Annotated[tuple[str, ...], Option(metavar="NAME")] = ()
    """Name of a creator or reviewer to include; all others are omitted. Repeatable.  [default: all]"""


@dataclass(frozen=True, kw_only=True)
class RunSettings(TrustSettings, EngineSettings, PlanSettings):
    """Settings of `run_season`."""

    retry_failed: bool = False
    """Retry the clips and answers that failed in earlier calls."""


def run_season(
    season: str | Path,
    *,
    out: str | Path | None = None,
    only: Collection[str] = (),
    engine: Literal["local", "ray"] = "local",
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
    settings = RunSettings(
        season=str(season),
        out=None if out is None else str(out),
        only=tuple(only),
        engine=engine,
        retry_failed=retry_failed,
        allow_outside=allow_outside,
        trusted=trusted,
    )
    callbacks = JobCallbacks(on_step=on_progress) if on_progress else NO_CALLBACKS
    return run_season_job(open_season_job(settings), callbacks)


def open_season_job(settings: PlanSettings) -> "SeasonJob":
    """Read the season, and return the job that runs it.

    Raises:
        InvalidSettingError: The folder of the season has submitted entries, which are not read.
    """
    with needs_extra("eval"):
        from unreel.arena.run.job import SeasonJob
        from unreel.arena.season.folder import read_season, resolve_season_folder
        from unreel.engine.run import ALL_FAILURES
        from unreel.engine.storage_access import build_clip_access_settings

    season = read_season(Path(settings.season))
    folder = resolve_season_folder(season, settings.out)
    if OutputDirectory(folder.path).files("entries"):
        raise InvalidSettingError(
            "entries",
            f"{folder.path / 'entries'} has submitted entries",
            "Write their creators and reviewers into the season file, and move the folder away",
        )
    run = settings if isinstance(settings, RunSettings) else RunSettings(season=settings.season)
    return SeasonJob(
        season=season,
        folder=folder,
        access=build_clip_access_settings(read_environment_settings(), trusted=run.trusted),
        outside=settings.allow_outside,
        engine=run.engine,
        retry_failed=ALL_FAILURES if run.retry_failed else frozenset(),
        only=frozenset(settings.only),
    )


def describe_contacts(job: "SeasonJob") -> Iterator[str]:
    """Yield one line for each server, service and program that a season will use."""
    from unreel.api.contacts import (
        describe_creator_services,
        describe_external_reviewers,
        describe_model_servers,
    )

    environment = job.access.settings
    reviewers = [reviewer for reviewer in job.season.recipe.judges if job.calls(reviewer.shown)]
    yield from describe_model_servers([reviewer.model for reviewer in reviewers], environment)
    yield from describe_external_reviewers(reviewers, environment)
    creators = [creator for creator in job.season.creators if job.calls(creator.name)]
    yield from describe_creator_services(creators, environment)


def run_season_job(job: "SeasonJob", callbacks: JobCallbacks) -> "SeasonOutcome":
    """Run an open season."""
    from unreel.arena.run.job import run_season
    from unreel.media.access import require_sandbox_protection

    require_sandbox_protection(job.access.settings, trusted=job.access.trusted)
    return run_season(job, callbacks)


def forecast_season(settings: PlanSettings, *, pin: bool = False) -> "SeasonForecast":
    """Count the clips and questions that a season still needs.

    With `pin`, the hash of the benchmark is written into the season file, and nothing else is changed.
    """
    job = open_season_job(settings)
    from unreel.arena.run.job import forecast_season

    forecast = forecast_season(job)
    if pin and not forecast.is_pinned:
        file = Path(settings.season)
        text, line = file.read_text(encoding="utf-8"), f'digest = "{forecast.digest}"'
        if _DIGEST.search(text):
            pinned = _DIGEST.sub(line, text, count=1)
        else:
            pinned = _BENCHMARK.sub(lambda match: f"{match[0]}\n{line}", text, count=1)
        OutputDirectory(file.absolute().parent).write(file.name, pinned.encode())
    return forecast


@dataclass(frozen=True, kw_only=True)
class RankSettings(ResampleSettings, SeasonSettings):
    """Settings of `rank_season`."""

    titles: Annotated[tuple[str, ...], Option(name="--title", metavar="TITLE")] = ()
    """Title of a condition to rank. Repeatable.  [default: all conditions]"""
    nuisances: Annotated[tuple[str, ...], Option(name="--nuisance", metavar="NAME")] = ()
    """Clip property for which the ranking is adjusted: length, resolution or sound. Repeatable."""


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
    with needs_extra("eval"):
        from unreel.arena.boards import ranking
        from unreel.arena.season.folder import find_season_folder

    folder = find_season_folder(season, out)
    if folder.require_played().is_about_pairs:
        boards = ranking.iter_pair_answers_and_leaderboards(folder, titles)
        return tuple(preferences for _, preferences in boards)
    options = {} if resamples is None else {"resamples": resamples}
    ranked = ranking.iter_season_leaderboards(folder, titles, nuisances=nuisances, **options)
    return tuple(leaderboard for _, leaderboard in ranked)


def describe_board(board: "SeasonLeaderboard | PreferenceRates") -> tuple[str, Sequence[str]]:
    """Return, as texts, the counts and unit of a leaderboard, and the slope of each nuisance property."""
    from unreel.arena.boards.leaderboard_metrics import SeasonLeaderboard

    if not isinstance(board, SeasonLeaderboard):
        return "pairs; percent taken for real", ()
    slopes = [
        f"{name} adds to the log-odds of generated, for each standard deviation: {slope}"
        for name, slope in board.sway.items()
    ]
    return f"{board.n_scenes} scenes, {board.n_resamples} resamples; percent", slopes


def read_season_entrants(settings: SeasonSettings) -> "SeasonEntrants":
    """Return the entrants of a season that was run."""
    with needs_extra("eval"):
        from unreel.arena.season.folder import find_season_folder

    return find_season_folder(settings.season, settings.out).require_played()


def list_leaderboard_metrics(kind: Literal["reviewer", "creator"]) -> "list[LeaderboardMetric]":
    """Return the metrics of the leaderboard of reviewers or creators, in order."""
    from unreel.arena.boards.leaderboard_metrics import CREATOR_METRICS, REVIEWER_METRICS

    return [*(REVIEWER_METRICS if kind == "reviewer" else CREATOR_METRICS).values()]


@dataclass(frozen=True, kw_only=True)
class AblationSettings(SeasonSettings):
    """Settings of `measure_ablations`."""

    against: Annotated[str | None, Option(metavar="SEASON")] = None
    """Folder of another season with the same clips. The answers of both seasons are compared."""


def measure_ablations(
    settings: AblationSettings,
) -> "tuple[str, list[AblationEffect], list[ReviewerBias]]":
    """Return the season's name, the effect of each changed setting, and the bias of each reviewer.

    Raises:
        InvalidSettingError: The other season has no condition with the same title.
    """
    with needs_extra("eval"):
        from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
        from unreel.arena.boards.ablations import (
            compare_answer_tables,
            measure_ablation_effects,
            measure_reviewer_biases,
        )
        from unreel.arena.boards.preference_ranking import compare_pairs_with_single_clips
        from unreel.arena.boards.ranking import read_pair_answers
        from unreel.arena.season.folder import find_season_folder, read_stored_season_recipe

    folder = find_season_folder(settings.season, settings.out)
    recipe, entrants = read_stored_season_recipe(folder), folder.require_played()
    clips = read_season_clips(folder)
    tables = [read_season_answers(folder, title, clips=clips) for title in entrants.conditions]
    effects = list(measure_ablation_effects(tables, knobs=recipe.knobs))
    if settings.against:
        other_folder = find_season_folder(settings.against)
        other = other_folder.require_played()
        n_before = len(effects)
        for answers in tables:
            # A condition is compared with that of equal title, or with the only one.
            title = (
                answers.condition if answers.condition in other.conditions else other.conditions[0]
            )
            if title != answers.condition and len(other.conditions) > 1:
                continue
            if other.is_about_pairs:
                pairs = read_pair_answers(other_folder, title)
                effects += compare_pairs_with_single_clips(pairs, answers)
            else:
                other_answers = read_season_answers(other_folder, title)
                effects += compare_answer_tables(
                    answers, other_answers, knob=f"against {settings.against}"
                )
        if len(effects) == n_before:
            raise InvalidSettingError(
                "--against",
                f"no condition of {settings.against} has a title of this season's",
                "Give both the same titles",
            )
    biases = [bias for answers in tables for bias in measure_reviewer_biases(answers)]
    return recipe.name, effects, biases


@dataclass(frozen=True, kw_only=True)
class PeopleSettings(LedgerSettings, SeasonSettings):
    """Settings of `store_votes`."""

    campaign: Annotated[str | None, Option(metavar="NAME")] = None
    """Annotation campaign whose votes are read from the ledger."""
    votes: Annotated[str | None, Option(kind="benchmark", metavar="FILE")] = None
    """CSV or Parquet table of votes, with the columns name (of the clip), voter and label."""
    named: bool = False
    """Show the names of the annotators of --campaign instead of aliases such as annotator-1."""


def store_votes(settings: PeopleSettings) -> dict[str, Any]:
    """Store the votes about a season's clips in its folder; return the numbers of stored and other votes.

    Raises:
        InvalidSettingError: No vote is about a clip of the season, or votes come from two places.
    """
    with needs_extra("eval"):
        from unreel.arena.answers.season_answers import (
            HumanClipVote,
            iter_benchmark_votes,
            read_campaign_votes,
            write_season_votes,
        )
        from unreel.arena.season.folder import find_season_folder
        from unreel.arena.season.scenes import open_season_clip_set
        from unreel.benchmarks.entry import Entry
        from unreel.benchmarks.votes import join_votes_with_entries

    if settings.campaign and settings.votes:
        raise InvalidSettingError(
            "--votes", "votes are taken from one place at a time", "Leave out --votes or --campaign"
        )
    folder = find_season_folder(settings.season, settings.out)
    folder.require_played()
    entries = [row for row in open_season_clip_set(folder) if isinstance(row, Entry)]
    if settings.campaign:
        source = f"campaign {settings.campaign}"
        campaign = open_campaign(settings.campaign, ledger=settings.ledger)
        votes = read_campaign_votes(campaign.records, named=settings.named)
    elif settings.votes:
        source = Path(settings.votes).name
        joined = join_votes_with_entries(open_season_clip_set(folder), Path(settings.votes))
        votes = [
            HumanClipVote(entry.name, vote.voter, vote.label)
            for entry, entry_votes in joined.ballots
            for vote in entry_votes
        ]
    else:
        source, votes = "the benchmark", list(iter_benchmark_votes(entries))
    names = {entry.name for entry in entries}
    stored = [vote for vote in votes if vote.clip in names]
    if not stored:
        raise InvalidSettingError(
            "votes",
            f"no vote of {source} is about a clip of the season",
            "Ask people about the clips in the season's folder `set`, or name other votes",
        )
    write_season_votes(folder, source, stored)
    return {
        "source": source,
        "n_people": len({vote.voter for vote in stored}),
        "n_votes": len(stored),
        "n_clips": len({vote.clip for vote in stored}),
        "n_elsewhere": len(votes) - len(stored),
    }


@dataclass(frozen=True, kw_only=True)
class CheckSettings(TrustSettings, TableSettings):
    """Settings of `audit_entry`."""

    entry: Annotated[Path, Option(is_argument=True, kind="existing folder")]
    season: Annotated[Path, NEW_FILE] = Path("season.toml")
    """File of the season, whose scenes and real clips the entry is compared with."""


def audit_entry(settings: CheckSettings) -> "tuple[EntryAudit, int]":
    """Audit the clips of an entry; return the audit and the number of scenes."""
    with needs_extra("curate"):
        from unreel.arena.entry_check import audit_entry_clips
        from unreel.arena.season.folder import read_season
        from unreel.arena.season.scenes import open_season_benchmark, require_benchmark_digest
        from unreel.engine.storage_access import build_clip_access_settings
        from unreel.media.access import require_sandbox_protection

    season = read_season(settings.season)
    access = build_clip_access_settings(read_environment_settings(), trusted=settings.trusted)
    require_sandbox_protection(access.settings, trusted=access.trusted)
    benchmark = open_season_benchmark(season, outside=settings.allow_outside)
    require_benchmark_digest(season, benchmark)
    audit = audit_entry_clips(settings.entry, benchmark, access, seed=season.recipe.seed)
    return audit, len(benchmark.scenes)


@dataclass(frozen=True, kw_only=True)
class SiteSettings(ResampleSettings):
    """Settings of `write_site`."""

    season: Annotated[str, Option(is_argument=True, kind="benchmark")]
    out: Annotated[Path, Option(kind="folder")] = Path("site")
    """Output folder for the pages."""
    media: Literal["licensed", "link", "copy", "none"] = "licensed"
    """How clips get into the output folder; they are never re-encoded. licensed: copies of the clips whose licence allows it; link: links to the files; copy: copies; none: no clips."""


def write_site(settings: SiteSettings) -> "tuple[str, WrittenSeasonSite, int]":
    """Write the static pages of a season; return its name, the pages, and the number of clips to watch."""
    with needs_extra("eval"):
        from unreel.arena.season.folder import find_season_folder
        from unreel.engine.storage_access import build_clip_access_settings
        from unreel.report.clips.clip_files import ReportMediaFolder
        from unreel.report.season.read_season import build_clip_publisher, read_season_page_data
        from unreel.report.season.site import write_season_site
        from unreel.stats.resampling import RESAMPLES

    media = ReportMediaFolder(
        out=OutputDirectory(settings.out, published=True),
        media="copy" if settings.media == "licensed" else settings.media,
        access=build_clip_access_settings(read_environment_settings()),
    )
    season = read_season_page_data(
        find_season_folder(settings.season),
        resamples=settings.resamples or RESAMPLES,
        show=None if settings.media == "none" else build_clip_publisher(media, settings.media),
    )
    return season.name, write_season_site(season, settings.out), len(media.placed)


@dataclass(frozen=True, kw_only=True)
class InitSettings:
    """Settings of `write_template`."""

    benchmark: Annotated[Path, Option(is_argument=True, kind="existing")]
    out: Annotated[Path, NEW_FILE] = Path("season.toml")
    """Season file to write. An existing file is never replaced."""


def write_template(settings: InitSettings) -> Sequence[str]:
    """Write a commented season file for a benchmark; return the creators of its clips."""
    from unreel.arena.season.folder import write_season_template

    return write_season_template(settings.benchmark, settings.out)
