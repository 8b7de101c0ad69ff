"""Run of a season: generate missing clips, rewrite the clip set, and send missing questions."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from unreel.arena.run.creators import (
    UNPAID,
    build_season_creators,
    count_pending_clips,
    find_first_clip_failure,
    find_missing_creator_files,
    generate_missing_clips,
    get_start_log_path,
)
from unreel.arena.run.outcome import EntrantRunSummary, QuestionPlan, SeasonOutcome
from unreel.arena.run.question_plan import (
    SENT,
    SeasonReviewer,
    SeasonRunContext,
    ask_season_reviewer,
    build_season_reviewers,
    compute_remaining_budget_usd,
    iter_reviewer_questions,
    limit_reviewer_cost,
    plan_budgeted_questions,
    sum_season_cost_usd,
)
from unreel.arena.season.folder import RECIPE, EnteredReviewer, Season, SeasonEntrants, SeasonFolder
from unreel.arena.season.scenes import (
    SeasonBenchmark,
    assign_scene_file_names,
    open_season_benchmark,
    read_current_clip_names,
    rebuild_season_clip_set,
    require_benchmark_digest,
)
from unreel.benchmarks.pairing import BETWEEN
from unreel.core.errors import (
    InvalidSettingError,
    KeyRejectedError,
    MissingExtraError,
    RequestsRejectedError,
    UnknownNameError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.creators.config import CreatorRecipeSection
from unreel.engine.clip_facts import ClipProbeStage, iter_clip_file_rows
from unreel.engine.location import translate_store_errors
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.writer_lock import build_writer_lock

DRIVER = "season"
"""Name of the lock of a running season: a second run is rejected before it changes anything."""
_OF_ONE = (
    KeyRejectedError,
    RequestsRejectedError,
    InvalidSettingError,
    UnreadableSourceError,
    MissingExtraError,
)
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

    def build_context(self, benchmark: SeasonBenchmark) -> SeasonRunContext:
        return SeasonRunContext(
            season=self.season,
            benchmark=benchmark,
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
    benchmark = open_season_benchmark(job.season, outside=job.outside)
    require_benchmark_digest(job.season, benchmark)
    context = job.build_context(benchmark)
    with build_writer_lock(folder.place / DRIVER):
        folder.place.put(RECIPE, job.season.text)
        reviewers, problems = build_season_reviewers(context)
        entrants = build_season_entrants(context, reviewers)
        folder.keep_entrants(entrants)
        _probe_benchmark_files(context, entrants, callbacks)
        created = tuple(_generate_all_clips(job, context, entrants, callbacks))
        if any(turn.problem for turn in created):
            reviewers, problems = [], {}
        callbacks.on_phase("gathering the clips")
        current = rebuild_season_clip_set(folder, benchmark, entrants, job.access)
        called = [reviewer for reviewer in reviewers if job.calls(reviewer.entered.title)]
        plan = plan_budgeted_questions(called, context, entrants, current)
        turns = []
        for number, reviewer in enumerate(called, start=1):
            callbacks.on_begin(f"{number} of {len(called)}, {reviewer.entered.title}")
            is_selected = _build_question_filter(reviewer.entered, plan, current)
            try:
                limited = limit_reviewer_cost(reviewer, context, entrants)
                turn = ask_season_reviewer(
                    limited, context, is_selected=is_selected, callbacks=callbacks
                )
            except _OF_ONE as error:
                turn = EntrantRunSummary(title=reviewer.entered.title, problem=str(error))
            turns.append(turn)
        # Each baseline that could not be fitted in this run is stored with the reason.
        unfitted = {turn.title: turn.problem for turn in turns if turn.problem}
        entered = (
            reviewer.model_copy(update={"unfitted": unfitted[reviewer.title]})
            if reviewer.floor and not reviewer.retired and reviewer.title in unfitted
            else reviewer
            for reviewer in entrants.reviewers
        )
        folder.keep_entrants(entrants.model_copy(update={"reviewers": tuple(entered)}))
    turns += [EntrantRunSummary(title=title, problem=why) for title, why in problems.items()]
    return SeasonOutcome(
        season=recipe.name,
        folder=str(folder.path),
        digest=benchmark.digest,
        creators=created,
        reviewers=tuple(turns),
        n_rejected=benchmark.n_rejected,
        plan=plan,
        cost_usd=sum_season_cost_usd(folder, entrants),
    )


def require_known_entrants(job: SeasonJob) -> None:
    """Raise `UnknownNameError` if a title in `only` belongs to no entrant."""
    recipe = job.season.recipe
    known = [entry.name for entry in recipe.creator] + [entry.shown for entry in recipe.judges]
    for title in sorted(job.only.difference(known)):
        raise UnknownNameError("entrant", title, known)


def build_season_entrants(
    context: SeasonRunContext, reviewers: Sequence[SeasonReviewer]
) -> SeasonEntrants:
    """Return the entrants in the recipe of a season, and earlier ones that the recipe no longer names."""
    recipe, before = context.season.recipe, context.folder.entrants()
    named = [judge.entered for judge in reviewers]
    names = {entrant.name for entrant in named}
    gone = [entrant for entrant in before.reviewers if entrant.name not in names]
    return SeasonEntrants(
        season=recipe.name,
        protocol=recipe.protocol,
        digest=context.benchmark.digest,
        seed=recipe.seed,
        conditions=recipe.titles,
        creators=build_season_creators(context.season.creators, before.creators),
        reviewers=(*named, *(entrant.model_copy(update={"retired": True}) for entrant in gone)),
    )


def _probe_benchmark_files(
    context: SeasonRunContext, entrants: SeasonEntrants, callbacks: JobCallbacks
) -> None:
    benchmark, folder = context.benchmark, context.folder
    callbacks.on_phase("looking at the benchmark")
    clips = (entry for creator in entrants.creators for entry in benchmark.held(creator.held))
    fitting_entries = (
        benchmark.fitting_entries if any(judge.floor for judge in entrants.reviewers) else ()
    )
    run_stages(
        iter_clip_file_rows(
            benchmark.benchmark, [*benchmark.real(), *clips, *fitting_entries], context.access
        ),
        [ClipProbeStage(context.access)],
        table=folder.benchmark_clips,
        ledger=get_start_log_path(folder, "benchmark"),
        observe=lambda step, n_rows: callbacks.observe(f"benchmark-{step}", n_rows),
    )


def _generate_all_clips(
    job: SeasonJob, context: SeasonRunContext, entrants: SeasonEntrants, callbacks: JobCallbacks
) -> Iterator[EntrantRunSummary]:
    called = [c for c in job.season.creators if c.held is not None or job.calls(c.name)]
    checked = [_check_creator_clips(section, context) for section in called]
    if any(turn.problem for turn in checked):
        yield from checked
        return
    for section, turn in zip(called, checked, strict=True):
        if section.held is not None:
            yield turn
        else:
            callbacks.on_begin(section.name)
            yield _make_creator_clips(section, context, entrants, callbacks)


def _check_creator_clips(
    section: CreatorRecipeSection, context: SeasonRunContext
) -> EntrantRunSummary:
    title, access = section.name, context.access
    if section.held is not None:
        n_held = len(context.benchmark.held(section.held))
        known = ", ".join(context.benchmark.creators()[:10]) or "nobody"
        lacks = f"the benchmark has no clip of {section.held!r}. It has clips of {known}"
        return EntrantRunSummary(title=title, already=n_held, problem="" if n_held else lacks)
    try:
        factory = section.opener(settings=access.settings, trusted=access.trusted)
        n_due, n_failed = count_pending_clips(factory, context)
        missing = find_missing_creator_files(factory, context) if n_due or n_failed else ()
    except _OF_ONE as error:
        return EntrantRunSummary(title=title, problem=str(error))
    n_all = len(context.benchmark.scenes) * len(factory.settings)
    problem = f"the folder contains none of the {n_all} expected files"
    return EntrantRunSummary(
        title=title,
        already=n_all - n_due - n_failed,
        failed_before=n_failed,
        missing_files=missing,
        problem=problem if n_due and len(missing) == n_all else "",
    )


def _make_creator_clips(
    section: CreatorRecipeSection,
    context: SeasonRunContext,
    entrants: SeasonEntrants,
    callbacks: JobCallbacks,
) -> EntrantRunSummary:
    budget, folder, access = context.season.recipe.budget, context.folder, context.access
    limit = None
    if budget.max_clips is not None:
        # Failed clips count as requested, those skipped for the budget do not.
        limit = max(0, budget.max_clips - (folder.made.count(SENT) if folder.made.exists() else 0))
    try:
        factory = section.opener(settings=access.settings, trusted=access.trusted)
        _, failed_before = count_pending_clips(factory, context)
        done, n_due = generate_missing_clips(
            factory,
            context,
            limit=limit,
            left_usd=compute_remaining_budget_usd(folder, entrants, budget),
            callbacks=callbacks,
        )
    except _OF_ONE as error:
        return EntrantRunSummary(title=section.name, problem=str(error))
    n_all = len(context.benchmark.scenes) * len(factory.settings)
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
    problem = f"none of its {n_all} clips can be used ({find_first_clip_failure(factory, context)})"
    missing = find_missing_creator_files(factory, context)
    return replace(turn, missing_files=missing, problem=problem if is_unusable else "")


def _build_question_filter(
    reviewer: EnteredReviewer, plan: QuestionPlan | None, current: Collection[str]
) -> Callable[[str, str], bool]:
    """Return a function of condition and clip name: whether this run sends the question to `reviewer`."""
    chosen = None if plan is None or reviewer.floor else plan.questions_of(reviewer.name)
    return lambda condition, clip: (
        _has_all_clips(clip, current) and (chosen is None or (condition, clip) in chosen)
    )


def _has_all_clips(clip: str, clips: Collection[str]) -> bool:
    """Return whether `clips` contains `clip`, or both of its clips if it names a pair."""
    return clip in clips or all(name in clips for name in clip.split(BETWEEN))


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
    """Return the clips and questions that `run_season` would make and send. Writes nothing."""
    recipe = job.season.recipe
    require_known_entrants(job)
    benchmark = open_season_benchmark(job.season, outside=job.outside)
    context = job.build_context(benchmark)
    season_reviewers, problems = build_season_reviewers(context)
    entrants = build_season_entrants(context, season_reviewers)
    creators: list[EntrantForecast] = []
    n_generated = 0
    for section in job.season.creators:
        if section.held is not None:
            n_done = len(benchmark.held(section.held))
            creators.append(EntrantForecast(title=section.name, n_done=n_done))
        elif job.calls(section.name):
            try:
                factory = section.opener(
                    settings=context.access.settings, trusted=context.access.trusted
                )
            except UnreelError as error:
                creators.append(EntrantForecast(title=section.name, problem=str(error)))
                continue
            n_due, n_failed = count_pending_clips(factory, context)
            n_done = len(benchmark.scenes) * len(factory.settings) - n_due - n_failed
            n_generated += n_due + n_done
            missing = find_missing_creator_files(factory, context) if n_due or n_failed else ()
            creators.append(
                EntrantForecast(
                    title=section.name,
                    n_due=n_due,
                    n_done=n_done,
                    n_failed=n_failed,
                    missing_files=missing,
                )
            )
    n_held = sum(len(benchmark.held(c.held)) for c in entrants.creators if c.held)
    n_real = sum(1 for _ in benchmark.real())
    n_clips = n_held + n_generated + (0 if entrants.is_about_pairs else n_real)
    current = read_current_clip_names(job.folder, entrants)
    reviewers: list[EntrantForecast] = []
    for reviewer in season_reviewers:
        if job.calls(reviewer.entered.title):
            n_done = 0
            if current:
                questions = iter_reviewer_questions(reviewer, context, retry=context.retry_failed)
                n_done = sum(q.answered for q in questions if _has_all_clips(q.clip, current))
            n_due = max(0, n_clips * len(recipe.condition) - n_done)
            title = reviewer.entered.title
            reviewers.append(EntrantForecast(title=title, n_due=n_due, n_done=n_done))
    reviewers += [EntrantForecast(title=title, problem=why) for title, why in problems.items()]
    return SeasonForecast(
        season=recipe.name,
        folder=str(job.folder.path),
        digest=benchmark.digest,
        is_pinned=recipe.digest == benchmark.digest,
        scenes=tuple(assign_scene_file_names(benchmark.scenes).values()),
        n_real=n_real,
        n_rejected=benchmark.n_rejected,
        conditions=recipe.titles,
        creators=tuple(creators),
        reviewers=tuple(reviewers),
        max_questions=recipe.budget.max_questions,
        max_clips=recipe.budget.max_clips,
    )
