"""Label audit: test whether models can predict the labels of clips without watching the clips."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from unreel.core.content_ids import digest
from unreel.core.estimate import Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.curation.audit.clip_features import (
    AuditFeatureSet,
    ClipAuditData,
    FeatureTable,
    build_feature_table,
    describe_property_by_label,
    get_audit_features,
    get_feature_property,
)
from unreel.curation.audit.cross_fit import (
    CrossFitPairWins,
    compute_permuted_aucs,
    count_cross_fit_wins,
    permute_labels_by_scene,
)
from unreel.reviewers.baselines.folds import (
    ClipCreatorAndScene,
    FoldAssignment,
    Numbers,
    assign_clip_folds,
)
from unreel.stats.bootstrap import ROUNDING
from unreel.stats.row_sample import Array

LEAK_FROM = 0.60
"""AUC above which labels leak; see docs/decisions/0019-audit-thresholds-by-permutation.md."""
ALARM_RATE = 0.05
"""Maximum rate of false alarms: share of sets with meaningless labels in which any view is called leaking."""
CLEAN_BELOW = 0.70
"""Upper bound of the confidence interval of a clean set."""
CHANCE = 0.50
LEAST_PER_SIDE = 20
"""Minimum number of clips of each label; with fewer the finding is inconclusive."""
TOLD_FROM = 0.95
"""Minimum fraction of the other label's clips from which a revealing clip is separated."""
MOST_LEAKS = 8
MOST_GIVEAWAYS = 10
MOST_REASONS = 3
MOST_PER_SIDE = 1_000
"""Maximum number of clips of each label: the interval is then 0.03 wide, and the cost is bounded."""


class LabelLeakFinding(StrEnum):
    """Finding of a label audit. The values are stored: add, never rename."""

    LEAKS = "leaks"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyLeak:
    """Clip property that predicts the label: its AUC alone, and its typical values for both labels."""

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
    chosen = _sample_clips_by_label(clips_data, seed=seed)
    owners = [
        ClipCreatorAndScene.of(seen.clip, creator=seen.creator, group=seen.group) for seen in chosen
    ]
    folding = assign_clip_folds(owners, seed=seed)
    sights = [_build_feature_set_table(chosen, view) for view in AuditFeatureSet]
    if isinstance(folding, Unmeasured):
        counted = tuple(
            replace(_build_inconclusive_audit(sight, folding), transfer=folding) for sight in sights
        )
        return LabelLeakAudit(finding=LabelLeakFinding.INCONCLUSIVE, views=counted, seed=seed)
    labels = permute_labels_by_scene(owners, folding, seed=seed)
    deciding = folding.without_parts()
    fits = [_FeatureSetFit.of(sight, owners, deciding) for sight in sights]
    nulls = [compute_permuted_aucs(own.scaled, deciding, own.sight.rows, labels) for own in fits]
    chances = _compute_joint_p_values(fits, nulls)
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
    auc: Measured, *, n_least: int, p_value: float, n_unjudged: int = 0
) -> LabelLeakFinding:
    """Return the finding of a label audit: `leaks`, `clean` or `inconclusive`.

    `leaks`: the AUC is above 0.60 and chance is excluded. `clean`: the AUC is at most 0.60 and 0.70
    is excluded. All other results are `inconclusive`, and so is every result with too few clips in
    the smaller class (`n_least`). Chance must be excluded by the confidence interval and by
    `p_value`, which covers all feature sets together. An AUC below 0.5 is not a leak: if a property
    such as size is balanced over the set, its imbalance in the training scenes is opposite to its
    imbalance in the test scenes. A set with clips that no model could judge is not clean.
    """
    if isinstance(auc, Unmeasured) or n_least < LEAST_PER_SIDE:
        return LabelLeakFinding.INCONCLUSIVE
    if auc.value > LEAK_FROM and auc.low > CHANCE and p_value <= ALARM_RATE:
        return LabelLeakFinding.LEAKS
    if auc.value <= LEAK_FROM and auc.high < CLEAN_BELOW and not n_unjudged:
        return LabelLeakFinding.CLEAN
    return LabelLeakFinding.INCONCLUSIVE


def _sample_clips_by_label(
    clips_data: Iterable[ClipAuditData], *, seed: int
) -> list[ClipAuditData]:
    """Sample at most `MOST_PER_SIDE` clips of each label, sorted by name.

    The sample is chosen by a hash of `seed` and name.
    """
    sides: dict[bool, list[tuple[int, int, ClipAuditData]]]
    sides = {True: [], False: []}
    for number, seen in enumerate(clips_data):
        side = sides[seen.creator is None]
        # The heap's root is the largest kept digest, so only the chosen clips are kept in memory.
        item = (-int(digest("audit", str(seed), seen.clip), 16), -number, seen)
        keep = heapq.heappush if len(side) < MOST_PER_SIDE else heapq.heappushpop
        keep(side, item)
    chosen = [seen for side in sides.values() for _, _, seen in side]
    return sorted(chosen, key=lambda seen: seen.clip)


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

    @classmethod
    def of(
        cls,
        table: _FeatureSetTable,
        creators_and_scenes: Sequence[ClipCreatorAndScene],
        folding: FoldAssignment,
    ) -> "_FeatureSetFit":
        scaled = table.table.scaled
        own = tuple(creators_and_scenes[i] for i in table.rows)
        return cls(table, own, folding, scaled, count_cross_fit_wins(scaled, folding, table.rows))

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


def _compute_joint_p_values(fits: Sequence[_FeatureSetFit], nulls: Sequence[Array]) -> list[float]:
    """Return the p-value of each feature set's AUC, corrected for the number of feature sets.

    It is the fraction of all labellings, including the true one, in which the largest standardised
    AUC of any feature set reaches this one. Mean and standard deviation include the true labels, so
    the p-values are uniform if the true labels are random.
    """
    told = np.array([[own.judged.value, *null] for own, null in zip(fits, nulls, strict=True)])
    spread = told.std(axis=1, keepdims=True)
    surprise = (told - told.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    most = surprise.max(axis=0)
    return [float((most >= own[0] - ROUNDING).mean()) for own in surprise]


def _audit_feature_set(fit: _FeatureSetFit, null: Array, p_value: float) -> FeatureSetAudit:
    auc = fit.judged.auc(fit.owners, null=null)
    counted = _build_inconclusive_audit(fit.sight, auc)
    if isinstance(auc, Unmeasured):
        return counted
    n_unjudged = fit.judged.n_unjudged
    n_least = min(counted.n_real, counted.n_generated)
    outcome = replace(
        counted,
        finding=judge_label_leak(auc, n_least=n_least, p_value=p_value, n_unjudged=n_unjudged),
        n_unjudged=n_unjudged,
        p_value=p_value,
        leaks=_measure_property_leaks(fit),
    )
    return (
        _add_revealing_clips(outcome, fit) if outcome.finding is LabelLeakFinding.LEAKS else outcome
    )


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
    for own in telling[:MOST_LEAKS]:
        sides = describe_property_by_label(fit.sight.table.only(columns[own]), fit.judged.made)
        auc = alone[own].auc(fit.owners)
        leaks.append(PropertyLeak(feature=own, auc=auc, generated=sides.generated, real=sides.real))
    return tuple(leaks)


def _add_revealing_clips(audit: FeatureSetAudit, fit: _FeatureSetFit) -> FeatureSetAudit:
    proportions = fit.judged.told_from()
    shown = fit.sight.shown
    every = [i for i in range(len(shown)) if proportions[i] >= TOLD_FROM]
    every.sort(key=lambda i: (-proportions[i], shown[i].clip))
    listed = tuple(
        LabelRevealingClip(
            clip=shown[i].clip,
            label=Label.REAL if shown[i].creator is None else Label.GENERATED,
            told_from=float(proportions[i]),
            because=_list_revealing_properties(i, fit),
        )
        for i in every[:MOST_GIVEAWAYS]
    )
    return replace(audit, giveaways=listed, n_giveaways=len(every))


def _list_revealing_properties(row: int, fit: _FeatureSetFit) -> tuple[str, ...]:
    """Return the properties that moved a clip's model score towards its own label, strongest first."""
    total: Counter[str] = Counter()
    for name, push in zip(fit.sight.table.names, fit.pushes(row).tolist(), strict=True):
        total[get_feature_property(name)] += push
    largest = max(total.values(), default=0.0)
    return tuple(n for n, p in total.most_common(MOST_REASONS) if p > 0 and p >= largest / 4)
