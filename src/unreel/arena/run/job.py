"""Run of a season: generate missing clips, rewrite the clip set, and send missing questions."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from unreel.arena.run.budget import (
    compute_remaining_budget_usd,
    count_requested_clips,
    limit_reviewer_cost,
    plan_budgeted_questions,
    sum_season_cost_usd,
)
from unreel.arena.run.creators import (
    UNPAID,
    build_season_creators,
    count_pending_clips,
    find_first_clip_failure,
    find_missing_creator_files,
    generate_missing_clips,
    get_start_log_path,
)
from unreel.arena.run.outcome import EntrantRunSummary, SeasonOutcome
from unreel.arena.run.question_plan import QuestionPlan, SeasonReviewer, has_all_shown_clips
from unreel.arena.run.reviewers import (
    FailedEntrant,
    SeasonRunContext,
    ask_season_reviewer,
    build_season_reviewers,
)
from unreel.arena.season.clip_set import rebuild_season_clip_set
from unreel.arena.season.folder import RECIPE, EnteredReviewer, SeasonEntrants, SeasonFolder
from unreel.arena.season.recipe import Season
from unreel.arena.season.scenes import (
    SeasonBenchmark,
    open_season_benchmark,
    require_benchmark_digest,
)
from unreel.core.errors import (
    InvalidSettingError,
    KeyRejectedError,
    MissingExtraError,
    UnknownNameError,
    UnreadableSourceError,
)
from unreel.creators.config import CreatorRecipeSection
from unreel.engine.clip_facts import ClipProbeStage, iter_clip_file_rows
from unreel.engine.location import translate_store_errors
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.writer_lock import build_writer_lock

DRIVER: Final = "season"
"""Name of the lock of a running season: a second run is rejected before it changes anything."""
_OF_ONE: Final = (KeyRejectedError, InvalidSettingError, UnreadableSourceError, MissingExtraError)
"""Errors that stop only one entrant; all others stop the season."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonJob:
    """Season to run, with its directory, storage access and run settings."""

    season: Season
    folder: SeasonFolder
    access: ClipAccessSettings
    outside: bool = False
    """Whether the benchmark's table may name files outside its folder."""
    engine: str = "local"
    """Engine that sends questions, `local` or `ray`; clips are generated on this machine."""
    retry_failed: Collection[str] = ()
    only: frozenset[str] = frozenset()
    """Titles of the entrants to run; all if empty."""

    def asking(self, scenery: SeasonBenchmark) -> SeasonRunContext:
        """Return the context of a season's run with the opened benchmark `scenery`."""
        return SeasonRunContext(
            season=self.season,
            scenery=scenery,
            folder=self.folder,
            access=self.access,
            engine=self.engine,
            retry_failed=self.retry_failed,
        )

    def calls(self, title: str) -> bool:
        """Return whether the entrant with that title is selected for this run."""
        return not self.only or title in self.only


@translate_store_errors()
def run_season(job: SeasonJob, callbacks: JobCallbacks = NO_CALLBACKS) -> SeasonOutcome:
    """Generate the missing clips, then send every reviewer its unanswered questions.

    No reviewer is queried while a creator has no usable clip, and no creator while the folder of
    another one contains none of its files.

    After a kill at any time, the next call resumes: no clip is paid twice, and no answer is
    requested again.

    Raises:
        UnreelError: The benchmark differs from the season's, or another process runs the season.
    """
    recipe, folder = job.season.recipe, job.folder
    require_known_entrants(job)
    callbacks.on_phase(f"reading {recipe.benchmark}")
    scenery = open_season_benchmark(job.season, outside=job.outside)
    require_benchmark_digest(job.season, scenery)
    asking = job.asking(scenery)
    with build_writer_lock(folder.place / DRIVER):
        folder.place.put(RECIPE, job.season.text)
        judges, stumbled = build_season_reviewers(asking)
        entrants = build_season_entrants(asking, judges)
        folder.keep_entrants(entrants)
        _probe_benchmark_files(asking, entrants, callbacks)
        created = tuple(_generate_all_clips(job, asking, entrants, callbacks))
        if any(turn.problem for turn in created):
            judges, stumbled = [], []
        callbacks.on_phase("gathering the clips")
        current = rebuild_season_clip_set(folder, scenery, entrants, job.access)
        called = [j for j in judges if job.calls(j.entered.title)]
        plan = plan_budgeted_questions(called, asking, entrants, current)
        turns = tuple(
            _ask_all_reviewers(
                called, asking, entrants, _build_question_filter(plan, current), callbacks
            )
        )
        folder.keep_entrants(_add_unfitted_baseline_reasons(entrants, turns))
    return SeasonOutcome(
        season=recipe.name,
        folder=str(folder.path),
        digest=scenery.digest,
        creators=created,
        reviewers=(
            *turns,
            *(EntrantRunSummary(title=e.title, problem=e.why) for e in stumbled),
        ),
        n_rejected=scenery.n_rejected,
        plan=plan,
        cost_usd=sum_season_cost_usd(folder, entrants),
    )


def require_known_entrants(job: SeasonJob) -> None:
    """Raise `UnknownNameError` if a title in `only` belongs to no entrant."""
    recipe = job.season.recipe
    known = [entry.name for entry in recipe.creator] + [entry.shown for entry in recipe.judges]
    for title in sorted(job.only.difference(known)):
        kind = "entrant"
        raise UnknownNameError(kind, title, known)


def build_season_entrants(
    asking: SeasonRunContext, judges: Sequence[SeasonReviewer]
) -> SeasonEntrants:
    """Return the entrants in the recipe of a season, and earlier ones that the recipe no longer names."""
    recipe, before = asking.season.recipe, asking.folder.entrants()
    named = [judge.entered for judge in judges]
    names = {entrant.name for entrant in named}
    gone = [entrant for entrant in before.reviewers if entrant.name not in names]
    return SeasonEntrants(
        season=recipe.name,
        protocol=recipe.protocol,
        digest=asking.scenery.digest,
        seed=recipe.seed,
        conditions=recipe.titles,
        creators=build_season_creators(asking.season.creators, before.creators),
        reviewers=(*named, *(entrant.model_copy(update={"retired": True}) for entrant in gone)),
    )


def _probe_benchmark_files(
    asking: SeasonRunContext, entrants: SeasonEntrants, callbacks: JobCallbacks
) -> None:
    """Probe the benchmark's files that the season needs: real clips, creators' clips, training clips."""
    scenery, folder = asking.scenery, asking.folder
    callbacks.on_phase("looking at the benchmark")
    clips = (entry for creator in entrants.creators for entry in scenery.held(creator.held))
    lessons = scenery.lessons if any(judge.floor for judge in entrants.reviewers) else ()
    run_stages(
        iter_clip_file_rows(scenery.benchmark, [*scenery.real(), *clips, *lessons], asking.access),
        [ClipProbeStage(asking.access)],
        table=folder.benchmark_clips,
        ledger=get_start_log_path(folder, "benchmark"),
        observe=lambda step, n_rows: callbacks.observe(f"benchmark-{step}", n_rows),
    )


def _generate_all_clips(
    job: SeasonJob, asking: SeasonRunContext, entrants: SeasonEntrants, callbacks: JobCallbacks
) -> Iterator[EntrantRunSummary]:
    called = [c for c in job.season.creators if c.held is not None or job.calls(c.name)]
    checked = [_check_creator_clips(section, asking) for section in called]
    if any(turn.problem for turn in checked):
        yield from checked
        return
    for section, turn in zip(called, checked, strict=True):
        if section.held is not None:
            yield turn
        else:
            callbacks.on_begin(section.name)
            yield _make_creator_clips(section, asking, entrants, callbacks)


def _check_creator_clips(
    section: CreatorRecipeSection, asking: SeasonRunContext
) -> EntrantRunSummary:
    """Count the clips of a creator before the run, and find a problem that prevents the run."""
    title, access = section.name, asking.access
    if section.held is not None:
        n_held = len(asking.scenery.held(section.held))
        known = ", ".join(asking.scenery.creators()[:10]) or "nobody"
        lacks = f"the benchmark has no clip of {section.held!r}. It has clips of {known}"
        return EntrantRunSummary(title=title, already=n_held, problem="" if n_held else lacks)
    try:
        factory = section.opener(settings=access.settings, trusted=access.trusted)
        n_due, n_failed = count_pending_clips(factory, asking)
        missing = find_missing_creator_files(factory, asking) if n_due or n_failed else ()
    except _OF_ONE as error:
        return EntrantRunSummary(title=title, problem=str(error))
    n_all = len(asking.scenery.scenes) * len(factory.settings)
    problem = f"its folder contains none of the {n_all} expected files"
    return EntrantRunSummary(
        title=title,
        already=n_all - n_due - n_failed,
        failed_before=n_failed,
        missing_files=missing,
        problem=problem if n_due and len(missing) == n_all else "",
    )


def _make_creator_clips(
    section: CreatorRecipeSection,
    asking: SeasonRunContext,
    entrants: SeasonEntrants,
    callbacks: JobCallbacks,
) -> EntrantRunSummary:
    budget, folder, access = asking.season.recipe.budget, asking.folder, asking.access
    limit = (
        None
        if budget.max_clips is None
        else max(0, budget.max_clips - count_requested_clips(folder))
    )
    try:
        factory = section.opener(settings=access.settings, trusted=access.trusted)
        _, failed_before = count_pending_clips(factory, asking)
        done, n_due = generate_missing_clips(
            factory,
            asking,
            limit=limit,
            left_usd=compute_remaining_budget_usd(folder, entrants, budget),
            callbacks=callbacks,
        )
    except _OF_ONE as error:
        return EntrantRunSummary(title=section.name, problem=str(error))
    n_all = len(asking.scenery.scenes) * len(factory.settings)
    turn = EntrantRunSummary(
        title=section.name,
        done=done.done,
        already=n_all - n_due - failed_before,
        failures=done.failures,
        failed_before=failed_before,
    )
    if not turn.n_failed:
        return turn
    is_unusable = not turn.done + turn.already and bool(
        failed_before or set(done.failures) - UNPAID
    )
    problem = f"none of its {n_all} clips can be used ({find_first_clip_failure(factory, asking)})"
    missing = find_missing_creator_files(factory, asking)
    return replace(turn, missing_files=missing, problem=problem if is_unusable else "")


def _build_question_filter(
    plan: QuestionPlan | None, current: Collection[str]
) -> Callable[[EnteredReviewer], Callable[[str, str], bool]]:
    """Return a function from a reviewer to its filter: condition and clip name to "send it"."""

    def of(reviewer: EnteredReviewer) -> Callable[[str, str], bool]:
        chosen = None if plan is None or reviewer.floor else plan.wants(reviewer.name)
        return lambda how, clip: (
            has_all_shown_clips(clip, current) and (chosen is None or (how, clip) in chosen)
        )

    return of


def _ask_all_reviewers(
    judges: Sequence[SeasonReviewer],
    asking: SeasonRunContext,
    entrants: SeasonEntrants,
    wanted: Callable[[EnteredReviewer], Callable[[str, str], bool]],
    callbacks: JobCallbacks,
) -> Iterator[EntrantRunSummary]:
    for number, judge in enumerate(judges, start=1):
        title = judge.entered.title
        callbacks.on_begin(f"{number} of {len(judges)}, {title}")
        try:
            within = limit_reviewer_cost(judge, asking, entrants)
            result = ask_season_reviewer(
                within, asking, wants=wanted(judge.entered), callbacks=callbacks
            )
        except _OF_ONE as error:
            result = FailedEntrant(title, str(error))
        if isinstance(result, FailedEntrant):
            yield EntrantRunSummary(title=title, problem=result.why)
        else:
            yield EntrantRunSummary(
                title=title,
                done=result.done,
                already=result.already - result.failed_before,
                failures=result.failures,
                failed_before=result.failed_before,
            )


def _add_unfitted_baseline_reasons(
    entrants: SeasonEntrants, turns: Sequence[EntrantRunSummary]
) -> SeasonEntrants:
    """Return the entrants, with a reason added to each baseline that could not be fitted in this run."""
    problems = {turn.title: turn.problem for turn in turns if turn.problem}
    reviewers = (
        reviewer.model_copy(update={"unfitted": problems[reviewer.title]})
        if reviewer.floor and not reviewer.retired and reviewer.title in problems
        else reviewer
        for reviewer in entrants.reviewers
    )
    return entrants.model_copy(update={"reviewers": tuple(reviewers)})
