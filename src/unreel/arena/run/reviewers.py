"""Reviewers of a season: identified by the settings of their answers, fitted if necessary, and queried."""

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unreel.arena.run.questions import SeasonReviewer, iter_questions
from unreel.arena.season.benchmark import look_table
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder, run_name
from unreel.arena.season.recipe import ReviewerEntry, Season
from unreel.arena.season.scenes import SeasonBenchmark, get_scene
from unreel.core.clip import Clip
from unreel.core.errors import InvalidValueError, UnreelError
from unreel.core.identity import digest
from unreel.engine.progress import JobCallbacks
from unreel.engine.stage import Row
from unreel.engine.storage_access import StorageAccess
from unreel.engine.survey import ClipSurvey
from unreel.evaluation.baseline_fitting import LearnableClip, describe_reviewer
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import evaluate
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.registry import FLOORS


@dataclass(frozen=True, slots=True)
class EntrantError:
    """An entrant that could not be run, with the reason."""

    title: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBatchSummary:
    """Counts of the questions sent to a reviewer in one call."""

    done: int
    already: int
    failures: Mapping[str, int]
    """New ones, by reason."""
    failed_before: int = 0
    """Stored failures among `already`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings:
    """Review settings of a season."""

    season: Season
    scenery: SeasonBenchmark
    folder: SeasonFolder
    access: StorageAccess
    engine: str = "local"
    retry_failed: Collection[str] = ()


def enter_reviewers(asking: ReviewSettings) -> tuple[list[SeasonReviewer], list[EntrantError]]:
    """Return all reviewers with the folders of their answers, and those that cannot be opened here."""
    judges: list[SeasonReviewer] = []
    stumbled: list[EntrantError] = []
    before = {each.folder: each.name for each in asking.folder.entrants().reviewers}
    for entry in asking.season.recipe.judges:
        try:
            judges.append(
                _build_season_reviewer(
                    asking, entry, before, [judge.entered.folder for judge in judges]
                )
            )
        except UnreelError as error:
            stumbled.append(EntrantError(entry.shown, str(error)))
    return _number_names(judges, before), stumbled


def _build_season_reviewer(
    asking: ReviewSettings, entry: ReviewerEntry, before: Collection[str], taken: Collection[str]
) -> SeasonReviewer:
    season = asking.season
    recipe = season.asks(entry, asking.folder.set)
    name = _format_reviewer_name(asking, recipe)
    heard = [str(section.as_condition()) for section in recipe.condition]
    entered = EnteredReviewer(
        title=entry.shown,
        name=name,
        folder=_choose_folder(entry, name, before, taken),
        floor=entry.model in FLOORS,
        conditions=dict(zip(season.recipe.titles, heard, strict=True)),
    )
    return SeasonReviewer(entered=entered, recipe=recipe)


def _choose_folder(
    entry: ReviewerEntry, name: str, before: Collection[str], taken: Collection[str]
) -> str:
    """Return the folder of its answers; its server's address is in it only if an earlier release made it.

    Args:
        entry: the reviewer.
        name: its stable name.
        before: folders of earlier calls.
        taken: folders of other reviewers of this call.
    """
    earlier = run_name(entry.title or entry.model, name)
    folder = run_name(entry.shown, name)
    if earlier in before or (earlier == folder and folder not in taken):
        return earlier
    return run_name(entry.shown, f"{name} {entry.model}")


def _number_names(
    judges: Sequence[SeasonReviewer], before: Mapping[str, str]
) -> list[SeasonReviewer]:
    """Give a number to the names of a model that is asked at several servers; names of earlier calls stay."""
    taken = {before[each.entered.folder] for each in judges if each.entered.folder in before}
    numbered = []
    for judge in judges:
        entered = judge.entered
        name = before.get(entered.folder)
        if name is None:
            names = (f"{entered.name} {number}" for number in itertools.count(2))
            free = (each for each in itertools.chain([entered.name], names) if each not in taken)
            name = next(free)
        taken.add(name)
        update = entered.model_copy(update={"name": name})
        numbered.append(replace(judge, entered=update))
    return numbered


def _format_reviewer_name(asking: ReviewSettings, recipe: EvalRecipe) -> str:
    """Return the identity of a reviewer's answers; for a trainable one, of its training data."""
    section, settings = recipe.reviewer, asking.access.settings
    if section.is_served:
        return section.served_name
    if section.learns:
        clips = (f"{e.name} {e.label} {get_scene(e)}" for e in asking.scenery.lessons)
        taught = digest(str(recipe.seed), asking.scenery.digest, *sorted(clips))
        return f"{section.model}@{taught[:8]}"
    return section.opener(key_hosts=settings.key_hosts, seed=recipe.seed).name


def ask(
    judge: SeasonReviewer,
    asking: ReviewSettings,
    *,
    wants: Callable[[str, str], bool],
    callbacks: JobCallbacks,
) -> ReviewBatchSummary | EntrantError:
    """Put the questions that are due and that `wants` takes by their condition and clip."""
    run = judge.run(asking.folder, asking.access)
    if (
        judge.recipe.reviewer.learns
        and (n := _count_if_all_answered(judge, asking, wants)) is not None
    ):
        # To learn costs more than to ask.
        n_failed = _count_failed_questions(judge, asking, wants)
        return ReviewBatchSummary(done=0, already=n, failures={}, failed_before=n_failed)
    try:
        reviewer = _fit_baseline(judge, asking, callbacks.on_phase)
    except InvalidValueError as error:
        return EntrantError(judge.entered.title, str(error))

    def wanted(question: Row) -> bool:
        return wants(question["condition"], question["_name"])

    outcome = evaluate(
        run,
        engine=asking.engine,
        retry_failed=asking.retry_failed,
        reviewer=reviewer,
        surveyed=look_table(asking.folder),
        wanted=wanted,
        callbacks=callbacks,
    )
    asked = outcome.answers
    before = _count_failed_questions(judge, asking, wants) - asked.failed
    return ReviewBatchSummary(
        done=asked.done,
        already=asked.already,
        failures=asked.failures,
        failed_before=max(0, before),
    )


def _count_failed_questions(
    judge: SeasonReviewer, asking: ReviewSettings, wants: Callable[[str, str], bool]
) -> int:
    """Return the number of questions whose stored answer is a failure."""
    answers = judge.run(asking.folder, asking.access).answers
    if not answers.exists() or not answers.count("failure_reason IS NOT NULL"):
        return 0
    questions = iter_questions(judge, asking.folder, asking.access)
    return sum(bool(each.failure) for each in questions if wants(each.condition, each.clip))


def _count_if_all_answered(
    judge: SeasonReviewer, asking: ReviewSettings, wants: Callable[[str, str], bool]
) -> int | None:
    """Return the number of answered questions if all are answered, else `None`."""
    questions = iter_questions(judge, asking.folder, asking.access, retry=asking.retry_failed)
    wanted = [each.answered for each in questions if wants(each.condition, each.clip)]
    return len(wanted) if all(wanted) else None


def _fit_baseline(
    judge: SeasonReviewer, asking: ReviewSettings, on_phase: Callable[[str], None]
) -> Reviewer | None:
    """Return a baseline fitted on the frozen benchmark, so that later clips change no answer."""
    if not judge.recipe.reviewer.learns:
        return None
    on_phase(f"{judge.entered.title} learns from the benchmark")

    def learn_from() -> Iterator[LearnableClip]:
        scenery = asking.scenery
        survey = ClipSurvey(asking.folder.benchmark_clips)
        for entry, clip in survey.find(scenery.benchmark, scenery.lessons):
            if isinstance(clip, Clip):
                yield LearnableClip(clip, entry.origin, get_scene(entry))

    opener = describe_reviewer(judge.recipe, access=asking.access, learn_from=learn_from)
    return opener.open().reviewer
