"""Label audit: cross-fitted models that predict the label from properties of the clips, and its finding."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.curation.audit.clip_features import (
    AuditFeatureSet,
    ClipAuditData,
    FeatureTable,
    Mask,
    build_feature_table,
    describe_property_by_label,
    get_audit_features,
    get_feature_property,
)
from unreel.reviewers.baselines.folds import (
    ClipCreatorAndScene,
    FoldAssignment,
    Numbers,
    assign_clip_folds,
)
from unreel.stats.bootstrap import ROUNDING
from unreel.stats.proportion import central_normal_quantile, mid_p_interval
from unreel.stats.row_sample import Array

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
            if len({len(own) for own in exchanged}) == 1:
                block = np.stack(exchanged)
                donors[block] = rng.permuted(rng.permutation(block), axis=1)
                continue
            # If the sizes of two scenes differ, labels are repeated or omitted.
            others = rng.permutation(len(exchanged)).tolist()
            for scene, other in zip(exchanged, others, strict=True):
                donor = rng.permutation(exchanged[other])
                donors[scene] = donor[np.arange(len(scene)) % len(donor)]
    return labels


MIN_CREATORS = 6
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

    def win_rates(self) -> Array:
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
        share = self.value
        influence = 2 * (self.won - share * self.met) / self.met.sum()
        scenes = [own.scene for own in creators_and_scenes]
        variance = _estimate_cluster_variance(influence, scenes)
        n_creators = len({own.creator for own in creators_and_scenes} - {None})
        if self.creators_held_out and n_creators >= MIN_CREATORS:
            creators = [own.creator or f"\0{own.scene}" for own in creators_and_scenes]
            both = [f"{own.creator}\0{own.scene}" for own in creators_and_scenes]
            variance = max(
                variance,
                variance
                + _estimate_cluster_variance(influence, creators)
                - _estimate_cluster_variance(influence, both),
            )
        n_trials = share * (1 - share) / variance if variance > 0 else np.inf
        spread = 0.0 if null is None else float(np.mean((null - _CHANCE) ** 2))
        if spread > 0:
            n_trials_by_null = _CHANCE**2 / spread
        else:
            made, real = (
                len({own.scene for own in creators_and_scenes if (own.creator is None) is is_real})
                for is_real in (False, True)
            )
            # As in the rank test, under chance.
            n_trials_by_null = 3 * made * real / (made + real + 1)
        low, high = mid_p_interval(share, min(n_trials, n_trials_by_null), level=_LEVEL)
        return Estimate(value=share, low=low, high=high, n=int(judged.sum()))


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
    aucs = []
    step = max(1, _BLOCK // max(values.size, len(rows) ** 2 // (4 * folding.n_folds)))
    for start in range(0, len(labels), step):
        won, met, _ = _compute_pair_wins(values, folding, rows, labels[start : start + step, rows])
        some = met.sum(axis=1)
        aucs.append(np.where(some > 0, won.sum(axis=1) / np.maximum(some, 1), _CHANCE))
    return np.concatenate(aucs)


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
    n_parts = folding.n_parts + 1
    sums = _compute_cell_sums(values, cells, folding.n_folds * n_parts)
    sums = sums.reshape(len(cells), folding.n_folds, n_parts, -1)
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


LEAK_FROM = 0.60
"""AUC above which labels leak; see docs/decisions/0019-audit-thresholds-by-permutation.md."""
ALARM_RATE = 0.05
"""Maximum rate of false alarms: share of sets with meaningless labels in which any view is called leaking."""
CLEAN_BELOW = 0.70
"""Upper bound of the confidence interval of a clean set."""
CHANCE = 0.50
MIN_PER_SIDE = 20
"""Minimum number of clips of each label; with fewer the finding is inconclusive."""
REVEALING_FROM = 0.95
"""Minimum fraction of the other label's clips from which a revealing clip is separated."""
MAX_LEAKS = 8
MAX_GIVEAWAYS = 10
MAX_REASONS = 3
MAX_PER_SIDE = 1_000
"""Maximum number of clips of each label: the interval is then 0.03 wide, and the cost is bounded."""


class LabelLeakFinding(StrEnum):
    """Finding of a label audit. The values are stored: add, never rename."""

    LEAKS = "leaks"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyLeak:
    """Clip property that predicts the label: AUC alone, and typical values for both labels."""

    feature: str
    auc: Measured
    generated: str
    real: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRevealingClip:
    """Clip that the audit's model separates from nearly all clips of the other label, and the reasons."""

    clip: str
    label: Label
    told_from: float
    """Share of the other label's clips in its fold from which the model separates the clip."""
    because: tuple[str, ...]
    """Properties that contributed most to the score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSetAudit:
    """Audit result of the model with one feature set."""

    view: AuditFeatureSet
    finding: LabelLeakFinding
    auc: Measured
    """AUC on unseen scenes of creators in the training data; the finding depends on it."""
    transfer: Measured | None = None
    """AUC on unseen scenes of unseen creators. `None` in audits stored before both were measured:
    there `auc` has this meaning."""
    n_real: int
    n_generated: int
    n_creators: int
    n_unread: int = 0
    """Number of clips whose features could not be read."""
    n_unjudged: int = 0
    """Number of clips that no model could score: no training data remain without their scene."""
    p_value: float | None = None
    """Fraction of the labellings, permuted and true, in which any view reaches this AUC."""
    leaks: tuple[PropertyLeak, ...] = ()
    """Single properties that predict the labels best, the strongest first."""
    giveaways: tuple[LabelRevealingClip, ...] = ()
    n_giveaways: int = 0
    """Number of all revealing clips; `giveaways` lists the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLeakAudit:
    """Result of a label audit, which tests whether labels can be predicted without watching the clips."""

    finding: LabelLeakFinding
    """Finding of all views except the frame, which is a warning: reviewers see the frames as well."""
    views: tuple[FeatureSetAudit, ...]
    seed: int
    n_relabelled: int = 0
    """Number of permutations of the labels, from which the p-values were computed."""
    grouped: bool = True
    """Whether any two clips share a scene; if none do, scenes may be undeclared."""

    def __getitem__(self, feature_set: AuditFeatureSet) -> FeatureSetAudit:
        return next(own for own in self.views if own.view is feature_set)


def audit_label_leaks(clips_data: Iterable[ClipAuditData], *, seed: int) -> LabelLeakAudit:
    """Test for each feature set whether a model can predict the labels of the clips from it.

    The same observations and seed give the same audit.
    """
    # At most `MAX_PER_SIDE` clips of each label, chosen by a hash of the seed and the name.
    heaps: dict[bool, list[tuple[int, int, ClipAuditData]]] = {True: [], False: []}
    for number, seen in enumerate(clips_data):
        heap = heaps[seen.creator is None]
        # The heap's root is the largest kept digest, so only the chosen clips are kept in memory.
        item = (-int(digest("audit", str(seed), seen.clip), 16), -number, seen)
        keep = heapq.heappush if len(heap) < MAX_PER_SIDE else heapq.heappushpop
        keep(heap, item)
    chosen = sorted(
        (seen for heap in heaps.values() for _, _, seen in heap), key=lambda seen: seen.clip
    )
    owners = [
        ClipCreatorAndScene.of(seen.clip, creator=seen.creator, group=seen.group) for seen in chosen
    ]
    folding = assign_clip_folds(owners, seed=seed)
    tables = [_build_feature_set_table(chosen, view) for view in AuditFeatureSet]
    if isinstance(folding, Unmeasured):
        counted = tuple(
            replace(_build_inconclusive_audit(table, folding), transfer=folding) for table in tables
        )
        return LabelLeakAudit(finding=LabelLeakFinding.INCONCLUSIVE, views=counted, seed=seed)
    labels = permute_labels_by_scene(owners, folding, seed=seed)
    deciding = folding.without_parts()
    fits = []
    for table in tables:
        own_rows = tuple(owners[i] for i in table.rows)
        scaled = table.table.scaled
        wins = count_cross_fit_wins(scaled, deciding, table.rows)
        fits.append(_FeatureSetFit(table, own_rows, deciding, scaled, wins))
    nulls = [compute_permuted_aucs(own.scaled, deciding, own.sight.rows, labels) for own in fits]
    # Each p-value is corrected for the number of feature sets: the fraction of all labellings, including
    # the true one, in which the largest standardised AUC of any feature set reaches this one. Mean and
    # standard deviation include the true labels, so p-values are uniform if the labels are random.
    aucs = np.array([[own.judged.value, *null] for own, null in zip(fits, nulls, strict=True)])
    spread = aucs.std(axis=1, keepdims=True)
    surprise = (aucs - aucs.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    largest = surprise.max(axis=0)
    chances = [float((largest >= own[0] - ROUNDING).mean()) for own in surprise]
    judged = tuple(
        replace(_audit_feature_set(own, null, chance), transfer=own.transfer(folding))
        for own, null, chance in zip(fits, nulls, chances, strict=True)
    )
    findings = {own.finding for own in judged if own.view is not AuditFeatureSet.FRAME}
    ranked = (LabelLeakFinding.LEAKS, LabelLeakFinding.INCONCLUSIVE, LabelLeakFinding.CLEAN)
    return LabelLeakAudit(
        finding=next(finding for finding in ranked if finding in findings),
        views=judged,
        seed=seed,
        n_relabelled=len(labels),
        grouped=len({own.scene for own in owners}) < len(owners),
    )


def judge_label_leak(
    auc: Measured, *, n_smaller_class: int, p_value: float, n_unjudged: int = 0
) -> LabelLeakFinding:
    """Return the finding of a label audit: `leaks`, `clean` or `inconclusive`.

    `leaks`: the AUC is above 0.60 and chance is excluded. `clean`: the AUC is at most 0.60 and 0.70
    is excluded. All other results are `inconclusive`, and so is every result with too few clips in
    the smaller class (`n_smaller_class`). Chance must be excluded by the confidence interval and by
    `p_value`, which covers all feature sets together. An AUC below 0.5 is not a leak: if a property
    such as size is balanced over the set, its imbalance in the training scenes is opposite to its
    imbalance in the test scenes. A set with clips that no model could judge is not clean.
    """
    if isinstance(auc, Unmeasured) or n_smaller_class < MIN_PER_SIDE:
        return LabelLeakFinding.INCONCLUSIVE
    if auc.value > LEAK_FROM and auc.low > CHANCE and p_value <= ALARM_RATE:
        return LabelLeakFinding.LEAKS
    if auc.value <= LEAK_FROM and auc.high < CLEAN_BELOW and not n_unjudged:
        return LabelLeakFinding.CLEAN
    return LabelLeakFinding.INCONCLUSIVE


@dataclass(frozen=True, slots=True, eq=False)
class _FeatureSetTable:
    """Values of one feature set for all clips whose features could be read."""

    view: AuditFeatureSet
    shown: tuple[ClipAuditData, ...]
    rows: Numbers
    """Indices of the shown clips among all clips."""
    table: FeatureTable
    n_unread: int


def _build_feature_set_table(
    clips_data: Sequence[ClipAuditData], feature_set: AuditFeatureSet
) -> _FeatureSetTable:
    seen = [get_audit_features(one, feature_set) for one in clips_data]
    read = [(i, own) for i, own in enumerate(seen) if not isinstance(own, Failure)]
    rows = np.array([i for i, _ in read], dtype=np.int64)
    table = build_feature_table([features for _, features in read])
    return _FeatureSetTable(
        feature_set, tuple(clips_data[i] for i in rows), rows, table, len(seen) - len(read)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _FeatureSetFit:
    """Cross-fitted models that predict the true labels from one feature set, and their results."""

    sight: _FeatureSetTable
    owners: tuple[ClipCreatorAndScene, ...]
    folding: FoldAssignment
    """Folds and parts of all clips."""
    scaled: Array
    judged: CrossFitPairWins

    def transfer(self, folding: FoldAssignment) -> Measured:
        """Return the AUC on unseen creators: a clip's model was fitted without its scene and its creator."""
        if folding.n_parts == 1:
            return Unmeasured("there is one creator")
        return count_cross_fit_wins(self.scaled, folding, self.sight.rows).auc(self.owners)

    def pushes(self, row: int) -> Array:
        """Return each feature's contribution to the score of a clip, towards the clip's own label."""
        own = self.sight.rows[row]
        weights = self.judged.weights[self.folding.folds[own]]
        made = self.folding.made[own]
        pushed = weights[self.folding.parts[own]] if made else -weights.mean(axis=0)
        towards: Array = pushed * self.scaled[row]
        return towards


def _audit_feature_set(fit: _FeatureSetFit, null: Array, p_value: float) -> FeatureSetAudit:
    auc = fit.judged.auc(fit.owners, null=null)
    counted = _build_inconclusive_audit(fit.sight, auc)
    if isinstance(auc, Unmeasured):
        return counted
    n_unjudged = fit.judged.n_unjudged
    n_smaller_class = min(counted.n_real, counted.n_generated)
    outcome = replace(
        counted,
        finding=judge_label_leak(
            auc, n_smaller_class=n_smaller_class, p_value=p_value, n_unjudged=n_unjudged
        ),
        n_unjudged=n_unjudged,
        p_value=p_value,
        leaks=_measure_property_leaks(fit),
    )
    if outcome.finding is LabelLeakFinding.LEAKS:
        return _add_revealing_clips(outcome, fit)
    return outcome


def _build_inconclusive_audit(table: _FeatureSetTable, auc: Measured) -> FeatureSetAudit:
    creators = Counter(seen.creator for seen in table.shown)
    n_real = creators.pop(None, 0)
    return FeatureSetAudit(
        view=table.view,
        finding=LabelLeakFinding.INCONCLUSIVE,
        auc=auc if table.shown else Unmeasured("no clip could be read"),
        n_real=n_real,
        n_generated=creators.total(),
        n_creators=len(creators),
        n_unread=table.n_unread,
    )


def _measure_property_leaks(fit: _FeatureSetFit) -> tuple[PropertyLeak, ...]:
    """Compute the cross-fitted AUC of each property alone; return the strongest above chance."""
    columns: defaultdict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(fit.sight.table.names):
        columns[get_feature_property(name)].append(index)
    rows = fit.sight.rows
    alone = {
        own: count_cross_fit_wins(fit.scaled[:, chosen], fit.folding, rows)
        for own, chosen in columns.items()
    }
    telling = sorted(
        (own for own in alone if alone[own].value > CHANCE),
        key=lambda own: (-alone[own].value, own),
    )
    leaks = []
    for own in telling[:MAX_LEAKS]:
        table = fit.sight.table.only(columns[own])
        generated, real = describe_property_by_label(table, fit.judged.made)
        auc = alone[own].auc(fit.owners)
        leaks.append(PropertyLeak(feature=own, auc=auc, generated=generated, real=real))
    return tuple(leaks)


def _add_revealing_clips(audit: FeatureSetAudit, fit: _FeatureSetFit) -> FeatureSetAudit:
    proportions = fit.judged.win_rates()
    shown = fit.sight.shown
    every = [i for i in range(len(shown)) if proportions[i] >= REVEALING_FROM]
    every.sort(key=lambda i: (-proportions[i], shown[i].clip))
    listed = []
    for i in every[:MAX_GIVEAWAYS]:
        # Properties that moved the score of the clip towards its own label, strongest first.
        total: Counter[str] = Counter()
        for name, push in zip(fit.sight.table.names, fit.pushes(i).tolist(), strict=True):
            total[get_feature_property(name)] += push
        largest = max(total.values(), default=0.0)
        strongest = total.most_common(MAX_REASONS)
        listed.append(
            LabelRevealingClip(
                clip=shown[i].clip,
                label=Label.REAL if shown[i].creator is None else Label.GENERATED,
                told_from=float(proportions[i]),
                because=tuple(name for name, p in strongest if p > 0 and p >= largest / 4),
            )
        )
    return replace(audit, giveaways=tuple(listed), n_giveaways=len(every))
