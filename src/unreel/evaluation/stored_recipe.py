"""Recipe of a run and identity of its benchmark, stored next to its tables."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from unreel.benchmarks.cells import is_utf8_encodable
from unreel.benchmarks.statistics import BenchmarkIdentity
from unreel.core.errors import (
    InvalidSettingError,
    InvalidValueError,
    UnreadableSourceError,
    UnreelError,
)
from unreel.core.input_files import RECIPE_BYTES, parse_json_object
from unreel.core.question import Instrument, list_differing_condition_fields
from unreel.engine.location import StorageLocation
from unreel.evaluation.recipe import EvalRecipe, validate_eval_recipe
from unreel.recipes.validation import Count, RecipeSection, Text, validate_recipe_sections

_SHOWN = 10
"""Number of characters of a fingerprint in messages, enough to distinguish two."""


class StoredBenchmarkReference(RecipeSection):
    """Stored reference of a run to its benchmark: paths, fingerprint and number of entries."""

    at: Annotated[Text, Field(min_length=1)]
    """Absolute path of the benchmark when the recipe was stored."""
    from_run: Annotated[Text, Field(min_length=1)] | None = None
    """Path relative to the run's folder, if that is local; it stays valid if both are moved together."""
    fingerprint: Annotated[str, Field(pattern=r"^[0-9]{1,4}-[0-9a-f]{64}$")] | None = None
    """Fingerprint, see `unreel.benchmarks.statistics`; `None` if the benchmark was not read to its end."""
    n_entries: Count | None = None

    @property
    def identity(self) -> BenchmarkIdentity | None:
        """Return the benchmark's identity at the time of the run."""
        if self.fingerprint is None or self.n_entries is None:
            return None
        return BenchmarkIdentity(fingerprint=self.fingerprint, n_entries=self.n_entries)

    def places(self, location: StorageLocation) -> list[Path]:
        """Return the stored paths at which the benchmark exists now, most likely first."""
        beside = [location.path / self.from_run] if location.is_local and self.from_run else []
        existing = [path for path in (*beside, Path(self.at)) if os.path.exists(path)]  # noqa: PTH110  no error for odd names
        return list({os.path.realpath(path): path for path in reversed(existing)}.values())[::-1]

    def find(self, location: StorageLocation) -> Path:
        """Return the benchmark's current path; raise `UnreadableSourceError` if it is at no stored one."""
        if paths := self.places(location):
            return paths[0]
        raise UnreadableSourceError(
            self.at,
            f"no such file or folder, and the benchmark of {location.uri} was there",
            "Name its present location: --benchmark PATH",
        )


def build_benchmark_reference(
    path: Path, location: StorageLocation, identity: BenchmarkIdentity | None
) -> StoredBenchmarkReference:
    """Build the reference to the benchmark at `path` that the run at `location` stores."""
    at = os.path.abspath(path)  # noqa: PTH100  links stay as the person named them
    from_run = None
    if location.is_local:
        from_run = os.path.relpath(os.path.realpath(path), os.path.realpath(location.path))
    return StoredBenchmarkReference(
        at=at if is_utf8_encodable(at) else str(path),
        from_run=from_run if from_run and is_utf8_encodable(from_run) else None,
        fingerprint=None if identity is None else identity.fingerprint,
        n_entries=None if identity is None else identity.n_entries,
    )


def format_benchmark_change(
    earlier_identity: BenchmarkIdentity, identity: BenchmarkIdentity
) -> str:
    """Return a text on how a benchmark has changed; empty if it has not, or if that is unknown."""
    schemes = {each.fingerprint.partition("-")[0] for each in (earlier_identity, identity)}
    if earlier_identity.fingerprint == identity.fingerprint or len(schemes) > 1:
        return ""
    rows = f"{earlier_identity.n_entries:,} usable rows then, {identity.n_entries:,} now"
    if earlier_identity.n_entries == identity.n_entries:
        rows = f"{identity.n_entries:,} usable rows then and now, but other names or another truth"
    hashes = " then, ".join(
        each.fingerprint.partition("-")[2][:_SHOWN] for each in (earlier_identity, identity)
    )
    return f"{rows} (fingerprint {hashes} now)"


def require_unchanged_benchmark(
    stored: StoredBenchmarkReference,
    identity: BenchmarkIdentity,
    *,
    path: Path,
    location: StorageLocation,
) -> None:
    """Require that the benchmark of a run has not changed since its questions were sent.

    Raise `InvalidSettingError` if the benchmark at `path` differs from the one of the run.
    """
    if stored.identity is None or not (
        differs := format_benchmark_change(stored.identity, identity)
    ):
        return
    candidates = [other for other in stored.places(location) if not other.samefile(path)]
    other = f"Try --benchmark {candidates[0]}, or name" if candidates else "Name"
    raise InvalidSettingError(
        "benchmark",
        f"{path} is not the original benchmark of {location.uri}: {differs}",
        f"{other} the original with --benchmark PATH, or use the present one: --accept-changed",
    )


RECIPE_FILE = "recipe.json"
BATCHES_FILE = "batches.json"
"""File of the batches that a provider is asked to answer for a run."""


class _RecipeDocument(RecipeSection):
    reviewer: Annotated[Text, Field(min_length=1)]
    instrument: Text
    recipe: dict[str, Any]
    benchmark: StoredBenchmarkReference | None = None
    allow_outside: bool = False
    prompts: dict[str, dict[str, Any]] = Field(default={})
    """References of checkpoints' own prompts by the name of the variant, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecipe:
    """Validated content of a run's recipe file."""

    reviewer: str
    """Reviewer name in the run's answers."""
    instrument: Instrument
    """Protocol and version of the run's questions: that of this release, or an earlier one that it can still score."""
    recipe: EvalRecipe
    benchmark: StoredBenchmarkReference | None
    """Location and fingerprint of the benchmark; `None` if an earlier release began the run."""
    outside: bool
    """Whether the benchmark's table may name files outside its folder; the user must allow it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableRecipe:
    """Reason why a run's recipe file cannot be used: the file is damaged, or another release wrote it."""

    problem: str
    other_release: bool
    """Whether the file is readable, so that another release may be able to use it."""

    def error(self, run: str) -> UnreadableSourceError:
        remedy = f"See what is left with `unreel runs check {run}`"
        if self.other_release:
            remedy = "Use the release that wrote it: upgrade unreel if that is a later one"
        return UnreadableSourceError(f"{run}/{RECIPE_FILE}", self.problem, remedy)


def find_run_recipe(location: StorageLocation) -> StoredRecipe | UnusableRecipe | None:
    """Read the recipe file of `location`; return its content, its problem, or `None` if it is missing."""
    try:
        text = location.read(RECIPE_FILE, most=RECIPE_BYTES)
    except UnreadableSourceError as error:
        return UnusableRecipe(problem=error.problem, other_release=False)
    except OSError:
        return None
    try:
        stored = validate_recipe_sections(_RecipeDocument, parse_json_object(text))
    except (InvalidSettingError, InvalidValueError) as error:
        detail = str(error)
        if isinstance(error, InvalidSettingError):
            detail = f"{error.setting}: {error.problem}"
        return UnusableRecipe(problem=f"no recipe of a run: {detail}", other_release=False)
    try:
        recipe = validate_eval_recipe(stored.recipe)
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
    problem = f"the run uses {stored.instrument!a}, and this release uses {now}"
    return UnusableRecipe(problem=problem, other_release=True)


def find_recipe_changes(earlier_recipe: EvalRecipe, recipe: EvalRecipe) -> list[tuple[str, bool]]:
    """Return the settings that differ between two recipes; concurrency and timeouts are ignored.

    With each text is whether the run with the change still includes all earlier questions.
    """
    changes = []
    samples = [
        (each.split, *(() if each.limit is None else (each.limit, each.choice)))
        for each in (earlier_recipe, recipe)
    ]
    if samples[0] != samples[1]:
        if recipe.limit is None:
            grows = recipe.split in {None, earlier_recipe.split}
        else:  # a larger sample includes smaller ones
            same = (recipe.split, recipe.choice) == (earlier_recipe.split, earlier_recipe.choice)
            earlier_limit = earlier_recipe.limit
            grows = same and earlier_limit is not None and earlier_limit <= recipe.limit
        before, now = (_format_sample_extent(each) for each in (earlier_recipe, recipe))
        changes.append((f"{before} before, {now} now", grows))
    if earlier_recipe.seed != recipe.seed:
        changes.append((f"seed {earlier_recipe.seed} before, {recipe.seed} now", False))
    earlier, present = earlier_recipe.conditions, recipe.conditions
    if {*earlier} != {*present}:
        names = list_differing_condition_fields([*earlier, *present])
        before, now = (
            " and ".join(
                ",".join(f"{name}={getattr(condition, name)}" for name in names)
                for condition in conditions
            )
            for conditions in (earlier, present)
        )
        changes.append((f"{before} before, {now} now", {*earlier} <= {*present}))
    return changes


def _format_sample_extent(recipe: EvalRecipe) -> str:
    text = "all clips" if recipe.limit is None else f"{recipe.limit} clips ({recipe.choice})"
    return text if recipe.split is None else f"{text} of the split {recipe.split}"


def read_run_recipe(location: StorageLocation) -> StoredRecipe | None:
    """Read the stored recipe of the run at `location`; `None` if it is missing.

    Raise `UnreadableSourceError` if the recipe is damaged, or another release wrote it.
    """
    stored = find_run_recipe(location)
    if isinstance(stored, UnusableRecipe):
        raise stored.error(location.uri)
    return stored
