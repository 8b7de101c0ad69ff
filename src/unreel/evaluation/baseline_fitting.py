"""Fitting of baseline reviewers on the benchmark before they answer questions about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unreel.core.clip import Clip, Origin
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.engine.storage_access import ClipAccessSettings, provide_local_clip_file
from unreel.evaluation.recipe import EvalRecipe
from unreel.media.access import open_media_reader
from unreel.reviewers.ask import build_clip_input
from unreel.reviewers.contract import InputKind
from unreel.reviewers.factory import ReviewerFactory, wrap_open_reviewer
from unreel.reviewers.registry import REVIEWERS

if TYPE_CHECKING:  # importing the baselines takes a second
    from unreel.reviewers.baselines.fitting import BaselineTrainingClip


@dataclass(frozen=True, slots=True)
class LabelledClip:
    """Clip with its origin and its group of related clips, for fitting a baseline."""

    clip: Clip
    origin: Origin
    group: str


def build_reviewer_factory(
    recipe: EvalRecipe,
    *,
    access: ClipAccessSettings,
    learn_from: Callable[[], Iterator[LabelledClip]],
) -> ReviewerFactory:
    """Return the reviewer factory of `recipe`; a baseline is fitted on the clips of `learn_from`."""
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
    clips: Iterator[LabelledClip],
    access: ClipAccessSettings,
    *,
    condition: Condition,
    wants: frozenset[InputKind],
) -> Iterator["BaselineTrainingClip"]:
    from unreel.reviewers.baselines.fitting import BaselineTrainingClip

    with open_media_reader(access.settings, trusted=access.trusted) as reader:
        for item in clips:
            with provide_local_clip_file(item.clip.location, access) as file:
                exhibit = build_clip_input(
                    item.clip, file, reader=reader, condition=condition, wants=wants
                )
            if isinstance(exhibit, Failure):
                continue  # a clip without features is skipped; its question ends as a failure
            yield BaselineTrainingClip(exhibit=exhibit, origin=item.origin, group=item.group)
