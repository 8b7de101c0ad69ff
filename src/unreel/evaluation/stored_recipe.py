"""Recipe of a run, stored next to its tables."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.core.question import Instrument
from unreel.core.small_documents import RECIPE_BYTES, parse_object
from unreel.engine.location import StorageLocation
from unreel.evaluation.recipe import EvalRecipe, check_recipe
from unreel.evaluation.stored_benchmark import KeptBenchmark
from unreel.recipes.check import check_sections
from unreel.recipes.section import RecipeSection, Text

RECIPE_FILE: Final = "recipe.json"
_BEFORE: Final = {"choice": "first"}
"""Defaults of earlier releases for missing fields."""


class _RecipeDocument(RecipeSection):
    reviewer: Annotated[Text, Field(min_length=1)]
    instrument: Text
    recipe: dict[str, Any]
    benchmark: KeptBenchmark | None = None
    allow_outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecipe:
    """Validated content of the file."""

    reviewer: str
    """The name that the run's answers carry."""
    instrument: Instrument
    """What the run asked: this release's version, or an earlier one that it can still score."""
    recipe: EvalRecipe
    benchmark: KeptBenchmark | None
    """Location and fingerprint of its benchmark; `None` if an earlier release began the run."""
    outside: bool
    """Whether its table may name files outside its folder; a person has to say so again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableRecipe:
    """A file that says nothing that this release could go by."""

    problem: str
    other_release: bool
    """Whether it can be read, so that another release may know what it means."""

    def error(self, run: str) -> UnreadableSourceError:
        """Return the problem as an error with a remedy."""
        remedy = f"See what is left with `unreel runs check {run}`"
        if self.other_release:
            remedy = "Use the release that wrote it: upgrade unreel where that is a later one"
        return UnreadableSourceError(f"{run}/{RECIPE_FILE}", self.problem, remedy)


def find_recipe(run: StorageLocation) -> StoredRecipe | UnusableRecipe | None:
    """Return the recipe of the run at that location, or its error; None if it is missing."""
    try:
        text = run.read(RECIPE_FILE, most=RECIPE_BYTES)
    except UnreadableSourceError as error:
        return UnusableRecipe(problem=error.problem, other_release=False)
    except OSError:
        return None
    return _parse_stored_recipe(text)


def _parse_stored_recipe(text: bytes) -> StoredRecipe | UnusableRecipe:
    try:
        stored = check_sections(_RecipeDocument, parse_object(text))
    except (InvalidSettingError, InvalidValueError) as error:
        words = str(error)
        if isinstance(error, InvalidSettingError):
            words = f"{error.setting}: {error.problem}"
        return UnusableRecipe(problem=f"no recipe of a run: {words}", other_release=False)
    try:
        recipe = check_recipe(_BEFORE | stored.recipe)
    except UnreelError as error:
        problem = f"this release cannot use it ({error})"
        return UnusableRecipe(problem=problem, other_release=True)
    for instrument in recipe.instrument.read_instruments:
        if str(instrument) == stored.instrument:
            return StoredRecipe(
                reviewer=stored.reviewer,
                instrument=instrument,
                recipe=recipe,
                benchmark=stored.benchmark,
                outside=stored.allow_outside,
            )
    now = recipe.instrument.instrument
    problem = f"the run asked {stored.instrument!a}, and this release asks {now}"
    return UnusableRecipe(problem=problem, other_release=True)
