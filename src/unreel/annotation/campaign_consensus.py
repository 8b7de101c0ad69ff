"""Current consensus of all tasks of a campaign, and storage of people's reviews of the consensus."""

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unreel.annotation.campaign import AnnotationTask, require_safe_name
from unreel.annotation.campaign_state import (
    CampaignRecords,
    iter_valid_judgements,
    read_campaign_records,
)
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import CampaignConsensus, ConsensusRule, OpenTask, Outcome
from unreel.annotation.consensus.review import (
    ConsensusReview,
    ConsensusReviewDecision,
    hash_answer,
    parse_consensus_review,
)
from unreel.annotation.judgements import REVIEW
from unreel.core.errors import InvalidSettingError, UnknownNameError

if TYPE_CHECKING:  # slow to import
    from unreel.annotation.ledger.ledger import Ledger


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
    ledger: "Ledger", records: CampaignRecords, looked: ConsensusReviewRequest, rule: ConsensusRule
) -> Outcome:
    """Store a person's review of the consensus of a task; return the outcome of the task after it."""
    answers = {
        each.annotator: each.value
        for each in iter_valid_judgements(records)
        if each.task.id == looked.task
    }
    if looked.by in answers or not answers:
        raise InvalidSettingError(
            "--by" if answers else "review",
            f"{looked.by} judged it" if answers else "the task has no judgement yet",
            "Let another person review it" if answers else "Pull first: unreel annotate pull",
        )
    outcome = compute_campaign_consensus(records, rule).tasks[looked.task]
    of = ""
    if looked.verdict is ConsensusReviewDecision.TAKE:
        if looked.annotator not in answers:
            raise UnknownNameError("annotator of the task", looked.annotator, sorted(answers))
        of = hash_answer(answers[looked.annotator])
    if looked.verdict is ConsensusReviewDecision.ACCEPT:
        proposed = outcome.proposed if isinstance(outcome, OpenTask) else outcome
        if proposed is None:
            raise InvalidSettingError(
                "--accept",
                "the task has no consensus to accept",
                "Take one annotator's word with --take, or send it back",
            )
        of = hash_answer(proposed.value)
    review = ConsensusReview(
        task=looked.task,
        by=looked.by,
        verdict=looked.verdict,
        why=looked.why,
        of=of,
        annotator=looked.annotator,
        at_us=looked.at_us,
    )
    name = records.campaign.name
    ledger.notice(name, REVIEW, looked.task, looked.by, review.said, looked.at_us)
    return compute_campaign_consensus(read_campaign_records(ledger, name), rule).tasks[looked.task]
