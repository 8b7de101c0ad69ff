"""Telling generated from real: figures for every instrument that calls clips so, or gives a score for it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unreel.core.cluster import Cluster
from unreel.core.estimate import Coverage, Measured, Metric, Unmeasured
from unreel.core.judgement import Label
from unreel.protocols.figures import FALSE_ALARMS
from unreel.protocols.measure import percent
from unreel.stats.detection import auc, f1, tpr_at_fpr


@dataclass(frozen=True, slots=True)
class Call:
    """What a clip is, and what it was called."""

    cluster: Cluster
    label: Label
    said: Label | None
    """`None` when nothing readable was said."""


def measure_f1(calls: Sequence[Call], *, seed: int) -> Measured:
    """F1 of the calls `generated` in percent; a generated clip without a readable call was missed."""
    if not calls:
        return Unmeasured("no rows")
    measured = f1(
        [call.label is Label.GENERATED for call in calls],
        [call.said is Label.GENERATED for call in calls],
        seed=seed,
        clusters=[call.cluster for call in calls],
    )
    return percent(measured)


def count_calls(calls: Sequence[Call]) -> Mapping[str, int]:
    """The confusion of the two sides, as `generated called real`; what was not readable is `unread`."""
    sides = [Label.GENERATED, Label.REAL]
    counts = {f"{label} called {said}": 0 for label in sides for said in sides}
    found = Counter(
        f"{call.label} called {call.said}" if call.said else f"{call.label} unread"
        for call in calls
    )
    return counts | dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Scored:
    """A clip with a score: the more, the more it looks generated."""

    cluster: Cluster
    label: Label
    score: float


def measure_scores(
    scored: Sequence[Scored], *, coverage: Coverage, why_none: str, seed: int
) -> Iterator[Metric]:
    """AUC, and the generated clips caught at two rates of false alarms, in percent."""
    truth = [clip.label is Label.GENERATED for clip in scored]
    scores = [clip.score for clip in scored]
    clips = [clip.cluster for clip in scored]
    value: Measured = Unmeasured(why_none)
    if scored:
        value = auc(truth, scores, seed=seed, clusters=clips)
    yield Metric(name="auc", value=value, coverage=coverage)
    for name, rate in FALSE_ALARMS.items():
        if scored:
            value = percent(tpr_at_fpr(truth, scores, fpr=rate, seed=seed, clusters=clips))
        yield Metric(name=name, value=value, coverage=coverage)
