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
    """Protocol of a judgement with its study arm: whether prefilled annotations were shown."""

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
        (j.task, _score_prefill_agreement(j), float(j.arm is PrefillStudyArm.PREFILLED))
        for j in judgements
        if j.task.prefill is not None and j.arm is not PrefillStudyArm.PLAIN
    ]
    arms = {arm for _, _, arm in rows}
    if len(arms) < 2:  # noqa: PLR2004  two arms
        return Unmeasured("there were no prefilled annotations with a blind arm")
    follows, prefilled = np.array([row[1:] for row in rows]).T
    sample = RowSample.of((follows, prefilled), [task.group or task.id for task, _, _ in rows])
    limits = StatisticLimits(-1.0, 1.0, sample.n_free)
    return bootstrap(_build_difference_statistic(sample), sample, seed=seed, limits=limits)


def _score_prefill_agreement(judgement: StudyArmJudgement) -> float:
    task, prefill = judgement.task, judgement.task.prefill
    as_known = AnnotationTask(names=task.names, copies=task.copies, known=prefill)
    if (
        isinstance(prefill, TraceAnswer)
        and not prefill.traces
        and isinstance(judgement.value, TraceAnswer)
    ):
        return float(not judgement.value.traces)
    return score_against_known_answer(as_known, judgement.value)


def _build_difference_statistic(sample: RowSample) -> Statistic:
    follows, prefilled = sample.columns

    def statistic(weights: Array) -> Array:
        def mean(which: Array) -> Array:
            n = weighted_sum(weights, which)
            total = weighted_sum(weights, follows * which)
            means: Array = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
            return means

        return mean(prefilled) - mean(1 - prefilled)

    return statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuality:
    """Quality metrics of one annotator: accuracy, informedness, agreement, speed and drift."""

    n_judged: int
    right: Measured
    """Accuracy on clips with known answers."""
    qualified: bool | None
    """Whether the accuracy reaches the passing threshold; `None` without clips with known answers."""
    looking: AnnotatorInformedness
    same_answer: Measured
    pace: AnnotatorSpeed | None
    drift: tuple[AnswerDrift, ...]

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return the annotator's quality problems as short texts."""
        texts = [f"{drift.what} changed after {drift.since}" for drift in self.drift if drift.alarm]
        if self.looking.is_spammer:
            texts.append("does not look")
        if self.pace and self.pace.unseen:
            texts.append(f"{len(self.pace.unseen)} faster than half of the clip")
        if self.pace and (self.pace.fast or self.pace.slow):
            texts.append(f"{len(self.pace.fast)} very fast, {len(self.pace.slow)} very slow")
        return tuple(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignQuality:
    """Quality metrics of all annotators of one campaign."""

    people: Mapping[str, PersonQuality]
    agreement: CampaignAgreement
    qualification: QualificationResult
    pull: Measured
    """Bias by prefilled annotations: change of the agreement with them."""


def measure_annotator_quality(
    judgements: Sequence[AnnotatorJudgement],
    *,
    interface: AnnotationInterface,
    passing: float = PASSING,
    seed: int,
) -> CampaignQuality:
    """Compute all quality metrics of each annotator and of all annotators together."""
    agreement = measure_annotator_agreement(judgements, interface=interface, seed=seed)
    qualification = qualify_annotators(judgements, interface=interface, passing=passing, seed=seed)
    looking, drift = (
        estimate_annotator_informedness(judgements, seed=seed),
        measure_answer_drift(judgements, seed=seed),
    )
    speeds = measure_annotator_speeds(judgements)
    alone = AnnotatorInformedness(Unmeasured("shares no task with another annotator"), 0)
    people = {}
    for who in sorted({j.annotator for j in judgements}):
        right = qualification.right.get(who, Unmeasured("judged no task with a known answer"))
        people[who] = PersonQuality(
            n_judged=sum(j.annotator == who for j in judgements),
            right=right,
            qualified=None if isinstance(right, Unmeasured) else who in qualification.qualified,
            looking=looking.get(who, alone),
            same_answer=agreement.by_annotator[who].get(
                AgreementMetric.SAME_ANSWER, alone.informed
            ),
            pace=speeds.get(who),
            drift=drift[who],
        )
    pull = measure_prefill_bias(judgements, seed=seed)
    return CampaignQuality(
        people=people, agreement=agreement, qualification=qualification, pull=pull
    )
