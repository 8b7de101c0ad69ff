"""Reviewers of a season: build them from the recipe, fit baselines, and send questions."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unreel.arena.run.outcome import EntrantRunSummary
from unreel.arena.season.clip_set import open_season_clip_facts_table
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder, format_reviewer_folder_name
from unreel.arena.season.recipe import Season
from unreel.arena.season.scenes import SeasonBenchmark, get_entry_scene
from unreel.core.clip import Clip, Origin
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreelError
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.progress import JobCallbacks
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.forecast import iter_question_states
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import EvalRun, build_reviewer_factory, evaluate
from unreel.evaluation.stored_recipe import StoredRecipe, find_run_recipe
from unreel.reviewers.registry import FLOORS


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonRunContext:
    """Season, benchmark, folder, storage access and engine of one run of a season."""

    season: Season
    benchmark: SeasonBenchmark
    folder: SeasonFolder
    access: ClipAccessSettings
    engine: str = "local"
    retry_failed: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeasonQuestion:
    """One question of a season, reduced to the fields that the question plan needs."""

    reviewer: str
    clip: str
    """Name of the clip, or of the pair, in the season's clip set."""
    condition: str
    """Text of the condition, as in the answers table."""
    answered: bool
    failure: str = ""
    """Reason of a stored failure that is not retried; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonReviewer:
    """A reviewer of the season, with the recipe of its evaluation."""

    entered: EnteredReviewer
    recipe: EvalRecipe

    def run(self, context: SeasonRunContext) -> EvalRun:
        """Return the evaluation run that stores this reviewer's answers in the season's folder."""
        root = context.folder.run(self.entered.folder)
        return EvalRun(
            place=root,
            recipe=self.recipe,
            access=context.access,
            ledgers=root.path,
            accept_changed=True,
        )


def iter_reviewer_questions(
    reviewer: SeasonReviewer, context: SeasonRunContext, *, retry: Collection[str] = ()
) -> Iterator[SeasonQuestion]:
    """Yield every question for one reviewer about the season's clips, in the order of the benchmark.

    A question that failed for a reason in `retry` counts as unanswered.
    """
    run = reviewer.run(context)
    stored = find_run_recipe(run.place)
    # A trainable baseline has a name after fitting only; it is not needed before the first answer.
    name = stored.reviewer if isinstance(stored, StoredRecipe) else ""
    facts = StoredClipFacts(open_season_clip_facts_table(context.folder))
    for planned, reason in iter_question_states(run, facts, name, retry=retry):
        yield SeasonQuestion(
            reviewer=reviewer.entered.name,
            clip=planned.name,
            condition=str(planned.question.condition),
            answered=reason is not None,
            failure=reason or "",
        )


def build_season_reviewers(
    context: SeasonRunContext,
) -> tuple[list[SeasonReviewer], dict[str, str]]:
    """Return the reviewers of a season, and the problems of those that cannot be opened, by title."""
    season, folder = context.season, context.folder
    reviewers: list[SeasonReviewer] = []
    problems: dict[str, str] = {}
    before = {entrant.folder: entrant.name for entrant in folder.entrants().reviewers}
    for section in season.recipe.judges:
        try:
            recipe = season.asks(section, folder.set)
            name = _format_reviewer_name(context, recipe)
        except UnreelError as error:
            problems[section.shown] = str(error)
            continue
        # The name of the folder never contains the URL of the reviewer's server.
        run = format_reviewer_folder_name(section.shown, name)
        is_used = run in [reviewer.entered.folder for reviewer in reviewers]
        if is_used or section.shown != (section.title or section.model):
            run = format_reviewer_folder_name(section.shown, f"{name} {section.model}")
        conditions = [str(condition.as_condition()) for condition in recipe.condition]
        entered = EnteredReviewer(
            title=section.shown,
            name=name,
            folder=run,
            floor=section.model in FLOORS,
            conditions=dict(zip(season.recipe.titles, conditions, strict=True)),
        )
        reviewers.append(SeasonReviewer(entered=entered, recipe=recipe))
    return _number_reviewer_names(reviewers, before), problems


def _number_reviewer_names(
    reviewers: Sequence[SeasonReviewer], before: Mapping[str, str]
) -> list[SeasonReviewer]:
    """Make equal names of reviewers unique by a number; names of earlier calls stay."""
    used = {before[r.entered.folder] for r in reviewers if r.entered.folder in before}
    numbered = []
    for reviewer in reviewers:
        entered = reviewer.entered
        name, number = before.get(entered.folder), 2
        if name is None:
            name = entered.name
            while name in used:
                name, number = f"{entered.name} {number}", number + 1
        used.add(name)
        numbered.append(replace(reviewer, entered=entered.model_copy(update={"name": name})))
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
    reviewer: SeasonReviewer,
    context: SeasonRunContext,
    *,
    wants: Callable[[str, str], bool],
    callbacks: JobCallbacks,
) -> EntrantRunSummary:
    """Send the unanswered questions to the reviewer that `wants` selects by condition and clip name."""
    title, run = reviewer.entered.title, reviewer.run(context)

    def count_failed() -> int:
        if not run.answers.exists() or not run.answers.count("failure_reason IS NOT NULL"):
            return 0
        questions = iter_reviewer_questions(reviewer, context)
        return sum(bool(q.failure) for q in questions if wants(q.condition, q.clip))

    opened = None
    if reviewer.recipe.reviewer.learns:
        # Fitting is expensive: it is skipped if no question is open.
        questions = iter_reviewer_questions(reviewer, context, retry=context.retry_failed)
        answered = [q.answered for q in questions if wants(q.condition, q.clip)]
        if all(answered):
            n_failed = count_failed()
            return EntrantRunSummary(
                title=title, already=len(answered) - n_failed, failed_before=n_failed
            )
        callbacks.on_phase(f"{title} learns from the benchmark")

        def learn_from() -> Iterator[tuple[Clip, Origin, str]]:
            benchmark = context.benchmark
            facts = StoredClipFacts(context.folder.benchmark_clips)
            for entry, clip in facts.find(benchmark.benchmark, benchmark.lessons):
                if isinstance(clip, Clip):
                    yield clip, entry.origin, get_entry_scene(entry)

        try:
            factory = build_reviewer_factory(
                reviewer.recipe, access=context.access, clips=learn_from()
            )
            opened = factory.open().reviewer
        except InvalidValueError as error:
            return EntrantRunSummary(title=title, problem=str(error))
    counts = evaluate(
        run,
        engine=context.engine,
        retry_failed=context.retry_failed,
        reviewer=opened,
        facts_table=open_season_clip_facts_table(context.folder),
        wanted=lambda question: wants(question["condition"], question["_name"]),
        callbacks=callbacks,
    ).answers
    failed_before = max(0, count_failed() - counts.failed)
    return EntrantRunSummary(
        title=title,
        done=counts.done,
        already=counts.already - failed_before,
        failures=counts.failures,
        failed_before=failed_before,
    )
