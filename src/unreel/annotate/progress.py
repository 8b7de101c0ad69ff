"""How far a campaign is: per annotator what is done, what is left, and how long a task takes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from unreel.annotate.agreement import Figure, measure_agreement
from unreel.annotate.judgements import Quarantined
from unreel.annotate.ledger.ledger import Ledger
from unreel.annotate.reading import CampaignRecords, Judgement, judgements, read_campaign
from unreel.core.estimate import Estimate, Measured, Unmeasured

NOBODY: Final = Unmeasured("nobody else judged the same tasks")
_LEVEL: Final = 0.95
_HOUR_S: Final = 3600
_LEAST: Final = 6
"""Of fewer values no interval between two of them holds the median with that certainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorProgress:
    """How far one person is."""

    annotator: str
    given: int
    done: int
    quarantined: int
    """Tasks whose newest answer cannot be used."""
    median_s: Measured
    """Seconds on a task."""
    per_hour: float | None
    """Tasks in an hour of work, by the time on task; `None` where the server tells none."""
    agreement: Measured
    """Share of the answers that others gave to the same tasks and that this person gave too."""
    is_excluded: bool

    @property
    def left(self) -> int:
        """Tasks without a usable answer."""
        return self.given - self.done


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignProgress:
    """How far a campaign is."""

    campaign: str
    interface: str
    tasks: int
    settled: int
    """Tasks that as many people judged as were asked."""
    records: int
    people: tuple[AnnotatorProgress, ...]


def measure_progress(ledger: Ledger, campaign: str) -> CampaignProgress:
    """What the ledger says now; `pull` first."""
    records = read_campaign(ledger, campaign)
    asked = Counter(task for _, task in records.assignments)
    said = list(judgements(records))
    found = measure_agreement(
        said, interface=records.campaign.interface, seed=records.campaign.seed
    ).by_annotator
    alike = {who: figures.get(Figure.SAME_ANSWER, NOBODY) for who, figures in found.items()}
    judged = Counter(
        task
        for (_, task), record in records.standing.items()
        if not isinstance(record.outcome, Quarantined)
    )
    return CampaignProgress(
        campaign=campaign,
        interface=records.campaign.interface.value,
        tasks=len(records.tasks),
        settled=sum(judged[task] >= n for task, n in asked.items()),
        records=records.n_records,
        people=tuple(
            _of_person(records, name, said, alike.get(name, NOBODY))
            for name in sorted({name for name, _ in records.assignments})
        ),
    )


def median_of(values: Sequence[float]) -> Measured:
    """The median, between the two values that enclose it with a certainty of at least 95 %."""
    if len(values) < _LEAST:
        return Unmeasured(f"{len(values)} values are too few for a median with an interval")
    ordered = np.sort(np.asarray(values, np.float64))
    below = int(binom.ppf((1 - _LEVEL) / 2, len(ordered), 0.5))
    return Estimate(
        value=float(np.median(ordered)),
        low=float(ordered[max(0, below - 1)]),
        high=float(ordered[min(len(ordered) - 1, len(ordered) - below)]),
        n=len(ordered),
    )


def _of_person(
    records: CampaignRecords, name: str, said: Sequence[Judgement], agreement: Measured
) -> AnnotatorProgress:
    standing = [record for (who, _), record in records.standing.items() if who == name]
    held = sum(isinstance(record.outcome, Quarantined) for record in standing)
    spent_s = [
        each.lead_us / 1e6 for each in said if each.annotator == name and each.lead_us is not None
    ]
    return AnnotatorProgress(
        annotator=name,
        given=sum(who == name for who, _ in records.assignments),
        done=len(standing) - held,
        quarantined=held,
        median_s=median_of(spent_s),
        per_hour=_HOUR_S * len(spent_s) / sum(spent_s) if sum(spent_s) > 0 else None,
        agreement=agreement,
        is_excluded=name in records.excluded,
    )
