"""One or two rounds of review over what would stand."""

from dataclasses import dataclass

import pytest

from opinions import UnstoredOpinion, rated, said, task, trace, traced
from unreel.annotation.campaign import AnnotationInterface, AnyValue
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import (
    ConsensusReview,
    ConsensusReviewDecision,
    ConsensusRule,
    NoConsensusReason,
    OpenTask,
    Outcome,
    SettledTask,
    TaskSettlementMethod,
    hash_answer,
    parse_consensus_review,
)
from unreel.core.errors import InvalidValueError

ID = task().id
SAID = said({"ann": rated(2), "ben": rated(2), "cem": rated(4)})
APART = said({"ann": traced(trace(0, 20)), "ben": traced(trace(50, 80))})


@dataclass(frozen=True)
class _Notice:
    subject: str
    by: str
    said: str
    at_us: int = 10


def _review(
    by: str,
    verdict: ConsensusReviewDecision,
    of: AnyValue | None = None,
    annotator: str = "",
    at_us: int = 10,
) -> ConsensusReview:
    key = hash_answer(of) if of else ""
    return ConsensusReview(
        task=ID, by=by, verdict=verdict, why="look", of=key, annotator=annotator, at_us=at_us
    )


def _after(
    *reviews: ConsensusReview, opinions: list[UnstoredOpinion] = SAID, need: int = 0
) -> Outcome:
    interface = AnnotationInterface.TRACE if opinions is APART else AnnotationInterface.REALISM
    rule = ConsensusRule(reviews=need)
    (found,) = compute_consensus(
        opinions, rule, interface=interface, reviews=reviews
    ).tasks.values()
    return found


def test_without_a_review_a_task_waits_with_what_would_stand() -> None:
    found = _after(need=1)
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.NOT_REVIEWED
    assert found.proposed is not None
    assert found.proposed.value == rated(2)


def test_as_many_different_reviewers_as_the_rule_wants_settle_it() -> None:
    first, second = (_review(by, ConsensusReviewDecision.ACCEPT, rated(2)) for by in ("rea", "rob"))
    assert isinstance(_after(first, need=1), SettledTask)
    assert isinstance(_after(first, first, need=2), OpenTask)
    found = _after(first, second, need=2)
    assert isinstance(found, SettledTask)
    assert found.accepted_by == ("rea", "rob")


def test_who_judged_a_task_does_not_review_it() -> None:
    assert isinstance(
        _after(_review("ann", ConsensusReviewDecision.ACCEPT, rated(2)), need=1), OpenTask
    )
    assert isinstance(_after(_review("ann", ConsensusReviewDecision.SEND_BACK)), SettledTask)


def test_a_task_that_is_sent_back_is_open_until_somebody_judges_it_again() -> None:
    back = _review("rea", ConsensusReviewDecision.SEND_BACK)
    found = _after(back)
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.SENT_BACK
    assert "rea" in found.detail
    again = [
        *SAID[:2],
        UnstoredOpinion(annotator="cem", task=task(), value=rated(2), submitted_us=11),
    ]
    assert isinstance(_after(back, opinions=again), SettledTask)


def test_another_reviewer_may_accept_what_was_sent_back() -> None:
    found = _after(
        _review("rea", ConsensusReviewDecision.SEND_BACK),
        _review("rob", ConsensusReviewDecision.ACCEPT, rated(2)),
    )
    assert isinstance(found, SettledTask)
    assert found.accepted_by == ("rob",)


def test_a_reviewer_may_take_one_annotators_word_where_nothing_stands() -> None:
    assert isinstance(_after(opinions=APART), OpenTask)
    taken = APART[0].value
    found = _after(
        _review("rea", ConsensusReviewDecision.TAKE, taken, "ann"), opinions=APART, need=1
    )
    assert isinstance(found, SettledTask)
    assert (found.value, found.method, found.support) == (
        taken,
        TaskSettlementMethod.REVIEW,
        ("ann",),
    )
    assert found.dissent == (("ben", APART[1].value),)
    stale = _review("rea", ConsensusReviewDecision.TAKE, APART[1].value, "ann")
    assert isinstance(_after(stale, opinions=APART), OpenTask)


@pytest.mark.parametrize("kept", ["", "[]", "{}", '{"verdict": "maybe"}', "null", "3"])
def test_a_notice_that_is_no_review_is_refused(kept: str) -> None:
    with pytest.raises(InvalidValueError, match="Review the task again"):
        parse_consensus_review(_Notice(ID, "rea", kept))
