"""Cross-validated AUC of a model on clips of unseen scenes and, if the folds separate them, unseen creators.

The model adds up features, each weighted with the cube of the difference of the class means: on
forty clips fifty noise features then do not hide an informative one, and thousands of models cost a
few sums. Clips are held out by cells (`reviewers/baselines/folds.py`), and each pair of a generated
and a real clip of one fold is scored by one model that was fitted without both.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.reviewers.baselines.folds import ClipCreatorAndScene, FoldAssignment, Numbers
from unreel.stats.proportion import central_normal_quantile, mid_p_interval
from unreel.stats.row_sample import Array

Mask = NDArray[np.bool_]
RELABELLINGS = 199
"""Number of permutations, exact for p = 0.05 with a resolution of 0.005."""


def permute_labels_by_scene(
    creators_and_scenes: Sequence[ClipCreatorAndScene], folding: FoldAssignment, *, seed: int
) -> Numbers:
    """Return random permutations of the clip labels, for the distribution of the AUC under chance.

    Labels move within a scene, or between the scenes of a fold. Each row is one permutation: for
    each clip, the index of the clip whose label it gets.
    """
    scenes: defaultdict[str, list[int]] = defaultdict(list)
    for index, own in enumerate(creators_and_scenes):
        scenes[own.scene].append(index)
    members = [np.array(own) for own in scenes.values()]
    mixed = [own for own in members if len(set(folding.made[own].tolist())) > 1]
    lone = [own for own in members if len(set(folding.made[own].tolist())) == 1]
    by_fold = [[own for own in lone if folding.folds[own[0]] == f] for f in range(folding.n_folds)]
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(len(creators_and_scenes)), (RELABELLINGS, 1))
    for donors in labels:
        for scene in mixed:
            donors[scene] = rng.permutation(scene)
        for exchanged in by_fold:
            _exchange_labels_between_scenes(exchanged, donors, rng)
    return labels


def _exchange_labels_between_scenes(
    scenes: Sequence[Numbers], donors: Numbers, rng: np.random.Generator
) -> None:
    """Give each scene the labels of another scene at random, by writing into `donors`.

    If the sizes of two scenes differ, labels are repeated or omitted.
    """
    if len({len(own) for own in scenes}) == 1:
        block = np.stack(scenes)
        donors[block] = rng.permuted(rng.permutation(block), axis=1)
        return
    for own, other in zip(scenes, rng.permutation(len(scenes)).tolist(), strict=True):
        labels = rng.permutation(scenes[other])
        donors[own] = labels[np.arange(len(own)) % len(labels)]


LEAST_CREATORS = 6
"""Minimum number of creators to estimate their variance; with fewer, the interval uses scenes alone."""
_LEVEL = 0.95
_CHANCE = 0.5
_DIGITS = 9
"""Decimals to which scores are rounded, so that equal clips get equal scores in any order of summation."""
_BLOCK = 2**18
"""Number of values that are processed at once for several permutations."""
_TINY = 1e-300
_ROUNDING = 1e-9
"""Mean differences below this are 0: sums are computed by subtraction, which leaves rounding errors."""


LEAST_CREATORS = 6
"""Minimum number of creators to estimate their variance; with fewer, the interval uses scenes alone."""
_LEVEL = 0.95
_CHANCE = 0.5
_DIGITS = 9
"""Decimals to which scores are rounded, so that equal clips get equal scores in any order of summation."""
_BLOCK = 2**18
"""Number of values that are processed at once for several permutations."""
_TINY = 1e-300
_ROUNDING = 1e-9
"""Mean differences below this are 0: sums are computed by subtraction, which leaves rounding errors."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitPairWins:
    """Counts of pairs of a generated and a real clip, and of those that a model ordered correctly.

    Pairs are clips of the same fold; the generated clip should get the higher score. Each array has
    one value per clip, except `weights`.
    """

    made: Mask
    won: Array
    """Number of the clip's pairs in which the generated clip scores higher; ties count half."""
    met: Array
    """Number of pairs of the clip; 0 if no model could be fitted without it, or if the other label
    is missing in its fold."""
    weights: Array
    """Model weights, as an array of folds x parts x features."""
    creators_held_out: bool

    @property
    def value(self) -> float:
        """Return the AUC: the fraction of pairs in which the generated clip scores higher (0.5 if none)."""
        met = float(self.met.sum())
        return float(self.won.sum()) / met if met else _CHANCE

    @property
    def n_unjudged(self) -> int:
        """Return the number of clips that are in no compared pair, because no model could judge them."""
        return int((self.met == 0).sum())

    def told_from(self) -> Array:
        """Return, for each clip, the fraction of the other label's clips that its score differs from.

        Only clips of the same fold count, and only differences in the right direction.
        """
        share: Array = self.won / np.maximum(self.met, 1)
        return np.where(self.met == 0, 0.0, np.where(self.made, share, 1 - share))

    def auc(
        self, creators_and_scenes: Sequence[ClipCreatorAndScene], *, null: Array | None = None
    ) -> Measured:
        """Return the AUC with its confidence interval; `null` contains the AUCs of permuted labels.

        The interval is that of a proportion with an effective number of trials. That number comes from
        the variance between scenes (and between creators if they are held out) or from the variance
        between permutations, whichever gives fewer trials. `n` of the estimate counts clips.
        """
        judged = self.met > 0
        if not judged.any():
            return Unmeasured("without the scene of a clip, no clips are left for fitting")
        n_trials = min(
            self._trials(creators_and_scenes), self._trials_by_null(null, creators_and_scenes)
        )
        low, high = mid_p_interval(self.value, n_trials, level=_LEVEL)
        return Estimate(value=self.value, low=low, high=high, n=int(judged.sum()))

    def _trials(self, creators_and_scenes: Sequence[ClipCreatorAndScene]) -> float:
        share = self.value
        influence = 2 * (self.won - share * self.met) / self.met.sum()
        scenes = [own.scene for own in creators_and_scenes]
        variance = _estimate_cluster_variance(influence, scenes)
        n_creators = len({own.creator for own in creators_and_scenes} - {None})
        if self.creators_held_out and n_creators >= LEAST_CREATORS:
            creators = [own.creator or f"\0{own.scene}" for own in creators_and_scenes]
            both = [f"{own.creator}\0{own.scene}" for own in creators_and_scenes]
            variance = max(
                variance,
                variance
                + _estimate_cluster_variance(influence, creators)
                - _estimate_cluster_variance(influence, both),
            )
        return share * (1 - share) / variance if variance > 0 else np.inf

    def _trials_by_null(
        self, null: Array | None, creators_and_scenes: Sequence[ClipCreatorAndScene]
    ) -> float:
        spread = 0.0 if null is None else float(np.mean((null - _CHANCE) ** 2))
        if spread > 0:
            return _CHANCE**2 / spread
        made, real = (
            len({own.scene for own in creators_and_scenes if (own.creator is None) is real})
            for real in (False, True)
        )
        return 3 * made * real / (made + real + 1)  # as in the rank test, under chance


def _estimate_cluster_variance(influence: Array, clusters: Sequence[str]) -> float:
    from scipy.special import stdtrit

    _, own = np.unique(clusters, return_inverse=True)
    sums = np.bincount(own, weights=influence)
    n = len(sums)
    few = -float(stdtrit(max(n - 1, 1), (1 - _LEVEL) / 2)) / central_normal_quantile(_LEVEL)
    return float((sums**2).sum()) * n / max(n - 1, 1) * few**2


def count_cross_fit_wins(values: Array, folding: FoldAssignment, rows: Numbers) -> CrossFitPairWins:
    """Compare the generated with the real clips among `rows` by the scores of cross-fitted models.

    Each model is fitted without the scenes and creators of the clips that it scores. `values` has
    one row of scaled features for each of these clips.
    """
    (won,), (met,), (weights,) = _compute_pair_wins(values, folding, rows, rows[None])
    return CrossFitPairWins(folding.made[rows], won, met, weights, folding.n_parts > 1)


def compute_permuted_aucs(
    values: Array, folding: FoldAssignment, rows: Numbers, labels: Numbers
) -> Array:
    """Compute the cross-fitted AUC (`CrossFitPairWins.value`) for each permutation in `labels`.

    A permutation contains, for each clip, the index of the clip whose label it gets.
    """
    if not values.size:  # without features all labels give chance
        return np.full(len(labels), _CHANCE)
    told = []
    step = max(1, _BLOCK // max(values.size, len(rows) ** 2 // (4 * folding.n_folds)))
    for start in range(0, len(labels), step):
        won, met, _ = _compute_pair_wins(values, folding, rows, labels[start : start + step, rows])
        some = met.sum(axis=1)
        told.append(np.where(some > 0, won.sum(axis=1) / np.maximum(some, 1), _CHANCE))
    return np.concatenate(told)


def _compute_pair_wins(
    values: Array, folding: FoldAssignment, rows: Numbers, labels: Numbers
) -> tuple[Array, Array, Array]:
    """Return the won pairs and all pairs of each clip, and the model weights, for each labelling."""
    made, parts = folding.made[labels], folding.parts[labels]
    cells = folding.folds[rows] * (folding.n_parts + 1) + np.where(made, parts, folding.n_parts)
    weights, fitted = _fit_feature_weights(values, cells, folding)
    won, met = np.zeros(labels.shape), np.zeros(labels.shape)
    line = np.arange(len(labels))[:, None]
    for one in range(folding.n_folds):
        here = np.flatnonzero(folding.folds[rows] == one)
        leans = np.round(np.einsum("lpf,cf->lpc", weights[:, one], values[here]), _DIGITS)
        order = np.argsort(~made[:, here], axis=1, kind="stable")
        n_made = made[:, here].sum(axis=1)
        some, others = order[:, : n_made.max(initial=0)], order[:, n_made.min(initial=0) :]
        judges = parts[line, here[some]]
        judged = made[line, here[some]] & fitted[line, one, judges]
        pairs = judged[:, :, None] & ~made[line, here[others]][:, None]
        own = leans[line, judges, some]
        met_by_it = leans[line[:, None], judges[:, :, None], others[:, None]]
        wins = np.where(pairs, (1 + np.sign(own[:, :, None] - met_by_it)) / 2, 0.0)
        for sums, each in ((won, wins), (met, pairs)):
            sums[line, here[some]] += each.sum(axis=2)
            sums[line, here[others]] += each.sum(axis=1)
    return won, met, weights


def _fit_feature_weights(
    values: Array, cells: Numbers, folding: FoldAssignment
) -> tuple[Array, Mask]:
    """Return the model weights by labelling, fold, part and feature, and a mask of fitted models.

    A model is fitted if its training cells contain clips of both labels.
    """
    n_sides = folding.n_parts + 1
    sums = _compute_cell_sums(values, cells, folding.n_folds * n_sides)
    sums = sums.reshape(len(cells), folding.n_folds, n_sides, -1)
    elsewhere = sums.sum(axis=1, keepdims=True) - sums
    some, others = elsewhere[:, :, :-1], elsewhere[:, :, -1:]
    some = some.sum(axis=2, keepdims=True) - (some if folding.n_parts > 1 else 0)
    n_some, n_others = some[..., -1:], others[..., -1:]
    gap = some[..., :-1] / np.maximum(n_some, 1) - others[..., :-1] / np.maximum(n_others, 1)
    gap[np.abs(gap) < _ROUNDING] = 0.0
    weights = gap * gap * gap
    weights /= np.maximum(np.sqrt((weights * weights).sum(axis=3, keepdims=True)), _TINY)
    return weights, (np.minimum(n_some, n_others) > 0)[..., 0]


def _compute_cell_sums(values: Array, cells: Numbers, n_cells: int) -> Array:
    """Sum the feature columns over the clips of each cell (fold and part), for each labelling.

    The number of clips is an additional column. A matrix product is not used: BLAS threads compete
    with other processes by busy waiting, which costs five times the work here.
    """
    n_labellings, n_clips = cells.shape
    sums = np.zeros((n_labellings * n_cells, values.shape[1] + 1))
    every = (cells + n_cells * np.arange(n_labellings)[:, None]).ravel()
    order = np.argsort(every, kind="stable")
    held, starts, sizes = np.unique(every[order], return_index=True, return_counts=True)
    if len(held):
        sums[held, :-1] = np.add.reduceat(values[order % n_clips], starts, axis=0)
    sums[held, -1] = sizes
    return sums
