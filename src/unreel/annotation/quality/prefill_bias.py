"""Influence of pre-filled annotations on people's answers."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from unreel.annotation.campaign import AnnotationTask, StudyArm
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.quality.qualification import score_answer
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap
from unreel.stats.resampling import Statistic
from unreel.stats.sample import Array, RowSample, weighted_sum


class ArmJudgement(Protocol):
    """A judgement with the arm that it was given in."""

    @property
    def task(self) -> AnnotationTask:
        """Return the task."""
        ...

    @property
    def value(self) -> AnyValue:
        """Return the person's answer."""
        ...

    @property
    def arm(self) -> StudyArm:
        """Return the study arm."""
        ...


def measure_pull(judgements: Sequence[ArmJudgement], *, seed: int) -> Measured:
    """Return the bias of prefilled annotations: agreement with them of the shown minus the blind arm.

    The interval resamples clips. Agreement is that with a known answer: the same answer, or for
    traces the fraction of the marks that the person has too.
    """
    rows = [
        (each.task, _score_prefill_agreement(each), float(each.arm is StudyArm.PREFILLED))
        for each in judgements
        if each.task.prefill is not None and each.arm is not StudyArm.PLAIN
    ]
    arms = {arm for _, _, arm in rows}
    if len(arms) < 2:  # noqa: PLR2004  two arms
        return Unmeasured("there were no prefilled annotations with a blind arm")
    follows, shown = np.array([row[1:] for row in rows]).T
    sample = RowSample.of((follows, shown), [task.group or task.id for task, _, _ in rows])
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)
    return bootstrap(_build_difference_statistic(sample), sample, seed=seed, limits=limits)


def _score_prefill_agreement(judgement: ArmJudgement) -> float:
    task, marks = judgement.task, judgement.task.prefill
    as_known = AnnotationTask(names=task.names, copies=task.copies, known=marks)
    if (
        isinstance(marks, TraceAnswer)
        and not marks.traces
        and isinstance(judgement.value, TraceAnswer)
    ):
        return float(not judgement.value.traces)
    return score_answer(as_known, judgement.value)


def _build_difference_statistic(sample: RowSample) -> Statistic:
    follows, shown = sample.columns

    def statistic(weights: Array) -> Array:
        def mean(which: Array) -> Array:
            n = weighted_sum(weights, which)
            total = weighted_sum(weights, follows * which)
            found: Array = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
            return found

        return mean(shown) - mean(1 - shown)

    return statistic
