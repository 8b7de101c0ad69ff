"""Baselines that are fitted on the benchmark before they answer about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unreel.core.clip import Clip, Origin
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.engine.storage_access import StorageAccess, local_copy
from unreel.evaluation.recipe import EvalRecipe
from unreel.media.access import media_reader
from unreel.reviewers.clip_input import show
from unreel.reviewers.contract import InputKind
from unreel.reviewers.factory import ReviewerFactory, wrap_open_reviewer
from unreel.reviewers.registry import REVIEWERS

if TYPE_CHECKING:  # the learners take a second to load
    from unreel.reviewers.baselines.fitting import TrainingClip


@dataclass(frozen=True, slots=True)
class LearnableClip:
    """A clip for fitting a baseline."""

    clip: Clip
    origin: Origin
    group: str


def describe_reviewer(
    recipe: EvalRecipe, *, access: StorageAccess, learn_from: Callable[[], Iterator[LearnableClip]]
) -> ReviewerFactory:
    """Return the reviewer of `recipe`; baselines are fitted on `learn_from` in this process."""
    section = recipe.reviewer
    section.require_taught([recipe.protocol])
    if not section.learns:
        weak_cage = bool(access.settings.weak_cage)
        return section.opener(
            key_hosts=access.settings.key_hosts, seed=recipe.seed, weak_cage=weak_cage
        )
    fit: Any = REVIEWERS.load(section.model)
    wants = frozenset({InputKind.FRAMES}) if section.model == "motion" else frozenset()
    specimens = _iter_training_clips(
        learn_from(), access, condition=recipe.conditions[0], wants=wants
    )
    return wrap_open_reviewer(fit(specimens, seed=recipe.seed))


def _iter_training_clips(
    clips: Iterator[LearnableClip],
    access: StorageAccess,
    *,
    condition: Condition,
    wants: frozenset[InputKind],
) -> Iterator["TrainingClip"]:
    from unreel.reviewers.baselines.fitting import TrainingClip

    with media_reader(access.settings, trusted=access.trusted) as reader:
        for found in clips:
            with local_copy(found.clip.location, access) as file:
                exhibit = show(found.clip, file, reader=reader, condition=condition, wants=wants)
            if isinstance(exhibit, Failure):
                continue  # it has no features; its question ends as a failure of its own
            yield TrainingClip(exhibit=exhibit, origin=found.origin, group=found.group)
