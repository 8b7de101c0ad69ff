"""Summary of the quality of a campaign's annotators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unreel.annotation.agreement import AgreementMetric, CampaignAgreement, measure_agreement
from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.campaign_state import AnnotatorJudgement
from unreel.annotation.quality.drift import AnswerDrift, find_drift
from unreel.annotation.quality.inattention import InformednessEstimate, find_informed
from unreel.annotation.quality.prefill_bias import measure_pull
from unreel.annotation.quality.qualification import PASSING, QualificationResult, qualify
from unreel.annotation.quality.task_time import AnnotatorSpeed, find_pace
from unreel.core.estimate import Measured, Unmeasured


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuality:
    """Quality metrics of one person."""

    n_judged: int
    right: Measured
    """Share of right answers to known clips."""
    qualified: bool | None
    """Whether that is enough; `None` where no clip is known."""
    looking: InformednessEstimate
    same_answer: Measured
    pace: AnnotatorSpeed | None
    drift: tuple[AnswerDrift, ...]

    @property
    def alarms(self) -> tuple[str, ...]:
        """Return the alarms as text."""
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
    """Quality metrics of the people of one campaign."""

    people: Mapping[str, PersonQuality]
    agreement: CampaignAgreement
    qualification: QualificationResult
    pull: Measured
    """What marks shown beforehand change."""


def measure_quality(
    judged: Sequence[AnnotatorJudgement],
    *,
    interface: AnnotationInterface,
    passing: float = PASSING,
    seed: int,
) -> CampaignQuality:
    """Compute all quality measures of each person and of all people together."""
    agreement = measure_agreement(judged, interface=interface, seed=seed)
    qualification = qualify(judged, interface=interface, passing=passing, seed=seed)
    looking, drift = find_informed(judged, seed=seed), find_drift(judged, seed=seed)
    pace = find_pace(judged)
    alone = InformednessEstimate(Unmeasured("shares no task with anybody"), 0)
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
    pull = measure_pull(judged, seed=seed)
    return CampaignQuality(
        people=people, agreement=agreement, qualification=qualification, pull=pull
    )
