"""Detection metrics for every protocol with labels or scores of real and generated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Coverage, Measured, Metric, Unmeasured
from unreel.core.judgement import Label
from unreel.protocols.figures import FALSE_ALARMS
from unreel.protocols.measure import percent
from unreel.stats.detection import auc, f1, tpr_at_fpr
from unreel.stats.sample import Array, BoolArray, Clusters

Said = npt.NDArray[np.int8]
CALLS: Final[Mapping[Label | None, int]] = {None: -1, Label.REAL: 0, Label.GENERATED: 1}
"""Answers as numbers; `None`: unreadable."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelPredictions:
    """True and predicted labels of clips."""

    clips: Clusters
    generated: BoolArray
    said: Said
    """As `CALLS` has it."""

    @classmethod
    def of(
        cls, clips: Clusters, labels: Sequence[Label], said: Sequence[Label | None]
    ) -> "LabelPredictions":
        """Build predictions from the true label and the answered label of each clip."""
        generated = np.array([label is Label.GENERATED for label in labels], np.bool_)
        return cls(clips, generated, np.array([CALLS[each] for each in said], np.int8))


def measure_f1(calls: LabelPredictions, *, seed: int) -> Measured:
    """Return F1 for the label `generated`, in percent.

    A generated clip without a readable answer counts as missed.
    """
    if not len(calls.said):
        return Unmeasured("no rows")
    called = calls.said == CALLS[Label.GENERATED]
    return percent(f1(calls.generated, called, seed=seed, clusters=calls.clips))


def count_calls(calls: LabelPredictions) -> Mapping[str, int]:
    """Count the confusion matrix, such as `generated called real`; unreadable answers are `unread`."""
    sides = [Label.GENERATED, Label.REAL]
    counts = {f"{label} called {said}": 0 for label in sides for said in sides}
    found = {}
    for label in sides:
        for said, number in CALLS.items():
            here = calls.generated == (label is Label.GENERATED)
            n = int(np.count_nonzero(here & (calls.said == number)))
            if n:
                found[f"{label} called {said}" if said else f"{label} unread"] = n
    return counts | dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, eq=False)
class ScoredClips:
    """Clips with a score: the more, the more it looks generated."""

    clips: Clusters
    generated: BoolArray
    scores: Array


def measure_scores(
    scored: ScoredClips, *, coverage: Coverage, why_none: str, seed: int
) -> Iterator[Metric]:
    """Yield AUC, and the percentage of generated clips detected at two false positive rates."""
    truth, scores, clips = scored.generated, scored.scores, scored.clips
    value: Measured = Unmeasured(why_none)
    if len(scores):
        value = auc(truth, scores, seed=seed, clusters=clips)
    yield Metric(name="auc", value=value, coverage=coverage)
    for name, rate in FALSE_ALARMS.items():
        if len(scores):
            value = percent(tpr_at_fpr(truth, scores, fpr=rate, seed=seed, clusters=clips))
        yield Metric(name=name, value=value, coverage=coverage)
