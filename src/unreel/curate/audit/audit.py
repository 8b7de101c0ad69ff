"""Whether a set of clips gives its labels away, to which model and by what."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.judgement import Label
from unreel.curate.audit.cross_fit import CrossFit, Subject, cross_fit, pushes
from unreel.curate.audit.observation import Observation
from unreel.curate.audit.sides import describe_sides
from unreel.curate.audit.views import View, family, view_features, with_bins

LEAK_FROM: Final = 0.60
"""A model above this tells too much; see docs/decisions/0012-audit.md."""
CLEAN_BELOW: Final = 0.70
"""A set is called clean only where its interval stays below this."""
CHANCE: Final = 0.50
LEAST_PER_SIDE: Final = 20
"""With fewer clips of either side nothing is decided, whatever the number."""
TOLD_FROM: Final = 0.95
"""A clip gives itself away where the model tells it from this share of the other side."""
MOST_LEAKS: Final = 8
MOST_GIVEAWAYS: Final = 10
MOST_REASONS: Final = 3
MOST_PER_SIDE: Final = 1_000
"""Clips of either side that are judged: the interval is then 0.03 wide, and the cost stays flat."""


class Finding(StrEnum):
    """What an audit says. The words are stored: add, never rename."""

    LEAKS = "leaks"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """How much one property alone tells, and what it is on either side."""

    feature: str
    auc: Measured
    generated: str
    real: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Giveaway:
    """A clip that the model tells from nearly all clips of the other side."""

    clip: str
    label: Label
    told_from: float
    """Share of the other side's clips."""
    because: tuple[str, ...]
    """The properties that pushed most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAudit:
    """What one model tells."""

    view: View
    finding: Finding
    auc: Measured
    n_real: int
    n_generated: int
    n_creators: int
    n_unread: int = 0
    """Clips that could not be shown to the model."""
    leaks: tuple[Leak, ...] = ()
    """What tells most on its own, the strongest first."""
    giveaways: tuple[Giveaway, ...] = ()
    n_giveaways: int = 0
    """All clips that give themselves away; `giveaways` lists the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Whether the labels of a set can be told without looking."""

    finding: Finding
    """Of metadata and watermark together; the frame's is a warning, because a frame is looked at."""
    views: tuple[ViewAudit, ...]
    seed: int

    def __getitem__(self, view: View) -> ViewAudit:
        return next(own for own in self.views if own.view is view)


def audit(observations: Iterable[Observation], *, seed: int) -> Audit:
    """Fit and judge one model for each view; the same observations and seed give the same audit."""
    chosen = _choose(list(observations), seed=seed)
    views = tuple(_audit_view(chosen, view, seed=seed) for view in View)
    deciding = {own.finding for own in views if own.view is not View.FRAME}
    ranked = (Finding.LEAKS, Finding.INCONCLUSIVE, Finding.CLEAN)
    return Audit(finding=next(f for f in ranked if f in deciding), views=views, seed=seed)


def judge(auc: Measured, *, n_least: int) -> Finding:
    """`leaks` above 0.60 where chance is excluded; `clean` up to 0.60 where 0.70 is excluded.

    A model that is wrong more often than chance allows (below 0.40, chance excluded) has found what
    tells the sides apart among some creators and not among others: that is not clean. `n_least`
    counts the clips of the smaller side.
    """
    if isinstance(auc, Unmeasured) or n_least < LEAST_PER_SIDE:
        return Finding.INCONCLUSIVE
    if auc.value > LEAK_FROM and auc.low > CHANCE:
        return Finding.LEAKS
    misled = auc.value < 1 - LEAK_FROM and auc.high < CHANCE
    if auc.value <= LEAK_FROM and auc.high < CLEAN_BELOW and not misled:
        return Finding.CLEAN
    return Finding.INCONCLUSIVE


def _choose(observations: Sequence[Observation], *, seed: int) -> list[Observation]:
    """At most `MOST_PER_SIDE` of either side, drawn by name, in the order of their names."""
    drawn = sorted(observations, key=lambda seen: digest("audit", str(seed), seen.clip))
    sides = ([o for o in drawn if o.creator is None], [o for o in drawn if o.creator is not None])
    return sorted(
        (seen for side in sides for seen in side[:MOST_PER_SIDE]), key=lambda seen: seen.clip
    )


def _audit_view(observations: Sequence[Observation], view: View, *, seed: int) -> ViewAudit:
    shown = [
        Subject(name=seen.clip, creator=seen.creator, group=seen.group, features=features)
        for seen in observations
        if not isinstance(features := view_features(seen, view), Failure)
    ]
    creators = Counter(subject.creator for subject in shown)
    n_real = creators.pop(None, 0)
    fitted = (
        cross_fit(with_bins(shown), seed=seed) if shown else Unmeasured("no clip could be read")
    )
    auc = fitted if isinstance(fitted, Unmeasured) else fitted.auc(seed=seed)
    outcome = ViewAudit(
        view=view,
        finding=judge(auc, n_least=min(n_real, creators.total())),
        auc=auc,
        n_real=n_real,
        n_generated=creators.total(),
        n_creators=len(creators),
        n_unread=len(observations) - len(shown),
    )
    if isinstance(fitted, Unmeasured):
        return outcome
    outcome = replace(outcome, leaks=_leaks(with_bins(shown), seed=seed))
    return _with_giveaways(outcome, fitted) if outcome.finding is Finding.LEAKS else outcome


def _leaks(subjects: Sequence[Subject], *, seed: int) -> tuple[Leak, ...]:
    """Each property judged alone, in the same way as all of them together."""
    families = sorted({family(name) for subject in subjects for name in subject.features})
    leaks = []
    for own in families:
        alone = [
            replace(clip, features={n: v for n, v in clip.features.items() if family(n) == own})
            for clip in subjects
        ]
        fitted = cross_fit(alone, seed=seed)
        if not isinstance(fitted, Unmeasured):
            sides = describe_sides(alone)
            auc = fitted.auc(seed=seed)
            leaks.append(Leak(feature=own, auc=auc, generated=sides.generated, real=sides.real))
    leaks.sort(key=lambda leak: (-_tells(leak.auc), leak.feature))
    return tuple(leak for leak in leaks[:MOST_LEAKS] if _tells(leak.auc) > CHANCE)


def _tells(auc: Measured) -> float:
    return auc.value if isinstance(auc, Estimate) else 0.0


def _with_giveaways(outcome: ViewAudit, fitted: CrossFit) -> ViewAudit:
    shares = fitted.told_from()
    every = [c for c in (*fitted.generated, *fitted.real) if shares[c.name] >= TOLD_FROM]
    every.sort(key=lambda clip: (-shares[clip.name], clip.name))
    listed = tuple(
        Giveaway(
            clip=clip.name,
            label=Label.REAL if clip.creator is None else Label.GENERATED,
            told_from=shares[clip.name],
            because=_because(clip, fitted),
        )
        for clip in every[:MOST_GIVEAWAYS]
    )
    return replace(outcome, giveaways=listed, n_giveaways=len(every))


def _because(subject: Subject, fitted: CrossFit) -> tuple[str, ...]:
    """The properties that pushed the clip towards its own side, the strongest first."""
    towards = -1.0 if subject.creator is None else 1.0
    total: Counter[str] = Counter()
    for model in fitted.models[subject.name]:
        own = towards * pushes(model, [subject])[0]
        for name, push in zip(model.names, own.tolist(), strict=True):
            total[family(name)] += push
    largest = max(total.values(), default=0.0)
    return tuple(n for n, p in total.most_common(MOST_REASONS) if p > 0 and p >= largest / 4)
