"""Baselines that are fitted on a benchmark: each clip is scored without its creator and scene."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unreel.core.answer import Reply
from unreel.core.clip import ClipId, Generated, Origin
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Unmeasured
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.baselines.constant import format_baseline_answer
from unreel.reviewers.baselines.folds import ClipCreatorAndScene, assign_clip_folds
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest

Features = Mapping[str, float]
"""Feature values by name; absent features are 0, so `codec=h264` can be an indicator variable."""
Extract = Callable[[ClipInput], Features | Failure]

RIDGE = 1.0
_N_LABELS = 2
_STEPS = 50
"""Maximum number of Newton steps; five or six are usual."""
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTrainingClip:
    """A clip with its ground truth, on which a baseline is fitted. Clips of one scene share a `group`."""

    clip_input: ClipInput
    origin: Origin
    group: str = ""

    @property
    def creator(self) -> str | None:
        """Return the creator; `None` for a real clip."""
        return self.origin.creator if isinstance(self.origin, Generated) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticModel:
    """A ridge-regularised logistic regression on standardised features."""

    names: tuple[str, ...]
    centre: NDArray[np.float64] = field(repr=False)
    spread: NDArray[np.float64] = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)
    intercept: float

    def p_generated(self, features: Features) -> float:
        """Return the probability that the clip is generated, for balanced labels."""
        values = np.array([features.get(name, 0.0) for name in self.names])
        scaled = (values - self.centre) / self.spread
        return float(expit(scaled @ self.weights + self.intercept))


def fit_logistic_model(
    rows: Sequence[tuple[Features, bool]], *, ridge: float = RIDGE
) -> LogisticModel:
    """Fit a logistic regression to (features, generated) with equal total weight of both labels."""
    names = tuple(sorted({name for features, _ in rows for name in features}))
    table = np.array([[features.get(name, 0.0) for name in names] for features, _ in rows])
    truth = np.array([float(generated) for _, generated in rows])
    centre = table.mean(axis=0)
    deviation = table.std(axis=0)
    spread = np.where(deviation > 0, deviation, 1.0)
    scaled = (table - centre) / spread
    fraction = truth.mean()
    weight = np.where(truth > 0, 0.5 / fraction, 0.5 / (1 - fraction))

    design = np.column_stack([scaled, np.ones(len(rows))])
    penalty = np.append(np.full(len(names), ridge), 0.0)

    def loss(point: NDArray[np.float64]) -> float:
        margin = design @ point
        return float(weight @ (np.logaddexp(0, margin) - truth * margin) + penalty @ point**2 / 2)

    point = np.zeros(len(names) + 1)
    for _ in range(_STEPS):
        fitted = expit(design @ point)
        gradient = design.T @ (weight * (fitted - truth)) + penalty * point
        hessian = (design.T * (weight * fitted * (1 - fitted))) @ design + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        while loss(point - step) > loss(point) + _CLOSE:
            step /= 2
        point = point - step
        if np.abs(step).max() < _CLOSE:
            break
    return LogisticModel(
        names=names, centre=centre, spread=spread, weights=point[:-1], intercept=float(point[-1])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedBaselineReviewer:
    """Baseline fitted on a benchmark; its clips are scored without their creator and scene."""

    name: str
    wants: frozenset[InputKind]
    extract: Extract = field(repr=False)
    models: Mapping[str, LogisticModel] = field(repr=False)
    """Models by held-out cell; the model `""` was fitted on all clips and scores all other clips."""
    held_out: Mapping[ClipId, str] = field(repr=False)

    def box_space(self, clip_input: ClipInput) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        posteriors = []
        for clip_input in request.inputs:
            features = self.extract(clip_input)
            if isinstance(features, Failure):
                return features
            model = self.models.get(self.held_out.get(clip_input.clip.id, ""))
            if model is None:
                return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {_NOTHING_LEFT}")
            posteriors.append(model.p_generated(features))
        return format_baseline_answer(request, posteriors)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


_NOTHING_LEFT = (
    "without the creator and the scenes of this clip nothing of one side is left to learn from"
)


def cross_fit_baseline(
    clips: Iterable[BaselineTrainingClip],
    *,
    kind: str,
    wants: frozenset[InputKind],
    extract: Extract,
    seed: int,
) -> FittedBaselineReviewer:
    """Fit a baseline: one model on all clips, and one per cell of held-out creators and scenes.

    Clips whose features cannot be extracted are skipped. A question about a clip fails if the clip
    has no features, or if too few clips remain to fit the model of its cell. Raise
    `InvalidValueError` if there are too few scenes, or no cell leaves clips of both labels.
    """
    learned: list[tuple[ClipId, Features, ClipCreatorAndScene]] = []
    for training_clip in clips:
        features = extract(training_clip.clip_input)
        if not isinstance(features, Failure):
            clip, creator = training_clip.clip_input.clip.id, training_clip.creator
            owner = ClipCreatorAndScene.of(clip, creator=creator, group=training_clip.group)
            learned.append((clip, features, owner))
    learned.sort(key=lambda row: row[0])
    folding = assign_clip_folds([owner for _, _, owner in learned], seed=seed)
    if isinstance(folding, Unmeasured):
        raise InvalidValueError(
            f"the {kind} baseline cannot be fitted: {folding.why}; or use another baseline"
        )
    rows = [(features, owner.creator is not None) for _, features, owner in learned]
    models = {"": fit_logistic_model(rows)}
    for part, fold in folding.cells():
        input_spec = [rows[i] for i in np.flatnonzero(folding.teachers(part, fold))]
        if len({generated for _, generated in input_spec}) == _N_LABELS:
            models[_format_fold_cell_name(part, fold)] = fit_logistic_model(input_spec)
    if len(models) == 1:
        raise InvalidValueError(
            f"the {kind} baseline cannot be fitted: without a creator and a fold of scenes, nothing of one "
            "label is left. Add creators or scenes, or use another baseline"
        )
    cells = map(_format_fold_cell_name, folding.parts.tolist(), folding.folds.tolist())
    held_out = {clip: cell for (clip, _, _), cell in zip(learned, cells, strict=True)}
    fitted_on = digest(str(seed), *(f"{clip} {cell}" for clip, cell in held_out.items()))
    return FittedBaselineReviewer(
        name=f"{kind}@{fitted_on[:8]}",
        wants=wants,
        extract=extract,
        models=models,
        held_out=held_out,
    )


def _format_fold_cell_name(part: int, fold: int) -> str:
    return f"part {part} fold {fold}"
