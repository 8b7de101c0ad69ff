"""VideoRealBench's consensus on scores."""

import pytest

from opinions import rated, said
from unreel.annotation.campaign import AnnotationInterface, RatingAnswer
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import (
    ConsensusRule,
    NoConsensusReason,
    OpenTask,
    Outcome,
    SettledTask,
    TaskSettlementMethod,
)


def _decide(*scores: int | None, rule: ConsensusRule | None = None) -> Outcome:
    values = {f"p{place}": rated(score, f"by {score}") for place, score in enumerate(scores)}
    (found,) = compute_consensus(
        said(values), rule or ConsensusRule(), interface=AnnotationInterface.REALISM
    ).tasks.values()
    return found


def _settled(
    *scores: int | None, rule: ConsensusRule | None = None
) -> tuple[int | None, str, TaskSettlementMethod]:
    found = _decide(*scores, rule=rule)
    assert isinstance(found, SettledTask)
    assert isinstance(found.value, RatingAnswer)
    rating = found.value.rating
    return (rating.score, rating.problem, found.method) if rating else (None, "", found.method)


# All triples of three different scores, with the consensus and whose rationale is the closest.
TRIPLES = {
    (1, 2, 3): (2, 2),
    (1, 2, 4): (2, 2),
    (1, 2, 5): (3, 2),
    (1, 3, 4): (3, 3),
    (1, 3, 5): (3, 3),
    (1, 4, 5): (3, 4),
    (2, 3, 4): (3, 3),
    (2, 3, 5): (3, 3),
    (2, 4, 5): (4, 4),
    (3, 4, 5): (4, 4),
}


@pytest.mark.parametrize("scores", TRIPLES)
def test_three_different_scores_become_the_rounded_mean_with_the_closest_rationale(
    scores: tuple[int, int, int],
) -> None:
    score, closest = TRIPLES[scores]
    assert _settled(*scores) == (score, f"by {closest}", TaskSettlementMethod.ROUNDED_MEAN)


@pytest.mark.parametrize(
    ("scores", "settled"), [((1, 2), 2), ((2, 3), 2), ((3, 4), 4), ((4, 5), 4)]
)
def test_a_mean_of_one_half_goes_to_the_even_score(scores: tuple[int, int], settled: int) -> None:
    score, _, way = _settled(*scores)
    assert (score, way) == (settled, TaskSettlementMethod.ROUNDED_MEAN)
    mirrored, *_ = _settled(*(6 - score for score in scores))
    assert mirrored == 6 - settled


def test_two_answers_of_three_are_enough_and_one_is_not() -> None:
    assert _settled(4, 4) == (4, "by 4", TaskSettlementMethod.MAJORITY)
    assert _settled(2, 4)[0] == 3
    found = _decide(4)
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.TOO_FEW
    assert _settled(4, rule=ConsensusRule(min_overlap=1, quorum=1)) == (
        4,
        "by 4",
        TaskSettlementMethod.MAJORITY,
    )


def test_a_clip_that_most_would_discard_is_discarded() -> None:
    assert _settled(None, 3, None) == (None, "", TaskSettlementMethod.MAJORITY)


def test_one_who_would_discard_dissents_and_the_others_scores_count() -> None:
    assert _settled(None, 3, 3) == (3, "by 3", TaskSettlementMethod.MAJORITY)
    found = _decide(None, 2, 4)
    assert isinstance(found, SettledTask)
    assert (found.value.rating.score, found.method) == (3, TaskSettlementMethod.ROUNDED_MEAN)  # type: ignore[union-attr]
    assert ("p0", rated(None)) in found.dissent


def test_dissent_keeps_every_other_answer() -> None:
    found = _decide(2, 5, 2)
    assert isinstance(found, SettledTask)
    assert found.support == ("p0", "p2")
    assert found.dissent == (("p1", rated(5, "by 5")),)


def test_a_rationale_is_taken_from_somebody_who_wrote_one() -> None:
    values = {"ann": rated(2), "ben": rated(2, "the hand melts"), "cem": rated(5, "fine")}
    (found,) = compute_consensus(
        said(values), ConsensusRule(), interface=AnnotationInterface.REALISM
    ).tasks.values()
    assert isinstance(found, SettledTask)
    assert found.words_of == "ben"
    assert found.value == rated(2, "the hand melts")
    silent = {"ann": rated(2), "ben": rated(2)}
    (found,) = compute_consensus(
        said(silent), ConsensusRule(), interface=AnnotationInterface.REALISM
    ).tasks.values()
    assert isinstance(found, SettledTask)
    assert (found.words_of, found.value) == ("", rated(2))
