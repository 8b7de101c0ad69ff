"""Reviewers of a season: build them from the recipe, fit baselines, and send questions."""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unreel.arena.run.question_plan import SeasonReviewer, iter_reviewer_questions
from unreel.arena.season.clip_set import open_season_clip_facts_table
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder, format_reviewer_folder_name
from unreel.arena.season.recipe import Season, SeasonReviewerSection
from unreel.arena.season.scenes import SeasonBenchmark, get_entry_scene
from unreel.core.clip import Clip, Origin
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreelError
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.progress import JobCallbacks
from unreel.engine.stage import Row
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import build_reviewer_factory, evaluate
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.registry import FLOORS


@dataclass(frozen=True, slots=True)
class FailedEntrant:
    """An entrant that could not be run, with the reason."""

    title: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentQuestionCounts:
    """Numbers of questions to one reviewer in one call: newly answered, failed and answered before."""

    done: int
    already: int
    failures: Mapping[str, int]
    """Number of new failures, by reason."""
    failed_before: int = 0
    """Number of stored failures among `already`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonRunContext:
    """Season, benchmark, folder, storage access and engine of one run of a season."""

    season: Season
    benchmark: SeasonBenchmark
    folder: SeasonFolder
    access: ClipAccessSettings
    engine: str = "local"
    retry_failed: Collection[str] = ()


def build_season_reviewers(
    context: SeasonRunContext,
) -> tuple[list[SeasonReviewer], list[FailedEntrant]]:
    """Return the reviewers of a season with their answer folders, and those that cannot be opened."""
    judges: list[SeasonReviewer] = []
    stumbled: list[FailedEntrant] = []
    before = {entrant.folder: entrant.name for entrant in context.folder.entrants().reviewers}
    for entry in context.season.recipe.judges:
        try:
            season = context.season
            recipe = season.asks(entry, context.folder.set)
            name = _format_reviewer_name(context, recipe)
            conditions = [str(section.as_condition()) for section in recipe.condition]
            entered = EnteredReviewer(
                title=entry.shown,
                name=name,
                folder=_choose_answers_folder(
                    entry, name, [judge.entered.folder for judge in judges]
                ),
                floor=entry.model in FLOORS,
                conditions=dict(zip(season.recipe.titles, conditions, strict=True)),
            )
            judges.append(SeasonReviewer(entered=entered, recipe=recipe))
        except UnreelError as error:
            stumbled.append(FailedEntrant(entry.shown, str(error)))
    return _number_reviewer_names(judges, before), stumbled


def _choose_answers_folder(section: SeasonReviewerSection, name: str, used: Collection[str]) -> str:
    """Return the name of the folder that stores a reviewer's answers; `used` are those of others.

    It never contains the URL of the reviewer's server.
    """
    folder = format_reviewer_folder_name(section.shown, name)
    if section.shown == (section.title or section.model) and folder not in used:
        return folder
    return format_reviewer_folder_name(section.shown, f"{name} {section.model}")


def _number_reviewer_names(
    reviewers: Sequence[SeasonReviewer], before: Mapping[str, str]
) -> list[SeasonReviewer]:
    """Make equal names of reviewers unique by a number; names of earlier calls stay."""
    used = {before[judge.entered.folder] for judge in reviewers if judge.entered.folder in before}
    numbered = []
    for judge in reviewers:
        entered = judge.entered
        name = before.get(entered.folder)
        if name is None:
            names = (f"{entered.name} {number}" for number in itertools.count(2))
            free = (text for text in itertools.chain([entered.name], names) if text not in used)
            name = next(free)
        used.add(name)
        update = entered.model_copy(update={"name": name})
        numbered.append(replace(judge, entered=update))
    return numbered


def _format_reviewer_name(context: SeasonRunContext, recipe: EvalRecipe) -> str:
    """Return a reviewer's stable name, with its training data's hash for a trainable baseline."""
    section, settings = recipe.reviewer, context.access.settings
    if section.is_served:
        return section.served_name
    if section.learns:
        clips = (f"{e.name} {e.label} {get_entry_scene(e)}" for e in context.benchmark.lessons)
        input_spec = digest(str(recipe.seed), context.benchmark.digest, *sorted(clips))
        return f"{section.model}@{input_spec[:8]}"
    return section.opener(key_hosts=settings.key_hosts, seed=recipe.seed).name


def ask_season_reviewer(
    judge: SeasonReviewer,
    context: SeasonRunContext,
    *,
    wants: Callable[[str, str], bool],
    callbacks: JobCallbacks,
) -> SentQuestionCounts | FailedEntrant:
    """Send the unanswered questions that `wants` accepts to the reviewer, and store the answers.

    Args:
        judge: The reviewer.
        context: The context of the run.
        wants: Function of condition and clip name that selects questions.
        callbacks: Progress callbacks.
    """
    run = judge.run(context.folder, context.access)
    if (
        judge.recipe.reviewer.learns
        and (n := _count_if_all_answered(judge, context, wants)) is not None
    ):
        # Fitting is expensive, and no question is open.
        n_failed = _count_failed_questions(judge, context, wants)
        return SentQuestionCounts(done=0, already=n, failures={}, failed_before=n_failed)
    try:
        reviewer = _fit_baseline(judge, context, callbacks.on_phase)
    except InvalidValueError as error:
        return FailedEntrant(judge.entered.title, str(error))

    def wanted(question: Row) -> bool:
        return wants(question["condition"], question["_name"])

    outcome = evaluate(
        run,
        engine=context.engine,
        retry_failed=context.retry_failed,
        reviewer=reviewer,
        facts_table=open_season_clip_facts_table(context.folder),
        wanted=wanted,
        callbacks=callbacks,
    )
    counts = outcome.answers
    before = _count_failed_questions(judge, context, wants) - counts.failed
    return SentQuestionCounts(
        done=counts.done,
        already=counts.already,
        failures=counts.failures,
        failed_before=max(0, before),
    )


def _count_failed_questions(
    reviewer: SeasonReviewer, context: SeasonRunContext, wants: Callable[[str, str], bool]
) -> int:
    """Return the number of a reviewer's questions selected by `wants` that are stored as failed."""
    answers = reviewer.run(context.folder, context.access).answers
    if not answers.exists() or not answers.count("failure_reason IS NOT NULL"):
        return 0
    questions = iter_reviewer_questions(reviewer, context.folder, context.access)
    return sum(bool(q.failure) for q in questions if wants(q.condition, q.clip))


def _count_if_all_answered(
    reviewer: SeasonReviewer, context: SeasonRunContext, wants: Callable[[str, str], bool]
) -> int | None:
    """Return the number of a reviewer's questions selected by `wants`, or `None` if one is open."""
    questions = iter_reviewer_questions(
        reviewer, context.folder, context.access, retry=context.retry_failed
    )
    answered = [q.answered for q in questions if wants(q.condition, q.clip)]
    return len(answered) if all(answered) else None


def _fit_baseline(
    reviewer: SeasonReviewer, context: SeasonRunContext, on_phase: Callable[[str], None]
) -> Reviewer | None:
    """Return the baseline fitted on the frozen benchmark, without entrants; `None` if not trainable."""
    if not reviewer.recipe.reviewer.learns:
        return None
    on_phase(f"{reviewer.entered.title} learns from the benchmark")

    def learn_from() -> Iterator[tuple[Clip, Origin, str]]:
        benchmark = context.benchmark
        survey = StoredClipFacts(context.folder.benchmark_clips)
        for entry, clip in survey.find(benchmark.benchmark, benchmark.lessons):
            if isinstance(clip, Clip):
                yield clip, entry.origin, get_entry_scene(entry)

    factory = build_reviewer_factory(reviewer.recipe, access=context.access, clips=learn_from())
    return factory.open().reviewer
