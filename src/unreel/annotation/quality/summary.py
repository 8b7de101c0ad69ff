"""Quality metrics of the annotators of a campaign, and the bias by prefilled annotations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unreel.annotation.agreement import (
    AgreementMetric,
    CampaignAgreement,
    measure_annotator_agreement,
)
from unreel.annotation.campaign import AnnotationInterface, AnnotationTask, PrefillStudyArm
from unreel.annotation.campaign_state import AnnotatorJudgement
from unreel.annotation.judgements import AnyValue, TraceAnswer
from unreel.annotation.quality.alarms import (
    AnnotatorInformedness,
    AnnotatorSpeed,
    AnswerDrift,
    estimate_annotator_informedness,
    measure_annotator_speeds,
    measure_answer_drift,
)
from unreel.annotation.quality.qualification import (
    PASSING,
    QualificationResult,
    qualify_annotators,
    score_against_known_answer,
)
from unreel.core.estimate import Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap
from unreel.stats.resampling import Statistic
from unreel.stats.row_sample import Array, RowSample, weighted_sum


class StudyArmJudgement(Protocol):
    """Protocol of a judgement that knows whether the annotator saw prefilled annotations."""

    @property
    def task(self) -> AnnotationTask:
        """Return the task that the annotator judged."""
        ...

    @property
    def value(self) -> AnyValue:
        """Return the annotator's answer to the task."""
        ...

    @property
    def arm(self) -> PrefillStudyArm:
        """Return the study arm: whether the annotator saw earlier annotations of the clip."""
        ...


def measure_prefill_bias(judgements: Sequence[StudyArmJudgement], *, seed: int) -> Measured:
    """Compute how much prefilled annotations change answers: agreement with them in both study arms.

    The result is the agreement of the prefilled arm minus that of the blind arm. The interval
    resamples scenes. Agreement is 1 for the same answer and 0 for another; for traces it is the
    fraction of the prefilled traces that the annotator marked too.
    """
    rows = [
        (each.task, _score_prefill_agreement(each), float(each.arm is PrefillStudyArm.PREFILLED))
        for each in judgements
        if each.task.prefill is not None and each.arm is not PrefillStudyArm.PLAIN
    ]
    arms = {arm for _, _, arm in rows}
    if len(arms) < 2:  # noqa: PLR2004  two arms
        return Unmeasured("there were no prefilled annotations with a blind arm")
    follows, shown = np.array([row[1:] for row in rows]).T
    sample = RowSample.of((follows, shown), [task.group or task.id for task, _, _ in rows])
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)
    return bootstrap(_build_difference_statistic(sample), sample, seed=seed, limits=limits)


def _score_prefill_agreement(judgement: StudyArmJudgement) -> float:
    task, marks = judgement.task, judgement.task.prefill
    as_known = AnnotationTask(names=task.names, copies=task.copies, known=marks)
    if (
        isinstance(marks, TraceAnswer)
        and not marks.traces
        and isinstance(judgement.value, TraceAnswer)
    ):
        return float(not judgement.value.traces)
    return score_against_known_answer(as_known, judgement.value)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuality:
    """Quality metrics of one annotator: accuracy, informedness, agreement, speed and drift."""

    n_judged: int
    right: Measured
    """Share of right answers to known clips."""
    qualified: bool | None
    """Whether that is enough; `None` where no clip is known."""
    looking: AnnotatorInformedness
    same_answer: Measured
    pace: AnnotatorSpeed | None
    drift: tuple[AnswerDrift, ...]

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return the annotator's quality problems as short texts."""
        found = [f"{drift.what} changed after {drift.since}" for drift in self.drift if drift.alarm]
        if self.looking.is_spammer:
            found.append("does not look")
        if self.pace and self.pace.unseen:
            found.append(f"{len(self.pace.unseen)} faster than half of the clip")
        if self.pace and (self.pace.fast or self.pace.slow):
            found.append(f"{len(self.pace.fast)} very fast, {len(self.pace.slow)} very slow")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignQuality:
    """Quality metrics of all annotators of one campaign."""

    people: Mapping[str, PersonQuality]
    agreement: CampaignAgreement
    qualification: QualificationResult
    pull: Measured
    """What marks shown beforehand change."""


def measure_annotator_quality(
    judged: Sequence[AnnotatorJudgement],
    *,
    interface: AnnotationInterface,
    passing: float = PASSING,
    seed: int,
) -> CampaignQuality:
    """Compute all quality metrics of each annotator and of all annotators together."""
    agreement = measure_annotator_agreement(judged, interface=interface, seed=seed)
    qualification = qualify_annotators(judged, interface=interface, passing=passing, seed=seed)
    looking, drift = (
        estimate_annotator_informedness(judged, seed=seed),
        measure_answer_drift(judged, seed=seed),
    )
    pace = measure_annotator_speeds(judged)
    alone = AnnotatorInformedness(Unmeasured("shares no task with anybody"), 0)
    people = {}
    for who in sorted({each.annotator for each in judged}):
        right = qualification.right.get(who, Unmeasured("judged no task with a known answer"))
        people[who] = PersonQuality(
            n_judged=sum(each.annotator == who for each in judged),
            right=right,
            qualified=None if isinstance(right, Unmeasured) else who in qualification.qualified,
            looking=looking.get(who, alone),
            same_answer=agreement.by_annotator[who].get(
                AgreementMetric.SAME_ANSWER, alone.informed
            ),
            pace=pace.get(who),
            drift=drift[who],
        )
    pull = measure_prefill_bias(judged, seed=seed)
    return CampaignQuality(
        people=people, agreement=agreement, qualification=qualification, pull=pull
    )
