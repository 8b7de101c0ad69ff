"""Questions of a season by reviewer, and those without an answer."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from unreel.arena.season.benchmark import look_table
from unreel.arena.season.folder import EnteredReviewer, SeasonFolder
from unreel.benchmarks.pairing import BETWEEN
from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.chunks import iter_chunks
from unreel.engine.pending import PendingKeys
from unreel.engine.storage_access import StorageAccess
from unreel.engine.survey import ClipSurvey
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.run_job import NEVER_PUT, EvalRun
from unreel.evaluation.stored_recipe import StoredRecipe, find_recipe


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SeasonQuestion:
    """One question of a season, as far as planning it needs to know it."""

    reviewer: str
    """Its stable name in the season."""
    clip: str
    """Its name in the set."""
    condition: str
    """As the answers name it."""
    answered: bool
    failure: str = ""
    """Reason of a stored failure that is not asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonReviewer:
    """A reviewer of the season, with the recipe of its evaluation."""

    entered: EnteredReviewer
    recipe: EvalRecipe

    def run(self, folder: SeasonFolder, access: StorageAccess) -> EvalRun:
        """Return the run of its answers."""
        place = folder.run(self.entered.folder)
        return EvalRun(
            place=place, recipe=self.recipe, access=access, ledgers=place.path, accept_changed=True
        )


def iter_questions(
    judge: SeasonReviewer,
    folder: SeasonFolder,
    access: StorageAccess,
    *,
    retry: Collection[str] = (),
) -> Iterator[SeasonQuestion]:
    """Yield every question for the reviewer about the season's clip set, in the order of the set.

    A question that failed for a reason in `retry` counts as unanswered.

    Raises:
        UnreelError: The set has no question.
    """
    run = judge.run(folder, access)
    pending = PendingKeys(run.answers, NEVER_PUT.union(retry))
    stored = find_recipe(run.place)
    # A floor that learns tells its name when it has learned: without answers nobody needs it.
    name = stored.reviewer if isinstance(stored, StoredRecipe) else None
    plan = run.plan(ClipSurvey(look_table(folder)))
    asked = (each for each in plan if isinstance(each, PlannedQuestion))
    for chunk in iter_chunks(asked):
        keys = ["" if name is None else each.question.key(name) for each in chunk]
        held = run.answers.held([key for key in keys if key])
        for planned, key, is_due in zip(chunk, keys, pending.are_due(keys), strict=True):
            yield SeasonQuestion(
                reviewer=judge.entered.name,
                clip=planned.name,
                condition=str(planned.question.condition),
                answered=not is_due,
                failure="" if is_due else held[key].reason or "",
            )


def is_among(shown: str, clips: Collection[str]) -> bool:
    """Return whether `clips` contains the shown clip, or both clips of a pair."""
    return shown in clips or all(name in clips for name in shown.split(BETWEEN))
