"""Progress of a campaign: tasks done, tasks left and time per task for each annotator."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import bdtr

from unreel.annotation.agreement import measure_agreement_by_annotator
from unreel.annotation.campaign_state import CampaignRecords, iter_valid_judgements
from unreel.annotation.judgements import SubmissionQuarantine
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.span import MICROSECONDS

NOBODY = Unmeasured("no other annotator judged the same tasks")
_LEVEL = 0.95
_HOUR_S = 3600
_LEAST = 6
"""Minimum number of values for a confidence interval of the median at `_LEVEL` between two values."""


@dataclass(slots=True)
class AnnotatorTaskCounts:
    """Numbers of tasks that one annotator was assigned, judged, and answered without a valid result."""

    given: int = 0
    done: int = 0
    quarantined: int = 0
    """Number of tasks whose newest answer is quarantined."""
    spent_s: list[float] = field(default_factory=list)
    """Time spent on each judged task in seconds, if the server reports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorProgress:
    """Progress of one annotator: counts of tasks, time per task, and agreement with the others."""

    annotator: str
    given: int
    done: int
    quarantined: int
    """Number of tasks whose newest answer is quarantined."""
    median_s: Measured
    """Median time per task in seconds."""
    per_hour: float | None
    """Number of tasks per hour of time on task; `None` if times are missing or the annotator is excluded."""
    agreement: Measured
    """Fraction of the other annotators' answers to the same tasks that equal this annotator's answers."""
    is_excluded: bool

    @property
    def left(self) -> int:
        """Return the number of assigned tasks without a usable answer."""
        return self.given - self.done


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignProgress:
    """Progress of a campaign: its tasks, and the progress of each annotator."""

    campaign: str
    interface: str
    tasks: int
    settled: int
    """Number of tasks that all assigned annotators have judged."""
    records: int
    people: tuple[AnnotatorProgress, ...]
    unusable: tuple[str, ...] = ()
    """Annotator, clips and reason of each answer that cannot be used."""


def count_annotator_tasks(records: CampaignRecords) -> dict[str, AnnotatorTaskCounts]:
    """Count assigned, judged and quarantined tasks of every annotator with a task, sorted by name."""
    by_annotator = {
        name: AnnotatorTaskCounts() for name in sorted({name for name, _ in records.assignments})
    }
    for name, _ in records.assignments:
        by_annotator[name].given += 1
    for (name, _), record in records.standing.items():
        if (counts := by_annotator.get(name)) is None:
            continue
        if isinstance(record.outcome, SubmissionQuarantine):
            counts.quarantined += 1
            continue
        counts.done += 1
        if record.lead_us is not None:
            counts.spent_s.append(record.lead_us / MICROSECONDS)
    return by_annotator


def measure_campaign_progress(records: CampaignRecords) -> CampaignProgress:
    """Compute the progress of each annotator from the stored answers; run `pull` first."""
    n_assigned = Counter(task for _, task in records.assignments)
    alike = measure_agreement_by_annotator(
        list(iter_valid_judgements(records)), seed=records.campaign.seed
    )
    n_judged = Counter(
        task
        for (_, task), record in records.standing.items()
        if not isinstance(record.outcome, SubmissionQuarantine)
    )
    names = {id_: " | ".join(task.names) for id_, task in records.tasks.items()}
    return CampaignProgress(
        campaign=records.campaign.name,
        interface=records.campaign.interface.value,
        tasks=len(records.tasks),
        settled=sum(n_judged[task] >= n for task, n in n_assigned.items()),
        records=records.n_records,
        people=tuple(
            _build_annotator_progress(
                name, counts, alike.get(name, NOBODY), is_excluded=name in records.excluded
            )
            for name, counts in count_annotator_tasks(records).items()
        ),
        unusable=tuple(
            f"{record.annotator}, {names.get(record.task, 'no task')}: {record.outcome}"
            for record in records.quarantined
        ),
    )


def estimate_median(values: Sequence[float]) -> Measured:
    """Compute the median with a confidence interval of at least 95 %, whose ends are observed values."""
    if len(values) < _LEAST:
        return Unmeasured(f"{len(values)} values are too few for a median with an interval")
    ordered = np.sort(np.asarray(values, np.float64))
    n = len(ordered)
    # Quantile of Binomial(n, 1/2); importing `scipy.stats` for it would take a second.
    below = int(np.searchsorted(bdtr(np.arange(n), n, 0.5), (1 - _LEVEL) / 2))
    return Estimate(
        value=float(np.median(ordered)),
        low=float(ordered[max(0, below - 1)]),
        high=float(ordered[min(n - 1, n - below)]),
        n=n,
    )


def _build_annotator_progress(
    name: str, counts: AnnotatorTaskCounts, agreement: Measured, *, is_excluded: bool
) -> AnnotatorProgress:
    spent_s = [] if is_excluded else counts.spent_s
    return AnnotatorProgress(
        annotator=name,
        given=counts.given,
        done=counts.done,
        quarantined=counts.quarantined,
        median_s=estimate_median(spent_s),
        per_hour=_HOUR_S * len(spent_s) / sum(spent_s) if sum(spent_s) > 0 else None,
        agreement=agreement,
        is_excluded=is_excluded,
    )
