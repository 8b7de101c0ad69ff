"""Recipe of a run, stored to decide whether a new call may resume or extend the run."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks.statistics import BenchmarkIdentity
from unreel.core.errors import InvalidSettingError
from unreel.core.question import Condition, list_differing_condition_fields
from unreel.engine.location import StorageLocation
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.stored_recipe import (
    RECIPE_FILE,
    StoredRecipe,
    UnusableRecipe,
    build_benchmark_reference,
    find_run_recipe,
    format_benchmark_change,
)
from unreel.reviewers.config import ReviewerSection

_OUT: Final = "out"
Identify = Callable[[StoredRecipe], BenchmarkIdentity | None]
"""Function that returns the identity of the current benchmark, read with the settings of the stored run."""


@dataclass(frozen=True, slots=True)
class RecipeSettingChange:
    """Change of one setting between the stored recipe of a run and the requested one."""

    told: str
    grows: bool
    """Whether the run with the change still includes all earlier questions."""


def find_recipe_changes(before: EvalRecipe, now: EvalRecipe) -> list[RecipeSettingChange]:
    """Return the settings that differ between two recipes; concurrency and timeouts are ignored."""
    diffs = []
    if _get_sample_extent(before) != _get_sample_extent(now):
        text = f"{_format_sample_extent(before)} before, {_format_sample_extent(now)} now"
        diffs.append(RecipeSettingChange(text, _contains_sample(now, before)))
    if before.seed != now.seed:
        diffs.append(RecipeSettingChange(f"seed {before.seed} before, {now.seed} now", grows=False))
    if {*before.conditions} != {*now.conditions}:
        parts = list_differing_condition_fields([*before.conditions, *now.conditions])
        text = " before, ".join(
            _format_condition_parts(recipe.conditions, parts) for recipe in (before, now)
        )
        diffs.append(RecipeSettingChange(f"{text} now", {*before.conditions} <= {*now.conditions}))
    return diffs


def _format_condition_parts(conditions: Sequence[Condition], parts: Sequence[str]) -> str:
    return " and ".join(
        ",".join(f"{part}={getattr(condition, part)}" for part in parts) for condition in conditions
    )


def _get_sample_extent(recipe: EvalRecipe) -> tuple[object, ...]:
    sample = () if recipe.limit is None else (recipe.limit, recipe.choice)
    return (recipe.split, *sample)


def _format_sample_extent(recipe: EvalRecipe) -> str:
    text = "all clips" if recipe.limit is None else f"{recipe.limit} clips ({recipe.choice})"
    return text if recipe.split is None else f"{text} of the split {recipe.split}"


def _contains_sample(more: EvalRecipe, less: EvalRecipe) -> bool:
    """Return whether `more` contains every clip of `less`; larger samples include smaller ones."""
    if more.limit is None:
        return more.split in {None, less.split}
    same = (more.split, more.choice) == (less.split, less.choice)
    return same and less.limit is not None and less.limit <= more.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecipeStore:
    """Store of a run's recipe; it rejects another run's calls, unless there is no answer yet."""

    place: StorageLocation
    recipe: EvalRecipe
    """The requested recipe."""
    outside: bool
    """Whether the benchmark's table may name files outside its folder."""
    accept_changed: bool
    """Whether the user accepts that the settings or the benchmark differ from those of the stored run."""
    before: StoredRecipe | None
    """Recipe of the answers stored at `place`; `None` if there are no answers."""

    def take_up(
        self,
        reviewer: str | None,
        identify: Identify,
        on_note: Callable[[str], None] = lambda _note: None,
    ) -> None:
        """Check that the requested recipe may resume the stored run.

        Args:
            reviewer: Name in the answers, if it is already known.
            identify: Function that identifies the benchmark; called only if needed.
            on_note: Callback with messages about a resumed run.

        Raises:
            InvalidSettingError: The run has another reviewer, another benchmark or other settings.
        """
        before = self.before
        if before is None:
            return
        if reviewer is not None:
            self.require_reviewer(reviewer)
        changes = find_recipe_changes(before.recipe, self.recipe)
        refused = [change.told for change in changes if not change.grows]
        if before.outside and not self.outside:
            refused.append("files outside the table's folder before (--allow-outside), none now")
        if refused and not self.accept_changed:
            problem = f"{self.place.uri} contains a run with other settings: {'; '.join(refused)}"
            raise InvalidSettingError(
                _OUT, problem, self._remedy(f"`unreel eval --out {self.place.uri}` asks as before")
            )
        self._compare_benchmarks(before, identify, on_note)
        if grown := [change.told for change in changes if change.grows]:
            on_note(f"the run in {self.place.uri} grows: {'; '.join(grown)}")
        old, new = (_get_reviewer_name(recipe.reviewer) for recipe in (before.recipe, self.recipe))
        if old != new:
            on_note(
                f"the run was started with {old} and continues with {new}, assumed to be the same reviewer"
            )

    def require_reviewer(self, reviewer: str) -> None:
        """Raise an error if the run has answers of another reviewer or another protocol version."""
        before, recipe = self.before, self.recipe
        instrument = recipe.instrument.instrument
        if before is None or (before.instrument, before.reviewer) == (instrument, reviewer):
            return
        text = f"{self.place.uri} contains a run of {before.reviewer}"
        problem, remedy = f"{text}, not of {reviewer}", "Name another folder, or the same recipe"
        if before.instrument != instrument:
            problem = f"{text} with the protocol {before.instrument}"
            remedy = f"Name another folder: this release uses {instrument}. It can score the stored answers"
        elif recipe.reviewer.learns and before.recipe.reviewer.model == recipe.reviewer.model:
            problem = f"{text}; with its present clips, {recipe.reviewer.model} is {reviewer}"
            remedy = "Restore the clips that it was trained on, or name another folder with --out"
        raise InvalidSettingError(_OUT, problem, remedy)

    def keep(self, reviewer: str, identity: BenchmarkIdentity | None) -> None:
        """Write the requested recipe to the run; raise an error if the run is of another reviewer."""
        self.require_reviewer(reviewer)
        reference = build_benchmark_reference(Path(self.recipe.benchmark), self.place, identity)
        document: dict[str, Any] = {
            "reviewer": reviewer,
            "instrument": str(self.recipe.instrument.instrument),
            "recipe": self.recipe.stored(),
            "benchmark": reference.model_dump(mode="json", exclude_none=True),
        }
        if self.outside:
            document["allow_outside"] = True
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
        self.place.put(RECIPE_FILE, text.encode())

    def _compare_benchmarks(
        self,
        before: StoredRecipe,
        identify: Identify,
        on_note: Callable[[str], None],
    ) -> None:
        stored, uri = before.benchmark, self.place.uri
        if stored is None or stored.identity is None:
            note = f"the benchmark of {uri} is not known: its recipe has no fingerprint"
            on_note(f"{note}. It is assumed to be {self.recipe.benchmark}")
            return
        if self.accept_changed:
            return
        now = identify(before)
        if differs := "" if now is None else format_benchmark_change(stored.identity, now):
            problem = f"{uri} contains a run over another benchmark, {stored.at}: {differs}"
            remedy = self._remedy("restore the original benchmark")
            raise InvalidSettingError(_OUT, problem, remedy)

    def _remedy(self, otherwise: str) -> str:
        return (
            f"Keep this in another folder, for example --out {self.place.uri.rstrip('/')}-2; or {otherwise}; or "
            "change the run: --accept-changed asks the unanswered questions about the present files"
        )


def read_run_recipe(location: StorageLocation) -> StoredRecipe | None:
    """Read the stored recipe of the run at `location`; `None` if it is missing.

    Raises:
        UnreadableSourceError: The recipe is damaged, or another release wrote it.
    """
    before = find_run_recipe(location)
    if isinstance(before, UnusableRecipe):
        raise before.error(location.uri)
    return before


def _get_reviewer_name(section: ReviewerSection) -> str:
    return section.model if section.recorded is None else section.recorded
