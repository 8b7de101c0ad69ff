"""State of a campaign: tasks and answers from the ledger, consensus, and progress."""

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from unreel.annotation.campaign import (
    EXCLUSION,
    INCLUSION,
    REVIEW,
    AnnotationRecord,
    AnnotationTask,
    AnnotatorJudgement,
    Campaign,
    LedgerNotice,
    PrefillStudyArm,
    QuarantineReason,
    SubmissionQuarantine,
    TaskAssignment,
    require_safe_name,
)
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import (
    CampaignConsensus,
    ConsensusReview,
    ConsensusReviewDecision,
    ConsensusRule,
    OpenTask,
    Outcome,
    hash_answer,
    parse_consensus_review,
)
from unreel.annotation.quality import measure_agreement_by_annotator
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.span import MICROSECONDS

if TYPE_CHECKING:
    from unreel.annotation.ledger.ledger import Ledger


By = tuple[str, str]
"""Annotator's name and task id."""
_SOMEBODY_ELSES = {
    QuarantineReason.NOT_ASSIGNED,
    QuarantineReason.NOT_THEIRS,
    QuarantineReason.TAMPERED,
}
"""Reasons why a record is not the annotator's own answer and must not replace it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecords:
    """Campaign with its tasks, its assignments and the newest record of each annotator on each task."""

    campaign: Campaign
    tasks: Mapping[str, AnnotationTask]
    """Tasks by id, in the order in which they were added."""
    assignments: Mapping[By, TaskAssignment]
    current: Mapping[By, AnnotationRecord]
    """Newest record by the server's clock; if it is quarantined, the annotator has no valid judgement of the task."""
    quarantined: tuple[AnnotationRecord, ...]
    """Newest records that are quarantined, and all foreign or tampered records, in order of arrival."""
    excluded: Mapping[str, LedgerNotice]
    """Notice with the reason of the exclusion, by name of the excluded annotator."""
    reviews: tuple[LedgerNotice, ...] = ()
    """Notices with reviews of the consensus, in order of arrival."""
    n_records: int
    """Number of all stored records, including later edits."""


def read_campaign_records(ledger: "Ledger", name: str) -> CampaignRecords:
    """Read a campaign's tasks, assignments and records; raise `UnknownNameError` if it is unknown."""
    tasks = {task.id: task for task in ledger.tasks(name)}
    assignments = {(a.annotator, a.task): a for a in ledger.assignments(name)}
    newest: dict[By, tuple[int, int, AnnotationRecord]] = {}
    foreign: list[tuple[int, AnnotationRecord]] = []
    n_records = 0
    for seq, stored in ledger.records(name):
        n_records += 1
        record, outcome = stored, stored.outcome
        if record.task not in tasks and not isinstance(outcome, SubmissionQuarantine):
            detail = f"the campaign has no task {record.task!a}"
            outcome = SubmissionQuarantine(QuarantineReason.NOT_ASSIGNED, detail)
            record = replace(record, outcome=outcome)
        if isinstance(outcome, SubmissionQuarantine) and outcome.reason in _SOMEBODY_ELSES:
            foreign.append((seq, record))
            continue
        by = (record.annotator, record.task)
        if by not in newest or (record.submitted_us, seq) > newest[by][:2]:
            newest[by] = (record.submitted_us, seq, record)
    silent = [
        (seq, record)
        for _, seq, record in newest.values()
        if isinstance(record.outcome, SubmissionQuarantine)
    ]
    notices = ledger.notices(name)
    latest = {notice.subject: notice for notice in notices if notice.kind in {EXCLUSION, INCLUSION}}
    return CampaignRecords(
        campaign=ledger.campaign(name),
        tasks=tasks,
        assignments=assignments,
        current={by: record for by, (_, _, record) in newest.items()},
        quarantined=tuple(record for _, record in sorted(foreign + silent, key=lambda at: at[0])),
        excluded={name: notice for name, notice in latest.items() if notice.kind == EXCLUSION},
        reviews=tuple(notice for notice in notices if notice.kind == REVIEW),
        n_records=n_records,
    )


def iter_valid_judgements(records: CampaignRecords) -> Iterator[AnnotatorJudgement]:
    """Yield the valid judgements of annotators who are not excluded."""
    for by, record in records.current.items():
        if isinstance(record.outcome, SubmissionQuarantine) or record.annotator in records.excluded:
            continue
        assignment = records.assignments.get(by)
        yield AnnotatorJudgement(
            annotator=record.annotator,
            task=records.tasks[record.task],
            value=record.outcome,
            lead_us=record.lead_us,
            submitted_us=record.submitted_us,
            arm=assignment.arm if assignment else PrefillStudyArm.PLAIN,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorExclusionDecision:
    """Decision whether an annotator's judgements count in a campaign."""

    campaign: str
    annotator: str
    counts: bool
    why: str
    by: str
    at_us: int

    def __post_init__(self) -> None:
        if not self.why.strip():
            raise InvalidSettingError(
                "--why", "a decision about a person needs its reason", "Say it in a few words"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorExclusionEffect:
    """Effect of an exclusion decision: the campaign's number of valid judgements before and after it."""

    campaign: str
    annotator: str
    counts: bool
    n_before: int
    """Number of valid judgements of the campaign before the decision."""
    n_now: int


def record_exclusion_decision(
    ledger: "Ledger", decision: AnnotatorExclusionDecision
) -> AnnotatorExclusionEffect:
    """Store the decision whether an annotator's judgements count; return its effect on their number.

    The judgements themselves are not changed.
    """
    campaign, annotator = decision.campaign, decision.annotator
    before = read_campaign_records(ledger, campaign)
    known = {name for name, _ in (*before.assignments, *before.current)}
    if annotator not in known:
        raise UnknownNameError(f"annotator of {campaign}", annotator, sorted(known))
    kind = INCLUSION if decision.counts else EXCLUSION
    ledger.notice(campaign, kind, annotator, decision.by, decision.why, decision.at_us)
    after = read_campaign_records(ledger, campaign)
    return AnnotatorExclusionEffect(
        campaign=campaign,
        annotator=annotator,
        counts=annotator not in after.excluded,
        n_before=sum(1 for _ in iter_valid_judgements(before)),
        n_now=sum(1 for _ in iter_valid_judgements(after)),
    )


_NEAREST = 10
"""Maximum number of suggested names; a campaign may have thousands of clips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusReviewRequest:
    """Request to store a person's review of the consensus of one task."""

    task: str
    verdict: ConsensusReviewDecision
    annotator: str = ""
    """Annotator whose answer becomes the consensus, for the decision `take`."""
    by: str
    why: str = ""
    at_us: int

    def __post_init__(self) -> None:
        require_safe_name("--by", self.by)
        if self.verdict is ConsensusReviewDecision.SEND_BACK and not self.why.strip():
            raise InvalidSettingError(
                "--why", "who judges a task again has to know the reason", "Say it in a few words"
            )


def compute_campaign_consensus(records: CampaignRecords, rule: ConsensusRule) -> CampaignConsensus:
    """Return the consensus of each judged task from all valid judgements and reviews."""
    return compute_consensus(
        list(iter_valid_judgements(records)),
        rule,
        interface=records.campaign.interface,
        reviews=[parse_consensus_review(notice) for notice in records.reviews],
    )


def find_campaign_task(records: CampaignRecords, name: str) -> AnnotationTask:
    """Return the task of id or clip `name`; raise `UnknownNameError` if none or several match."""
    if name in records.tasks:
        return records.tasks[name]
    showing = [
        task for task in records.tasks.values() if name in (" | ".join(task.names), *task.names)
    ]
    if len(showing) == 1:
        return showing[0]
    names = [clip for task in records.tasks.values() for clip in task.names]
    similar = difflib.get_close_matches(name, names, n=_NEAREST, cutoff=0)
    raise UnknownNameError(
        f"task of {records.campaign.name}", name, [task.id for task in showing] or similar
    )


def record_consensus_review(
    ledger: "Ledger", records: CampaignRecords, request: ConsensusReviewRequest, rule: ConsensusRule
) -> Outcome:
    """Store a person's review of the consensus of a task; return the outcome of the task after it."""
    answers = {
        each.annotator: each.value
        for each in iter_valid_judgements(records)
        if each.task.id == request.task
    }
    if request.by in answers or not answers:
        raise InvalidSettingError(
            "--by" if answers else "review",
            f"{request.by} judged it" if answers else "the task has no judgement yet",
            "Let another person review it" if answers else "Pull first: unreel annotate pull",
        )
    outcome = compute_campaign_consensus(records, rule).tasks[request.task]
    of = ""
    if request.verdict is ConsensusReviewDecision.TAKE:
        if request.annotator not in answers:
            raise UnknownNameError("annotator of the task", request.annotator, sorted(answers))
        of = hash_answer(answers[request.annotator])
    if request.verdict is ConsensusReviewDecision.ACCEPT:
        proposed = outcome.proposed if isinstance(outcome, OpenTask) else outcome
        if proposed is None:
            raise InvalidSettingError(
                "--accept",
                "the task has no consensus to accept",
                "Take one annotator's word with --take, or send it back",
            )
        of = hash_answer(proposed.value)
    review = ConsensusReview(
        task=request.task,
        by=request.by,
        verdict=request.verdict,
        why=request.why,
        of=of,
        annotator=request.annotator,
        at_us=request.at_us,
    )
    name = records.campaign.name
    ledger.notice(name, REVIEW, request.task, request.by, review.said, request.at_us)
    return compute_campaign_consensus(read_campaign_records(ledger, name), rule).tasks[request.task]


NOBODY = Unmeasured("no other annotator judged the same tasks")
_LEVEL = 0.95
_HOUR_S = 3600
_MIN_VALUES = 6
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
    """Progress of a campaign: tasks, and the progress of each annotator."""

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
    for (name, _), record in records.current.items():
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
    agreement = measure_agreement_by_annotator(
        list(iter_valid_judgements(records)), seed=records.campaign.seed
    )
    n_judged = Counter(
        task
        for (_, task), record in records.current.items()
        if not isinstance(record.outcome, SubmissionQuarantine)
    )
    names = {id_: " | ".join(task.names) for id_, task in records.tasks.items()}
    people = []
    for name, counts in count_annotator_tasks(records).items():
        spent_s = [] if name in records.excluded else counts.spent_s
        people.append(
            AnnotatorProgress(
                annotator=name,
                given=counts.given,
                done=counts.done,
                quarantined=counts.quarantined,
                median_s=estimate_median(spent_s),
                per_hour=_HOUR_S * len(spent_s) / sum(spent_s) if sum(spent_s) > 0 else None,
                agreement=agreement.get(name, NOBODY),
                is_excluded=name in records.excluded,
            )
        )
    return CampaignProgress(
        campaign=records.campaign.name,
        interface=records.campaign.interface.value,
        tasks=len(records.tasks),
        settled=sum(n_judged[task] >= n for task, n in n_assigned.items()),
        records=records.n_records,
        people=tuple(people),
        unusable=tuple(
            f"{record.annotator}, {names.get(record.task, 'no task')}: {record.outcome}"
            for record in records.quarantined
        ),
    )


def estimate_median(values: Sequence[float]) -> Measured:
    """Compute the median with a confidence interval of at least 95 %, whose ends are observed values."""
    if len(values) < _MIN_VALUES:
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
