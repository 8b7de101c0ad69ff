"""How far people are apart, and whom a page shows first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinions import rated, said, task, trace, traced
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnyValue,
    Campaign,
    PassFailAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.campaign_page import measure_disagreement, rank_task_disagreements
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.publishing.publishable_campaign import PublishableCampaign
from unreel.core.judgement import Label

COPY = task().copies[0]
REAL, FAKE = VoteAnswer(label=Label.REAL), VoteAnswer(label=Label.GENERATED)
NOTHING = traced(label=Label.REAL)
HERE, THERE = traced(trace(10, 40)), traced(trace(10, 40, (0.6, 0.6, 0.9, 0.9)))


@pytest.mark.parametrize(
    ("values", "apart"),
    [
        ([REAL, REAL, REAL], 0),
        ([REAL, REAL, FAKE], 1 / 3),
        ([REAL, FAKE], 1 / 2),
        ([PassFailAnswer(passed=True)], 0),
        ([rated(3), rated(3), rated(3)], 0),
        ([rated(1), rated(5)], 1),
        ([rated(2), rated(3), rated(4)], 1 / 2),
        ([rated(3), rated(None)], 1 / 2),
        ([NOTHING, NOTHING], 0),
        ([HERE, HERE, HERE], 0),
        ([HERE, THERE], 1),
        ([HERE, NOTHING], 1),
        ([HERE, HERE, THERE], 2 / 3),
        ([], 0),
    ],
)
def test_people_are_apart_by_what_they_do_not_share(values: list[AnyValue], apart: float) -> None:
    assert measure_disagreement(values, COPY) == pytest.approx(apart)


@given(st.lists(st.sampled_from([HERE, THERE, NOTHING]), max_size=6), st.randoms())
def test_the_distance_is_a_share_and_does_not_depend_on_the_order(
    values: list[TraceAnswer], draw: object
) -> None:
    found = measure_disagreement(values, COPY)
    assert 0 <= found <= 1
    assert measure_disagreement(list(reversed(values)), COPY) == pytest.approx(found)


def test_what_is_not_settled_comes_first_then_the_furthest_apart() -> None:
    opinions = [
        *said({"ann": REAL, "bob": REAL, "cho": REAL}, task("agreed")),
        *said({"ann": REAL, "bob": REAL, "cho": FAKE}, task("settled")),
        *said({"ann": REAL, "bob": FAKE}, task("torn")),
    ]
    rule = ConsensusRule(quorum=2, min_overlap=2)
    edition = PublishableCampaign(
        campaign=Campaign(
            name="votes",
            interface=AnnotationInterface.REALITY,
            benchmark="bench",
            guidelines="",
            interface_version="v1",
        ),
        tasks={opinion.task.id: opinion.task for opinion in opinions},
        opinions=opinions,
        consensus=compute_consensus(opinions, rule, interface=AnnotationInterface.REALITY),
    )
    assert [one.name for one in rank_task_disagreements(edition)] == ["torn", "settled", "agreed"]
