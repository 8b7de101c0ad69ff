"""Dry run of a season: count the clips to make and the questions to send."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from unreel.arena.run.creators import count_pending_clips, find_missing_creator_files
from unreel.arena.run.job import SeasonJob, build_season_entrants, require_known_entrants
from unreel.arena.run.question_plan import (
    SeasonReviewer,
    has_all_shown_clips,
    iter_reviewer_questions,
)
from unreel.arena.run.reviewers import SeasonRunContext, build_season_reviewers
from unreel.arena.season.clip_set import read_current_clip_names
from unreel.arena.season.scenes import assign_scene_file_names, open_season_benchmark
from unreel.core.errors import UnreelError


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrantForecast:
    """Forecast for one entrant: numbers of finished and missing clips or answers."""

    title: str
    n_due: int = 0
    """Number of clips to generate, or of questions to send; the maximum if clips are not generated yet."""
    n_done: int = 0
    n_failed: int = 0
    """Number of failed clips that are not retried; no question is about them."""
    missing_files: tuple[str, ...] = ()
    """Expected files that are missing in a creator's folder; empty if all clips were generated."""
    problem: str = ""
    """Reason why the entrant cannot be opened on this machine; "" if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonForecast:
    """Forecast of `run_season`: clips to generate and questions to send."""

    season: str
    folder: str
    digest: str
    """Hash of the benchmark, for the key `digest` of the recipe."""
    is_pinned: bool
    """Whether the recipe contains this hash."""
    scenes: tuple[str, ...]
    """File names of the scenes, without extension, for creators with a folder of clips."""
    n_real: int
    n_rejected: int
    conditions: tuple[str, ...]
    creators: tuple[EntrantForecast, ...]
    reviewers: tuple[EntrantForecast, ...]
    max_questions: int | None
    max_clips: int | None

    @property
    def n_questions(self) -> int:
        """Return the total number of questions to send."""
        return sum(entrant.n_due for entrant in self.reviewers)

    @property
    def n_clips(self) -> int:
        """Return the total number of clips to generate."""
        return sum(entrant.n_due for entrant in self.creators)


def forecast_season(job: SeasonJob) -> SeasonForecast:
    """Return the clips and questions that `run_season` would make and send. Writes nothing.

    Raises:
        UnreelError: The season or its benchmark cannot be read.
    """
    recipe = job.season.recipe
    require_known_entrants(job)
    scenery = open_season_benchmark(job.season, outside=job.outside)
    asking = job.asking(scenery)
    judges, stumbled = build_season_reviewers(asking)
    entrants = build_season_entrants(asking, judges)
    creators = tuple(_iter_creator_forecasts(job, asking))
    n_held = sum(len(scenery.held(c.held)) for c in entrants.creators if c.held)
    n_made = sum(c.n_due + c.n_done for c in creators) - n_held
    n_real = sum(1 for _ in scenery.real())
    n_clips = n_held + n_made + (0 if entrants.is_about_pairs else n_real)
    current = read_current_clip_names(job.folder, entrants)
    reviewers = [
        _forecast_reviewer(judge, asking, current, n_clips=n_clips)
        for judge in judges
        if job.calls(judge.entered.title)
    ]
    return SeasonForecast(
        season=recipe.name,
        folder=str(job.folder.path),
        digest=scenery.digest,
        is_pinned=recipe.digest == scenery.digest,
        scenes=tuple(assign_scene_file_names(scenery.scenes).values()),
        n_real=n_real,
        n_rejected=scenery.n_rejected,
        conditions=recipe.titles,
        creators=creators,
        reviewers=(
            *reviewers,
            *(EntrantForecast(title=e.title, problem=e.why) for e in stumbled),
        ),
        max_questions=recipe.budget.max_questions,
        max_clips=recipe.budget.max_clips,
    )


def _iter_creator_forecasts(job: SeasonJob, asking: SeasonRunContext) -> Iterator[EntrantForecast]:
    access = asking.access
    for section in job.season.creators:
        if section.held is not None:
            yield EntrantForecast(title=section.name, n_done=len(asking.scenery.held(section.held)))
        elif job.calls(section.name):
            try:
                factory = section.opener(settings=access.settings, trusted=access.trusted)
            except UnreelError as error:
                yield EntrantForecast(title=section.name, problem=str(error))
                continue
            n_all = len(asking.scenery.scenes) * len(factory.settings)
            n_due, n_failed = count_pending_clips(factory, asking)
            n_done = n_all - n_due - n_failed
            yield EntrantForecast(
                title=section.name,
                n_due=n_due,
                n_done=n_done,
                n_failed=n_failed,
                missing_files=find_missing_creator_files(factory, asking)
                if n_due or n_failed
                else (),
            )


def _forecast_reviewer(
    judge: SeasonReviewer, asking: SeasonRunContext, current: Collection[str], *, n_clips: int
) -> EntrantForecast:
    n_all, n_done = n_clips * len(asking.season.recipe.condition), 0
    if current:
        questions = iter_reviewer_questions(
            judge, asking.folder, asking.access, retry=asking.retry_failed
        )
        n_done = sum(q.answered for q in questions if has_all_shown_clips(q.clip, current))
    return EntrantForecast(title=judge.entered.title, n_due=max(0, n_all - n_done), n_done=n_done)
