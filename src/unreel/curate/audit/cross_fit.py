"""How well a model tells clips that it has not seen, by creators and scenes that it has not seen.

Generated clips are held out by creator, real ones by fold. Each pair of a creator and a fold has its own model, fitted without
both and without every clip that shares a scene with one of them; it judges that creator's clips against that fold's. So every
generated clip meets every real one exactly once, in front of a model that knows neither: labels dealt at random give 0.5 on
average. One score per clip, each from a model without that clip's side of the fold, would give less than 0.5, because
what is held out drags the rest of its side the other way.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from unreel.core.estimate import Measured, Unmeasured
from unreel.core.identity import digest
from unreel.reviewers.floors.fitting import Features, LogisticModel, fit_logistic
from unreel.stats.bootstrap import Limits, bootstrap
from unreel.stats.sample import Array, Sample

N_FOLDS: Final = 5
"""Real clips have no creator: they are dealt to this many folds by their scene."""
MOST_PARTS: Final = 10
"""Creators beyond this many share a part; no clip ever meets a model that saw its creator."""
RIDGE: Final = 4.0
LEAST_CREATORS: Final = 6
"""With fewer creators, creators cannot be drawn anew: the interval draws clips."""
CLIPS_PER_FEATURE: Final = 5
_LEAST_FEATURES: Final = 3
_LEAST_SPREAD: Final = 0.05
_SIDES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A clip as numbers, with its truth."""

    name: str
    creator: str | None
    group: str
    features: Features


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """Every generated clip against every real clip."""

    generated: tuple[Subject, ...]
    real: tuple[Subject, ...]
    wins: Array
    """1 where the generated clip (row) seemed more generated than the real one (column), 0.5 for a tie."""
    models: Mapping[str, tuple[LogisticModel, ...]]
    """The models that judged each clip, by its name."""

    def told_from(self) -> dict[str, float]:
        """Share of the other side's clips that each clip was told from, by its name."""
        made = zip(self.generated, self.wins.mean(axis=1), strict=True)
        filmed = zip(self.real, 1 - self.wins.mean(axis=0), strict=True)
        return {clip.name: float(share) for clip, share in (*made, *filmed)}

    def auc(self, *, seed: int) -> Measured:
        """Chance that a generated clip seems more generated than a real one; n counts clips."""
        return pair_auc(self.wins, clusters=self._clusters(), seed=seed)

    def _clusters(self) -> list[str]:
        creators = {clip.creator for clip in self.generated}
        by_creator = len(creators) >= LEAST_CREATORS
        made = [f"by {clip.creator}" if by_creator else clip.name for clip in self.generated]
        return made + [f"scene {clip.group}" if clip.group else clip.name for clip in self.real]


def pair_auc(wins: Array, *, clusters: Sequence[str], seed: int) -> Measured:
    """Mean of `wins`, with an interval that draws clusters of rows and of columns anew."""
    n_made, n_real = wins.shape
    index = np.arange(n_made + n_real, dtype=np.float64)
    sample = Sample.of((index,), list(clusters))

    def area(weights: Array) -> Array:
        made, real = weights[:, :n_made], weights[:, n_made:]
        met = made.sum(axis=1) * real.sum(axis=1)
        met[met == 0] = np.nan
        met_by_each = np.einsum("rg,gk->rk", made, wins)
        won: Array = np.einsum("rk,rk->r", met_by_each, real)
        share: Array = won / met
        return share

    n_free = min(len(set(clusters[:n_made])), len(set(clusters[n_made:])))
    return bootstrap(area, sample, seed=seed, limits=Limits(0.0, 1.0, n_free))


def cross_fit(subjects: Sequence[Subject], *, seed: int) -> CrossFit | Unmeasured:
    """Judge every clip of `subjects` by models without its creator and its scene."""
    generated = tuple(clip for clip in subjects if clip.creator is not None)
    real = tuple(clip for clip in subjects if clip.creator is None)
    parts = _parts(generated, seed=seed)
    folds = _deal([clip.group or clip.name for clip in real], N_FOLDS, seed=seed)
    if min(len(set(parts)), len(set(folds))) < _SIDES:
        return Unmeasured(
            f"{len(generated)} generated and {len(real)} real clips are too few to hold some out"
        )
    wins = np.full((len(generated), len(real)), 0.5, np.float64)
    models: dict[str, list[LogisticModel]] = {}
    for part, fold in product(sorted(set(parts)), sorted(set(folds))):
        rows = [i for i, own in enumerate(parts) if own == part]
        columns = [i for i, own in enumerate(folds) if own == fold]
        judged = [generated[i] for i in rows], [real[i] for i in columns]
        model = _fit_without(subjects, (*judged[0], *judged[1]))
        if model is None:
            continue  # the pairs stay tied: nothing could be learned without them
        made, filmed = (margins(model, side) for side in judged)
        above = np.sign(made[:, None] - filmed[None])
        wins[np.ix_(rows, columns)] = (1 + above) / 2
        for clip in (*judged[0], *judged[1]):
            models.setdefault(clip.name, []).append(model)
    return CrossFit(generated, real, wins, {name: tuple(own) for name, own in models.items()})


def margins(model: LogisticModel, subjects: Sequence[Subject]) -> Array:
    """How far the model leans to generated for each clip: log odds, both sides equally frequent."""
    total: Array = pushes(model, subjects).sum(axis=1) + model.intercept
    return total


def pushes(model: LogisticModel, subjects: Sequence[Subject]) -> Array:
    """What each feature of the model adds to the lean of each clip (one row each)."""
    table = np.array([[clip.features.get(name, 0.0) for name in model.names] for clip in subjects])
    pushed: Array = (table - model.centre) / model.spread * model.weights
    return pushed


def _fit_without(subjects: Sequence[Subject], judged: Sequence[Subject]) -> LogisticModel | None:
    names = {clip.name for clip in judged}
    scenes = {clip.group for clip in judged if clip.group}
    kept = [clip for clip in subjects if clip.name not in names and clip.group not in scenes]
    if len({clip.creator is None for clip in kept}) < _SIDES:
        return None
    telling = _most_telling(kept)
    rows = [
        ({name: clip.features.get(name, 0.0) for name in telling}, clip.creator is not None)
        for clip in kept
    ]
    return fit_logistic(rows, ridge=RIDGE)


def _most_telling(subjects: Sequence[Subject]) -> list[str]:
    """The features whose means differ most between the sides, in spreads: clip for every few clips.

    Without this choice, fifty features of pure noise drown one that tells everything on forty clips.
    """
    names = sorted({name for clip in subjects for name in clip.features})
    table = np.array([[clip.features.get(name, 0.0) for name in names] for clip in subjects])
    made = np.array([clip.creator is not None for clip in subjects])
    some, others = table[made], table[~made]
    spread = np.sqrt((some.var(axis=0) + others.var(axis=0)) / 2)
    gap = np.abs(some.mean(axis=0) - others.mean(axis=0)) / (spread + _LEAST_SPREAD)
    most = max(_LEAST_FEATURES, len(subjects) // CLIPS_PER_FEATURE)
    return sorted(names[i] for i in np.argsort(-gap, kind="stable")[:most])


def _parts(generated: Sequence[Subject], *, seed: int) -> list[int]:
    """The part of each generated clip: its creator, or its scene where all have one creator."""
    creators = [clip.creator or "" for clip in generated]
    if len(set(creators)) > 1:
        return _deal(creators, MOST_PARTS, seed=seed)
    return _deal([clip.group or clip.name for clip in generated], N_FOLDS, seed=seed)


def _deal(owners: Sequence[str], n_parts: int, *, seed: int) -> list[int]:
    """Deal owners to parts of about equal size; all that one owner has goes to one part."""
    sizes = Counter(owners)
    order = sorted(sizes, key=lambda owner: (-sizes[owner], digest("deal", str(seed), owner)))
    filled = [0] * min(n_parts, len(order))
    part = {}
    for owner in order:
        part[owner] = filled.index(min(filled))
        filled[part[owner]] += sizes[owner]
    return [part[owner] for owner in owners]
