"""All that is known of how well a campaign's people answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unreel.annotate.agreement import Agreement, Figure, measure_agreement
from unreel.annotate.campaign import Interface
from unreel.annotate.quality.drift import Drift, find_drift
from unreel.annotate.quality.looking import Looking, find_informed
from unreel.annotate.quality.pull import measure_pull
from unreel.annotate.quality.qualifying import PASSING, Qualification, qualify
from unreel.annotate.quality.timing import Pace, find_pace
from unreel.annotate.reading import Judgement
from unreel.core.estimate import Measured, Unmeasured


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuality:
    """Quality metrics of one person."""

    n_judged: int
    right: Measured
    """Share of right answers to known clips."""
    qualified: bool | None
    """Whether that is enough; `None` where no clip is known."""
    looking: Looking
    same_answer: Measured
    pace: Pace | None
    drift: tuple[Drift, ...]

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
class Quality:
    """Quality metrics of the people of one campaign."""

    people: Mapping[str, PersonQuality]
    agreement: Agreement
    qualification: Qualification
    pull: Measured
    """What marks shown beforehand change."""


def measure_quality(
    judged: Sequence[Judgement], *, interface: Interface, passing: float = PASSING, seed: int
) -> Quality:
    """Everything that is measured of each person, and of all together."""
    agreement = measure_agreement(judged, interface=interface, seed=seed)
    qualification = qualify(judged, interface=interface, passing=passing, seed=seed)
    looking, drift = find_informed(judged, seed=seed), find_drift(judged, seed=seed)
    pace = find_pace(judged)
    alone = Looking(Unmeasured("shares no task with anybody"), 0)
    people = {}
    for who in sorted({each.annotator for each in judged}):
        right = qualification.right.get(who, Unmeasured("judged no task with a known answer"))
        people[who] = PersonQuality(
            n_judged=sum(each.annotator == who for each in judged),
            right=right,
            qualified=None if isinstance(right, Unmeasured) else who in qualification.qualified,
            looking=looking.get(who, alone),
            same_answer=agreement.by_annotator[who].get(Figure.SAME_ANSWER, alone.informed),
            pace=pace.get(who),
            drift=drift[who],
        )
    pull = measure_pull(judged, seed=seed)
    return Quality(people=people, agreement=agreement, qualification=qualification, pull=pull)
