"""What people settle on becomes a clip's truth; what is not theirs to settle stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.annotation.campaign import RatingAnswer, ScreeningAnswer, TraceAnswer, VoteAnswer
from unreel.annotation.publishing.publishable_campaign import (
    build_consensus_entry,
    has_traces_on_real_clip,
    rate_traces_by_rubric,
)
from unreel.benchmarks.entry import Entry, Rejected
from unreel.core.box import Box
from unreel.core.clip import Generated, Real
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace

LENGTH_US = 4_000_000
FILMED = Entry(name="filmed", location="filmed.mp4", origin=Real())
MADE = Entry(name="made", location="made.mp4", origin=Generated(creator="Veo"))


def _traced(share: float = 0.2, end_us: int = 400_000, text: str = "A hand melts.") -> TraceAnswer:
    trace = Trace(
        span=TimeSpan(0, end_us), track=(BoxAt(0, Box(0.0, 0.0, share, share)),), explanation=text
    )
    return TraceAnswer(traces=(trace,), label=Label.GENERATED)


def test_settled_traces_are_the_truth_and_the_rubric_scores_the_same_boxes() -> None:
    value = _traced()
    said = {"ann": _traced(), "bob": _traced(0.7), "cho": TraceAnswer(traces=(), label=None)}
    entry = build_consensus_entry(MADE, value, said, duration_us=LENGTH_US)
    assert isinstance(entry, Entry)
    assert entry.traces == value.traces
    assert entry.rating is not None
    assert (entry.rating.score, entry.rating.problem) == (4, "A hand melts.")
    assert "4.0 % of the picture" in entry.rating.adherence
    assert [rating.score for rating in entry.ratings] == [4, 1, 5]
    assert entry.votes == (Vote("ann", Label.GENERATED), Vote("bob", Label.GENERATED))


def test_a_filmed_clip_gets_no_traces_whatever_people_see_in_it() -> None:
    value = _traced()
    entry = build_consensus_entry(FILMED, value, {"ann": value}, duration_us=LENGTH_US)
    assert isinstance(entry, Entry)
    assert entry.origin == Real()
    assert entry.traces == ()
    assert entry.rating is not None
    assert entry.rating.score == 5
    assert has_traces_on_real_clip(FILMED, value)
    assert not has_traces_on_real_clip(MADE, value)


def test_a_score_stands_with_those_that_it_was_settled_from() -> None:
    value = RatingAnswer(rating=Rating(score=2, problem="It floats."))
    said = {
        "ann": value,
        "bob": RatingAnswer(rating=Rating(score=3)),
        "cho": RatingAnswer(rating=None),
    }
    entry = build_consensus_entry(MADE, value, said, duration_us=LENGTH_US)
    assert isinstance(entry, Entry)
    assert entry.rating == value.rating
    assert [rating.score for rating in entry.ratings] == [2, 3]


@pytest.mark.parametrize("value", [ScreeningAnswer(keep=False), RatingAnswer(rating=None)])
def test_a_clip_that_people_refuse_is_left_out_with_the_reason(
    value: ScreeningAnswer | RatingAnswer,
) -> None:
    left = build_consensus_entry(MADE, value, {}, duration_us=LENGTH_US)
    assert isinstance(left, Rejected)
    assert left.name == "made"
    assert left.why.startswith("annotators ")


def test_votes_are_kept_and_do_not_turn_a_clip_into_what_they_say() -> None:
    said = {"ann": VoteAnswer(label=Label.REAL), "bob": VoteAnswer(label=Label.REAL)}
    entry = build_consensus_entry(MADE, said["ann"], said, duration_us=LENGTH_US)
    assert isinstance(entry, Entry)
    assert entry.label is Label.GENERATED
    assert [vote.voter for vote in entry.votes] == ["ann", "bob"]


@given(share=st.floats(0.01, 1), end_us=st.integers(1, LENGTH_US))
def test_a_larger_or_longer_fault_never_scores_better(share: float, end_us: int) -> None:
    small = rate_traces_by_rubric(
        _traced(share / 2, max(1, end_us // 2)).traces, duration_us=LENGTH_US
    )
    large = rate_traces_by_rubric(_traced(share, end_us).traces, duration_us=LENGTH_US)
    assert 1 <= large.score <= small.score <= 4
