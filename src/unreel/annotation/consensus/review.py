"""Reviews of the consensus by people who did not annotate the task.

A review is a notice in the ledger. It names the reviewed value and applies only to that value.
If a new judgement or an exclusion changes the value, the task needs a new review.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from unreel.annotation.consensus.outcome import (
    CampaignConsensus,
    NoConsensusReason,
    OpenTask,
    Outcome,
    SettledTask,
    TaskSettlementMethod,
)
from unreel.annotation.judgements import VALUES, AnyValue
from unreel.annotation.opinion import AnnotatorOpinion
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError


class ConsensusReviewDecision(StrEnum):
    """Decision of a person who reviews a task's consensus."""

    ACCEPT = "accept"
    TAKE = "take"
    """Choice of one annotator's answer as the consensus."""
    SEND_BACK = "send-back"


class ConsensusReviewNotice(Protocol):
    """Protocol of a decision notice in the ledger that contains a review of a task's consensus."""

    @property
    def subject(self) -> str:
        """Return the id of the reviewed task."""
        ...

    @property
    def by(self) -> str:
        """Return the name of the person who reviewed the consensus."""
        ...

    @property
    def said(self) -> str:
        """Return the content of the review as JSON."""
        ...

    @property
    def at_us(self) -> int:
        """Return the time of the review in microseconds since 1970."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusReview:
    """Review of the consensus of one task by one person: the decision and its reason."""

    task: str
    by: str
    verdict: ConsensusReviewDecision
    why: str
    of: str = ""
    """Hash of the accepted or taken answer, by `hash_answer`."""
    annotator: str = ""
    """Annotator whose answer is taken."""
    at_us: int

    @property
    def said(self) -> str:
        """Return the content of the review as JSON, to be stored in a ledger notice."""
        content = {
            "verdict": self.verdict.value,
            "why": self.why,
            "of": self.of,
            "annotator": self.annotator,
        }
        return json.dumps(content, sort_keys=True)


def parse_consensus_review(notice: ConsensusReviewNotice) -> ConsensusReview:
    """Parse a ledger notice of the kind `review`; raise `InvalidValueError` if it is none."""
    try:
        content = json.loads(notice.said)
        verdict, texts = (
            ConsensusReviewDecision(content["verdict"]),
            [content[k] for k in ("why", "of", "annotator")],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValueError(
            f"the notice about {notice.subject!a} is no review. Review the task again"
        ) from error
    why, of, annotator = map(str, texts)
    return ConsensusReview(
        task=notice.subject,
        by=notice.by,
        verdict=verdict,
        why=why,
        of=of,
        annotator=annotator,
        at_us=notice.at_us,
    )


def hash_answer(value: AnyValue) -> str:
    """Return a hash of an annotator's answer; equal answers have the same hash in every process."""
    document = VALUES.dump_python(value, mode="json")
    for trace in document.get("traces", ()):
        trace["categories"] = sorted(trace["categories"])
    return digest("value", json.dumps(document, sort_keys=True))[:24]


def apply_consensus_reviews(
    consensus: CampaignConsensus,
    tasks: Mapping[str, Sequence[AnnotatorOpinion]],
    reviews: Sequence[ConsensusReview],
) -> CampaignConsensus:
    """Apply `reviews`, oldest first; tasks with too few acceptances for the rule lose their consensus."""
    by_task: dict[str, list[ConsensusReview]] = {}
    for review in reviews:
        by_task.setdefault(review.task, []).append(review)
    need = consensus.rule.reviews
    outcomes = {
        id_: _reopen_if_too_few_reviews(
            _apply_task_reviews(outcome, tasks[id_], by_task.get(id_, ())), tasks[id_], need
        )
        for id_, outcome in consensus.tasks.items()
    }
    return replace(consensus, tasks=outcomes)


def _apply_task_reviews(
    outcome: Outcome, opinions: Sequence[AnnotatorOpinion], reviews: Sequence[ConsensusReview]
) -> Outcome:
    """Return the outcome of a task after its reviews; reviews by annotators of the task are ignored."""
    judges = {opinion.annotator for opinion in opinions}
    newest_us = max(opinion.submitted_us for opinion in opinions)
    before = outcome
    for review in reviews:
        if review.by in judges:
            continue
        match review.verdict:
            case ConsensusReviewDecision.SEND_BACK:
                back = _build_sent_back_task(review, opinions)
                outcome = back if newest_us <= review.at_us else before
            case ConsensusReviewDecision.TAKE:
                outcome = _settle_by_taken_answer(review, opinions) or outcome
            case ConsensusReviewDecision.ACCEPT:
                outcome = _add_acceptance(
                    outcome if isinstance(outcome, SettledTask) else before, review
                )
    return outcome


def _build_sent_back_task(
    review: ConsensusReview, opinions: Sequence[AnnotatorOpinion]
) -> OpenTask:
    answers = tuple((opinion.annotator, opinion.value) for opinion in opinions)
    return OpenTask(
        why=NoConsensusReason.SENT_BACK, detail=f"by {review.by}: {review.why}", judgements=answers
    )


def _settle_by_taken_answer(
    review: ConsensusReview, opinions: Sequence[AnnotatorOpinion]
) -> SettledTask | None:
    """Settle a task by the answer that the review takes; return `None` if it was changed after the review."""
    for opinion in opinions:
        if opinion.annotator == review.annotator and hash_answer(opinion.value) == review.of:
            return SettledTask(
                value=opinion.value,
                support=tuple(o.annotator for o in opinions if o.value == opinion.value),
                dissent=tuple(
                    (other.annotator, other.value)
                    for other in opinions
                    if other.value != opinion.value
                ),
                method=TaskSettlementMethod.REVIEW,
                words_of=opinion.annotator,
                accepted_by=(review.by,),
            )
    return None


def _add_acceptance(outcome: Outcome, review: ConsensusReview) -> Outcome:
    if isinstance(outcome, OpenTask) or hash_answer(outcome.value) != review.of:
        return outcome
    return replace(outcome, accepted_by=tuple(sorted({*outcome.accepted_by, review.by})))


def _reopen_if_too_few_reviews(
    outcome: Outcome, opinions: Sequence[AnnotatorOpinion], need: int
) -> Outcome:
    if isinstance(outcome, OpenTask) or len(outcome.accepted_by) >= need:
        return outcome
    answers = tuple((opinion.annotator, opinion.value) for opinion in opinions)
    detail = f"{len(outcome.accepted_by)} reviewed it, {need} must"
    return OpenTask(
        why=NoConsensusReason.NOT_REVIEWED, detail=detail, judgements=answers, proposed=outcome
    )
