"""Reviewers of a season: build them from the recipe, fit baselines, and send questions."""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unreel.arena.run.question_plan import SeasonReviewer, iter_reviewer_questions
from unreel.arena.season.clip_set import open_season_clip_facts_table
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder, format_reviewer_folder_name
from unreel.arena.season.recipe import Season, SeasonReviewerSection
from unreel.arena.season.scenes import SeasonBenchmark, get_entry_scene
from unreel.core.clip import Clip
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreelError
from unreel.engine.clip_facts import StoredClipFacts
from unreel.engine.progress import JobCallbacks
from unreel.engine.stage import Row
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.baseline_fitting import LabelledClip, build_reviewer_factory
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import evaluate
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
    scenery: SeasonBenchmark
    folder: SeasonFolder
    access: ClipAccessSettings
    engine: str = "local"
    retry_failed: Collection[str] = ()


def build_season_reviewers(
    asking: SeasonRunContext,
) -> tuple[list[SeasonReviewer], list[FailedEntrant]]:
    """Return the reviewers of a season with their answer folders, and those that cannot be opened."""
    judges: list[SeasonReviewer] = []
    stumbled: list[FailedEntrant] = []
    before = {entrant.folder: entrant.name for entrant in asking.folder.entrants().reviewers}
    for entry in asking.season.recipe.judges:
        try:
            judges.append(
                _build_season_reviewer(
                    asking, entry, before, [judge.entered.folder for judge in judges]
                )
            )
        except UnreelError as error:
            stumbled.append(FailedEntrant(entry.shown, str(error)))
    return _number_reviewer_names(judges, before), stumbled


def _build_season_reviewer(
    asking: SeasonRunContext,
    entry: SeasonReviewerSection,
    before: Collection[str],
    used: Collection[str],
) -> SeasonReviewer:
    season = asking.season
    recipe = season.asks(entry, asking.folder.set)
    name = _format_reviewer_name(asking, recipe)
    conditions = [str(section.as_condition()) for section in recipe.condition]
    entered = EnteredReviewer(
        title=entry.shown,
        name=name,
        folder=_choose_answers_folder(entry, name, before, used),
        floor=entry.model in FLOORS,
        conditions=dict(zip(season.recipe.titles, conditions, strict=True)),
    )
    return SeasonReviewer(entered=entered, recipe=recipe)


def _choose_answers_folder(
    entry: SeasonReviewerSection, name: str, before: Collection[str], used: Collection[str]
) -> str:
    """Return the name of the folder that stores a reviewer's answers.

    The name contains the URL of the reviewer's server only if an earlier release created the
    folder.

    Args:
        entry: The reviewer.
        name: Its stable name.
        before: Folders of earlier calls.
        used: Folders of other reviewers of this call.
    """
    earlier = format_reviewer_folder_name(entry.title or entry.model, name)
    folder = format_reviewer_folder_name(entry.shown, name)
    if earlier in before or (earlier == folder and folder not in used):
        return earlier
    return format_reviewer_folder_name(entry.shown, f"{name} {entry.model}")


def _number_reviewer_names(
    judges: Sequence[SeasonReviewer], before: Mapping[str, str]
) -> list[SeasonReviewer]:
    """Make equal names of reviewers unique by a number; names of earlier calls stay."""
    used = {before[judge.entered.folder] for judge in judges if judge.entered.folder in before}
    numbered = []
    for judge in judges:
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


def _format_reviewer_name(asking: SeasonRunContext, recipe: EvalRecipe) -> str:
    """Return a reviewer's stable name, with its training data's hash for a trainable baseline."""
    section, settings = recipe.reviewer, asking.access.settings
    if section.is_served:
        return section.served_name
    if section.learns:
        clips = (f"{e.name} {e.label} {get_entry_scene(e)}" for e in asking.scenery.lessons)
        taught = digest(str(recipe.seed), asking.scenery.digest, *sorted(clips))
        return f"{section.model}@{taught[:8]}"
    return section.opener(key_hosts=settings.key_hosts, seed=recipe.seed).name


def ask_season_reviewer(
    judge: SeasonReviewer,
    asking: SeasonRunContext,
    *,
    wants: Callable[[str, str], bool],
    callbacks: JobCallbacks,
) -> SentQuestionCounts | FailedEntrant:
    """Send the unanswered questions that `wants` accepts to the reviewer, and store the answers.

    Args:
        judge: The reviewer.
        asking: The context of the run.
        wants: Function of condition and clip name that selects questions.
        callbacks: Progress callbacks.
    """
    run = judge.run(asking.folder, asking.access)
    if (
        judge.recipe.reviewer.learns
        and (n := _count_if_all_answered(judge, asking, wants)) is not None
    ):
        # Fitting is expensive, and no question is open.
        n_failed = _count_failed_questions(judge, asking, wants)
        return SentQuestionCounts(done=0, already=n, failures={}, failed_before=n_failed)
    try:
        reviewer = _fit_baseline(judge, asking, callbacks.on_phase)
    except InvalidValueError as error:
        return FailedEntrant(judge.entered.title, str(error))

    def wanted(question: Row) -> bool:
        return wants(question["condition"], question["_name"])

    outcome = evaluate(
        run,
        engine=asking.engine,
        retry_failed=asking.retry_failed,
        reviewer=reviewer,
        surveyed=open_season_clip_facts_table(asking.folder),
        wanted=wanted,
        callbacks=callbacks,
    )
    counts = outcome.answers
    before = _count_failed_questions(judge, asking, wants) - counts.failed
    return SentQuestionCounts(
        done=counts.done,
        already=counts.already,
        failures=counts.failures,
        failed_before=max(0, before),
    )


def _count_failed_questions(
    judge: SeasonReviewer, asking: SeasonRunContext, wants: Callable[[str, str], bool]
) -> int:
    """Return the number of a reviewer's questions selected by `wants` that are stored as failed."""
    answers = judge.run(asking.folder, asking.access).answers
    if not answers.exists() or not answers.count("failure_reason IS NOT NULL"):
        return 0
    questions = iter_reviewer_questions(judge, asking.folder, asking.access)
    return sum(bool(q.failure) for q in questions if wants(q.condition, q.clip))


def _count_if_all_answered(
    judge: SeasonReviewer, asking: SeasonRunContext, wants: Callable[[str, str], bool]
) -> int | None:
    """Return the number of a reviewer's questions selected by `wants`, or `None` if one is open."""
    questions = iter_reviewer_questions(
        judge, asking.folder, asking.access, retry=asking.retry_failed
    )
    answered = [q.answered for q in questions if wants(q.condition, q.clip)]
    return len(answered) if all(answered) else None


def _fit_baseline(
    judge: SeasonReviewer, asking: SeasonRunContext, on_phase: Callable[[str], None]
) -> Reviewer | None:
    """Return the baseline fitted on the frozen benchmark, without entrants; `None` if not trainable."""
    if not judge.recipe.reviewer.learns:
        return None
    on_phase(f"{judge.entered.title} learns from the benchmark")

    def learn_from() -> Iterator[LabelledClip]:
        scenery = asking.scenery
        survey = StoredClipFacts(asking.folder.benchmark_clips)
        for entry, clip in survey.find(scenery.benchmark, scenery.lessons):
            if isinstance(clip, Clip):
                yield LabelledClip(clip, entry.origin, get_entry_scene(entry))

    factory = build_reviewer_factory(judge.recipe, access=asking.access, learn_from=learn_from)
    return factory.open().reviewer
