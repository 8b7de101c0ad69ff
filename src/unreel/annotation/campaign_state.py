"""Current state of a campaign, read from its ledger: valid judgements and excluded annotators."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unreel.annotation.campaign import AnnotationTask, Campaign, PrefillStudyArm, TaskAssignment
from unreel.annotation.judgements import (
    EXCLUSION,
    INCLUSION,
    REVIEW,
    AnnotationRecord,
    AnyValue,
    LedgerNotice,
    QuarantineReason,
    SubmissionQuarantine,
)
from unreel.core.errors import InvalidSettingError, UnknownNameError

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
    standing: Mapping[By, AnnotationRecord]
    """Newest record by the server's clock; if it is quarantined, the annotator has no valid judgement of the task."""
    quarantined: tuple[AnnotationRecord, ...]
    """Newest records that are quarantined, and all foreign or tampered records, in order of arrival."""
    excluded: Mapping[str, LedgerNotice]
    """Notice with the reason of the exclusion, by name of the excluded annotator."""
    reviews: tuple[LedgerNotice, ...] = ()
    """Notices with reviews of the consensus, in order of arrival."""
    n_records: int
    """Number of all stored records, including later edits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorJudgement:
    """Valid judgement of one annotator about one task."""

    annotator: str
    task: AnnotationTask
    value: AnyValue
    lead_us: int | None
    submitted_us: int
    arm: PrefillStudyArm


def read_campaign_records(ledger: "Ledger", name: str) -> CampaignRecords:
    """Read a campaign's tasks, assignments and records; raise `UnknownNameError` if it is unknown."""
    tasks = {task.id: task for task in ledger.tasks(name)}
    assignments = {(a.annotator, a.task): a for a in ledger.assignments(name)}
    newest: dict[By, tuple[int, int, AnnotationRecord]] = {}
    foreign: list[tuple[int, AnnotationRecord]] = []
    n_records = 0
    for seq, stored in ledger.records(name):
        n_records += 1
        record = _quarantine_record_of_unknown_task(stored, tasks)
        outcome = record.outcome
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
    return CampaignRecords(
        campaign=ledger.campaign(name),
        tasks=tasks,
        assignments=assignments,
        standing={by: record for by, (_, _, record) in newest.items()},
        quarantined=tuple(record for _, record in sorted(foreign + silent, key=lambda at: at[0])),
        excluded=_select_active_exclusions(notices),
        reviews=tuple(notice for notice in notices if notice.kind == REVIEW),
        n_records=n_records,
    )


def iter_valid_judgements(records: CampaignRecords) -> Iterator[AnnotatorJudgement]:
    """Yield the valid judgements of annotators who are not excluded."""
    for by, record in records.standing.items():
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


def _quarantine_record_of_unknown_task(
    record: AnnotationRecord, tasks: Mapping[str, AnnotationTask]
) -> AnnotationRecord:
    if record.task in tasks or isinstance(record.outcome, SubmissionQuarantine):
        return record
    detail = f"the campaign has no task {record.task!a}"
    return replace(record, outcome=SubmissionQuarantine(QuarantineReason.NOT_ASSIGNED, detail))


def _select_active_exclusions(notices: list[LedgerNotice]) -> dict[str, LedgerNotice]:
    newest = {notice.subject: notice for notice in notices if notice.kind in {EXCLUSION, INCLUSION}}
    return {subject: notice for subject, notice in newest.items() if notice.kind == EXCLUSION}


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
    known = {name for name, _ in (*before.assignments, *before.standing)}
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
