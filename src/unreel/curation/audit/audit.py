"""Test whether a set of clips leaks its labels, to which model and by which properties."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from unreel.core.estimate import Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.curation.audit.cross_fit import CrossFit, compute_relabelled_auc, cross_fit, relabel
from unreel.curation.audit.features import (
    ClipObservation,
    FeatureTable,
    FeatureView,
    get_feature_family,
    tabulate,
    view_features,
)
from unreel.curation.audit.property_text import describe_sides
from unreel.reviewers.baselines.folds import FoldAssignment, FoldGroup, Numbers, fold
from unreel.stats.bootstrap import ROUNDING
from unreel.stats.sample import Array

LEAK_FROM: Final = 0.60
"""AUC above which a model leaks; see docs/decisions/0019-alarms-by-relabelling.md."""
ALARM_RATE: Final = 0.05
"""Share of sets whose labels mean nothing in which any view may be called leaking."""
CLEAN_BELOW: Final = 0.70
"""A set is called clean only where its interval stays below this."""
CHANCE: Final = 0.50
LEAST_PER_SIDE: Final = 20
"""With fewer clips of either side nothing is decided, whatever the number."""
TOLD_FROM: Final = 0.95
"""Fraction of the other label from which a revealing clip is separated."""
MOST_LEAKS: Final = 8
MOST_GIVEAWAYS: Final = 10
MOST_REASONS: Final = 3
MOST_PER_SIDE: Final = 1_000
"""Clips of either side that are judged: the interval is then 0.03 wide, and the cost stays flat."""


class AuditFinding(StrEnum):
    """Result of an audit. The values are stored: add, never rename."""

    LEAKS = "leaks"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyLeak:
    """Predictive power of one property alone, with its values for both labels."""

    feature: str
    auc: Measured
    generated: str
    real: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealingClip:
    """A clip that the model separates from nearly all clips of the other label."""

    clip: str
    label: Label
    told_from: float
    """Share of the other side's clips."""
    because: tuple[str, ...]
    """The properties that pushed most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAudit:
    """Result of one model."""

    view: FeatureView
    finding: AuditFinding
    auc: Measured
    """On scenes that the model did not learn from, by creators that it did: this decides."""
    transfer: Measured | None = None
    """On scenes and creators that it did not learn from. `None` in audits stored before both were measured: there
    `auc` has this meaning."""
    n_real: int
    n_generated: int
    n_creators: int
    n_unread: int = 0
    """Clips that could not be shown to the model."""
    n_unjudged: int = 0
    """Clips without whose scene nothing was left to learn from."""
    p_value: float | None = None
    """Fraction of permuted datasets in which a view reaches this AUC."""
    leaks: tuple[PropertyLeak, ...] = ()
    """The most informative single properties, the strongest first."""
    giveaways: tuple[RevealingClip, ...] = ()
    n_giveaways: int = 0
    """All clips that give themselves away; `giveaways` lists the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Result of testing whether labels can be predicted without watching."""

    finding: AuditFinding
    """Of metadata and watermark together; the frame's is a warning, because a frame is looked at."""
    views: tuple[ViewAudit, ...]
    seed: int
    n_relabelled: int = 0
    """Sets of the same clips under labels that mean nothing, which the alarm was set by."""
    grouped: bool = True
    """False if no two clips share a scene; scenes may then be undeclared."""

    def __getitem__(self, view: FeatureView) -> ViewAudit:
        return next(own for own in self.views if own.view is view)


def audit(observations: Iterable[ClipObservation], *, seed: int) -> AuditResult:
    """Fit and judge models for each view; the same observations and seed give the same audit."""
    chosen = _select_observations(observations, seed=seed)
    owners = [FoldGroup.of(seen.clip, creator=seen.creator, group=seen.group) for seen in chosen]
    folding = fold(owners, seed=seed)
    sights = [_build_model_features(chosen, view) for view in FeatureView]
    if isinstance(folding, Unmeasured):
        views = tuple(
            replace(_build_view_counts(sight, folding), transfer=folding) for sight in sights
        )
        return AuditResult(finding=AuditFinding.INCONCLUSIVE, views=views, seed=seed)
    labels = relabel(owners, folding, seed=seed)
    deciding = folding.without_parts()
    fits = [_ViewModels.of(sight, owners, deciding) for sight in sights]
    nulls = [compute_relabelled_auc(own.scaled, deciding, own.sight.rows, labels) for own in fits]
    chances = _compute_joint_p_values(fits, nulls)
    views = tuple(
        replace(_audit_view(own, null, chance), transfer=own.transfer(folding))
        for own, null, chance in zip(fits, nulls, chances, strict=True)
    )
    findings = {own.finding for own in views if own.view is not FeatureView.FRAME}
    ranked = (AuditFinding.LEAKS, AuditFinding.INCONCLUSIVE, AuditFinding.CLEAN)
    return AuditResult(
        finding=next(f for f in ranked if f in findings),
        views=views,
        seed=seed,
        n_relabelled=len(labels),
        grouped=len({own.scene for own in owners}) < len(owners),
    )


def judge(auc: Measured, *, n_least: int, p_value: float, n_unjudged: int = 0) -> AuditFinding:
    """Return `leaks` above 0.60 if chance is excluded; `clean` up to 0.60 if 0.70 is excluded.

    All other results are `inconclusive`, and so is every result with too few clips in the smaller
    class (`n_least`). Chance must be excluded by the confidence interval and by `p_value`, which
    covers all views together. An AUC below 0.5 is not a leak: if a property such as size is
    balanced over the set, its imbalance in the training scenes is opposite to its imbalance in the
    test scenes. A set with clips that no model could judge is not clean.
    """
    if isinstance(auc, Unmeasured) or n_least < LEAST_PER_SIDE:
        return AuditFinding.INCONCLUSIVE
    if auc.value > LEAK_FROM and auc.low > CHANCE and p_value <= ALARM_RATE:
        return AuditFinding.LEAKS
    if auc.value <= LEAK_FROM and auc.high < CLEAN_BELOW and not n_unjudged:
        return AuditFinding.CLEAN
    return AuditFinding.INCONCLUSIVE


def _select_observations(
    observations: Iterable[ClipObservation], *, seed: int
) -> list[ClipObservation]:
    """Sample at most `MOST_PER_SIDE` clips of each label by a hash of name and `seed`, sorted by name."""
    sides: dict[bool, list[tuple[int, int, ClipObservation]]] = {True: [], False: []}
    for number, seen in enumerate(observations):
        side = sides[seen.creator is None]
        # The largest of the kept digests is at hand, so no more than are chosen are ever held.
        item = (-int(digest("audit", str(seed), seen.clip), 16), -number, seen)
        keep = heapq.heappush if len(side) < MOST_PER_SIDE else heapq.heappushpop
        keep(side, item)
    chosen = [seen for side in sides.values() for _, _, seen in side]
    return sorted(chosen, key=lambda seen: seen.clip)


@dataclass(frozen=True, slots=True, eq=False)
class _ModelFeatures:
    """Features of one model."""

    view: FeatureView
    shown: tuple[ClipObservation, ...]
    rows: Numbers
    """Where they stand among all clips."""
    table: FeatureTable
    n_unread: int


def _build_model_features(
    observations: Sequence[ClipObservation], view: FeatureView
) -> _ModelFeatures:
    seen = [view_features(one, view) for one in observations]
    read = [(i, own) for i, own in enumerate(seen) if not isinstance(own, Failure)]
    rows = np.array([i for i, _ in read], dtype=np.int64)
    table = tabulate([features for _, features in read])
    return _ModelFeatures(
        view, tuple(observations[i] for i in rows), rows, table, len(seen) - len(read)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _ViewModels:
    """One view's models, under the true labels."""

    sight: _ModelFeatures
    owners: tuple[FoldGroup, ...]
    folding: FoldAssignment
    """Of all clips."""
    scaled: Array
    judged: CrossFit

    @classmethod
    def of(
        cls, sight: _ModelFeatures, owners: Sequence[FoldGroup], folding: FoldAssignment
    ) -> "_ViewModels":
        scaled = sight.table.scaled
        own = tuple(owners[i] for i in sight.rows)
        return cls(sight, own, folding, scaled, cross_fit(scaled, folding, sight.rows))

    def transfer(self, folding: FoldAssignment) -> Measured:
        """Judge each clip with models fitted without its scene and without its creator; return the AUC."""
        if folding.n_parts == 1:
            return Unmeasured("there is one creator")
        return cross_fit(self.scaled, folding, self.sight.rows).auc(self.owners)

    def pushes(self, row: int) -> Array:
        """Return each feature's contribution towards the clip's own label, over the models that judged it."""
        own = self.sight.rows[row]
        weights = self.judged.weights[self.folding.folds[own]]
        made = self.folding.made[own]
        pushed = weights[self.folding.parts[own]] if made else -weights.mean(axis=0)
        towards: Array = pushed * self.scaled[row]
        return towards


def _compute_joint_p_values(fits: Sequence[_ViewModels], nulls: Sequence[Array]) -> list[float]:
    """Return for each view the fraction of all datasets, including this one, in which a view reaches the same AUC.

    Views are compared in their own standard deviations, which include the true labels: if the true
    labels were random too, the p-values would be uniform.
    """
    told = np.array([[own.judged.value, *null] for own, null in zip(fits, nulls, strict=True)])
    spread = told.std(axis=1, keepdims=True)
    surprise = (told - told.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    most = surprise.max(axis=0)
    return [float((most >= own[0] - ROUNDING).mean()) for own in surprise]


def _audit_view(fit: _ViewModels, null: Array, p_value: float) -> ViewAudit:
    auc = fit.judged.auc(fit.owners, null=null)
    counted = _build_view_counts(fit.sight, auc)
    if isinstance(auc, Unmeasured):
        return counted
    n_unjudged = fit.judged.n_unjudged
    n_least = min(counted.n_real, counted.n_generated)
    outcome = replace(
        counted,
        finding=judge(auc, n_least=n_least, p_value=p_value, n_unjudged=n_unjudged),
        n_unjudged=n_unjudged,
        p_value=p_value,
        leaks=_measure_property_leaks(fit),
    )
    return _add_revealing_clips(outcome, fit) if outcome.finding is AuditFinding.LEAKS else outcome


def _build_view_counts(sight: _ModelFeatures, auc: Measured) -> ViewAudit:
    """Return the counts of a view before its result."""
    creators = Counter(seen.creator for seen in sight.shown)
    n_real = creators.pop(None, 0)
    return ViewAudit(
        view=sight.view,
        finding=AuditFinding.INCONCLUSIVE,
        auc=auc if sight.shown else Unmeasured("no clip could be read"),
        n_real=n_real,
        n_generated=creators.total(),
        n_creators=len(creators),
        n_unread=sight.n_unread,
    )


def _measure_property_leaks(fit: _ViewModels) -> tuple[PropertyLeak, ...]:
    """Measure the leak of each property alone, with the method used for all properties together."""
    columns: defaultdict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(fit.sight.table.names):
        columns[get_feature_family(name)].append(index)
    rows = fit.sight.rows
    alone = {
        own: cross_fit(fit.scaled[:, chosen], fit.folding, rows) for own, chosen in columns.items()
    }
    telling = sorted(
        (own for own in alone if alone[own].value > CHANCE),
        key=lambda own: (-alone[own].value, own),
    )
    leaks = []
    for own in telling[:MOST_LEAKS]:
        sides = describe_sides(fit.sight.table.only(columns[own]), fit.judged.made)
        auc = alone[own].auc(fit.owners)
        leaks.append(PropertyLeak(feature=own, auc=auc, generated=sides.generated, real=sides.real))
    return tuple(leaks)


def _add_revealing_clips(outcome: ViewAudit, fit: _ViewModels) -> ViewAudit:
    shares = fit.judged.told_from()
    shown = fit.sight.shown
    every = [i for i in range(len(shown)) if shares[i] >= TOLD_FROM]
    every.sort(key=lambda i: (-shares[i], shown[i].clip))
    listed = tuple(
        RevealingClip(
            clip=shown[i].clip,
            label=Label.REAL if shown[i].creator is None else Label.GENERATED,
            told_from=float(shares[i]),
            because=_list_revealing_properties(i, fit),
        )
        for i in every[:MOST_GIVEAWAYS]
    )
    return replace(outcome, giveaways=listed, n_giveaways=len(every))


def _list_revealing_properties(row: int, fit: _ViewModels) -> tuple[str, ...]:
    """Return the properties that moved the clip's score towards its own label, strongest first."""
    total: Counter[str] = Counter()
    for name, push in zip(fit.sight.table.names, fit.pushes(row).tolist(), strict=True):
        total[get_feature_family(name)] += push
    largest = max(total.values(), default=0.0)
    return tuple(n for n, p in total.most_common(MOST_REASONS) if p > 0 and p >= largest / 4)
