"""Floors that learn: a small classifier whose answer for a clip comes from a fit without its creator."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from unreel.core.answer import Reply
from unreel.core.clip import ClipId, Generated, Origin
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.reviewers.contract import Exhibit, Material, Sheet
from unreel.reviewers.floors.phrasing import phrase

Features = Mapping[str, float]
"""Numbers by name; a name that is absent is 0, so `codec=h264` can stand for itself."""
Extract = Callable[[Exhibit], Features | Failure]

N_FOLDS: Final = 5
"""Real clips have no creator: they are dealt to this many folds by their group."""
RIDGE: Final = 1.0
LEAST_CREATORS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A clip with its truth, as a floor learns from it. Clips of one scene share a `group`."""

    exhibit: Exhibit
    origin: Origin
    group: str = ""

    @property
    def creator(self) -> str | None:
        """Who made it; `None` for a real clip."""
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
        """How probable it holds the clip to be generated, both sides being equally frequent."""
        values = np.array([features.get(name, 0.0) for name in self.names])
        scaled = (values - self.centre) / self.spread
        return float(expit(scaled @ self.weights + self.intercept))


def fit_logistic(rows: Sequence[tuple[Features, bool]], *, ridge: float = RIDGE) -> LogisticModel:
    """Fit to `(features, is generated)`; both sides weigh the same however many clips they have."""
    names = tuple(sorted({name for features, _ in rows for name in features}))
    table = np.array([[features.get(name, 0.0) for name in names] for features, _ in rows])
    truth = np.array([float(generated) for _, generated in rows])
    centre = table.mean(axis=0)
    deviation = table.std(axis=0)
    spread = np.where(deviation > 0, deviation, 1.0)
    scaled = (table - centre) / spread
    share = truth.mean()
    weight = np.where(truth > 0, 0.5 / share, 0.5 / (1 - share))

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = scaled @ point[:-1] + point[-1]
        excess = weight * (expit(margin) - truth)
        value = weight @ (np.logaddexp(0, margin) - truth * margin)
        gradient = np.append(scaled.T @ excess + ridge * point[:-1], excess.sum())
        return float(value + ridge / 2 * point[:-1] @ point[:-1]), gradient

    found = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B")
    return LogisticModel(
        names=names,
        centre=centre,
        spread=spread,
        weights=found.x[:-1],
        intercept=float(found.x[-1]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedReviewer:
    """A floor after its fit. A clip it was fitted on is judged by a model without that clip's creator."""

    name: str
    wants: frozenset[Material]
    extract: Extract = field(repr=False)
    models: Mapping[str, LogisticModel] = field(repr=False)
    """By what was held out; `""` saw everything and judges strangers."""
    held_out: Mapping[ClipId, str] = field(repr=False)

    def box_space(self, exhibit: Exhibit) -> str:  # noqa: ARG002  it draws no boxes
        return "unit"

    async def answer(self, sheet: Sheet) -> Reply | Failure:
        beliefs = []
        for exhibit in sheet.exhibits:
            features = self.extract(exhibit)
            if isinstance(features, Failure):
                return features
            model = self.models[self.held_out.get(exhibit.clip.id, "")]
            beliefs.append(model.p_generated(features))
        return phrase(sheet, beliefs)

    async def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class _Learned:
    clip: ClipId
    features: Features
    creator: str | None
    group: str
    part: str
    """What is held out when this clip is judged: its creator, or a fold of real clips."""


def cross_fit(
    specimens: Iterable[Specimen],
    *,
    kind: str,
    wants: frozenset[Material],
    extract: Extract,
    seed: int,
) -> FittedReviewer:
    """Fit one model for each creator and each fold of real clips, and one on everything.

    The model for a part saw no clip of it, and no clip that shares a scene with one of it.
    Specimens without features teach nothing; their questions end as failures.
    """
    learned = [row for s in specimens if (row := _learn(s, extract, seed=seed)) is not None]
    creators = {row.creator for row in learned if row.creator is not None}
    reals = {row.part for row in learned if row.creator is None}
    if len(creators) < LEAST_CREATORS or len(reals) < LEAST_CREATORS:
        msg = (
            f"the {kind} floor needs two creators and real clips of two groups at least, got "
            f"{len(creators)} and {len(reals)}. Add clips, or use another floor"
        )
        raise InvalidValueError(msg)
    models = {part: _fit_without(learned, part) for part in {"", *(row.part for row in learned)}}
    fitted_on = digest(str(seed), *sorted(f"{row.clip} {row.part}" for row in learned))
    return FittedReviewer(
        name=f"{kind}@{fitted_on[:8]}",
        wants=wants,
        extract=extract,
        models=models,
        held_out={row.clip: row.part for row in learned},
    )


def _learn(specimen: Specimen, extract: Extract, *, seed: int) -> _Learned | None:
    features = extract(specimen.exhibit)
    if isinstance(features, Failure):
        return None
    creator = specimen.creator
    clip = specimen.exhibit.clip.id
    group = specimen.group or clip
    fold = int(digest("fold", str(seed), group), 16) % N_FOLDS
    part = f"real {fold}" if creator is None else f"creator {creator}"
    return _Learned(clip, features, creator, group, part)


def _fit_without(learned: Sequence[_Learned], part: str) -> LogisticModel:
    scenes = {row.group for row in learned if row.part == part}
    kept = [row for row in learned if row.part != part and row.group not in scenes]
    rows = [(row.features, row.creator is not None) for row in kept]
    if len({generated for _, generated in rows}) < LEAST_CREATORS:
        msg = f"nothing of one side is left without {part!r}. Add clips, or split the groups finer"
        raise InvalidValueError(msg)
    return fit_logistic(rows)
