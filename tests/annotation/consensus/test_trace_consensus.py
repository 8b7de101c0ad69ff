"""DeepTraceReward's consensus on faults."""

import pytest

from opinions import said, task, trace, traced
from unreel.annotation.campaign import AnnotationInterface, TraceAnswer
from unreel.annotation.consensus.consensus import cluster_annotator_traces, compute_consensus
from unreel.annotation.consensus.outcome import (
    ConsensusRule,
    NoConsensusReason,
    OpenTask,
    Outcome,
    SettledTask,
)
from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

COPY = task().copies[0]
HAND = (0.1, 0.1, 0.4, 0.5)
CUP = (0.6, 0.6, 0.8, 0.9)


def _decide(rule: ConsensusRule | None = None, **values: TraceAnswer) -> Outcome:
    (found,) = compute_consensus(
        said(values), rule or ConsensusRule(), interface=AnnotationInterface.TRACE
    ).tasks.values()
    return found


def _settled(
    rule: ConsensusRule | None = None, **values: TraceAnswer
) -> tuple[SettledTask, TraceAnswer]:
    found = _decide(rule, **values)
    assert isinstance(found, SettledTask)
    assert isinstance(found.value, TraceAnswer)
    return found, found.value


def test_a_fault_is_merged_from_the_medians_of_those_who_marked_it() -> None:
    found, value = _settled(
        ann=traced(trace(10, 39, (0.10, 0.10, 0.40, 0.50))),
        ben=traced(trace(12, 41, (0.12, 0.08, 0.42, 0.52))),
        cem=traced(trace(8, 49, (0.20, 0.12, 0.44, 0.48))),
    )
    (merged,) = value.traces
    assert merged.span == TimeSpan(COPY.at_us(10), COPY.at_us(42))
    assert [mark.box for mark in merged.track] == [Box(0.12, 0.10, 0.42, 0.50)]
    assert found.backing == (("ann", "ben", "cem"),)
    assert not found.dissent


def test_the_middle_of_two_people_lies_on_a_frame() -> None:
    _, value = _settled(ann=traced(trace(10, 39)), ben=traced(trace(13, 44)))
    (merged,) = value.traces
    assert merged.span == TimeSpan(COPY.at_us(11), COPY.at_us(42))


def test_categories_stand_when_more_than_half_name_them() -> None:
    merging, blurring, other = (Category.OBJECT_MERGING, Category.SUDDEN_BLURRING, Category.OTHER)
    _, value = _settled(
        ann=traced(trace(0, 30, HAND, [merging, blurring])),
        ben=traced(trace(0, 30, HAND, [merging])),
        cem=traced(trace(0, 30, HAND, [merging, blurring, other])),
    )
    assert value.traces[0].categories == {merging, blurring}
    _, value = _settled(
        ann=traced(trace(0, 30, HAND, [merging])), ben=traced(trace(0, 30, HAND, [blurring]))
    )
    assert not value.traces[0].categories


def test_the_explanation_is_that_of_the_mark_most_like_the_others() -> None:
    found, value = _settled(
        ann=traced(trace(0, 30, HAND, why="the hand melts")),
        ben=traced(trace(0, 30, HAND)),
        cem=traced(trace(0, 44, (0.1, 0.1, 0.5, 0.5), why="strange")),
    )
    assert value.traces[0].explanation == "the hand melts"
    assert found.words_of == "ann"


def test_a_fault_that_too_few_marked_is_kept_as_dissent() -> None:
    hand, cup = trace(0, 30, HAND), trace(50, 80, CUP)
    found, value = _settled(ann=traced(hand, cup), ben=traced(hand), cem=traced(label=Label.REAL))
    assert value.traces == (hand,)
    assert dict(found.dissent) == {"ann": traced(cup), "cem": traced(label=Label.REAL)}
    assert found.support == ("ann", "ben")
    _, everything = _settled(ConsensusRule(quorum=1), ann=traced(hand, cup), ben=traced(hand))
    assert everything.traces == (hand, cup)


def test_faults_of_one_place_at_two_times_stay_two() -> None:
    early, late = trace(0, 20, HAND), trace(50, 80, HAND)
    _, value = _settled(ann=traced(late, early), ben=traced(early, late))
    assert value.traces == (early, late)


def test_marks_are_paired_for_the_best_sum_and_not_the_best_pair() -> None:
    """Ann's first mark is most like Ben's first, but then her second one would have none."""
    a1, a2 = trace(0, 59, (0.0, 0.0, 0.5, 0.5)), trace(0, 29, (0.0, 0.0, 0.5, 0.5))
    b1, b2 = trace(0, 49, (0.0, 0.0, 0.5, 0.5)), trace(20, 59, (0.0, 0.0, 0.5, 0.5))
    clusters = cluster_annotator_traces({"ann": (a1, a2), "ben": (b1, b2)}, COPY, same_fault=0.3)
    paired = {tuple(mark.trace for mark in cluster) for cluster in clusters}
    assert paired == {(a1, b2), (a2, b1)}


def test_a_clip_that_most_call_real_has_no_faults() -> None:
    found, value = _settled(
        ann=traced(label=Label.REAL), ben=traced(label=Label.REAL), cem=traced(trace(0, 30))
    )
    assert (value.label, value.traces) == (Label.REAL, ())
    assert found.dissent == (("cem", traced(trace(0, 30))),)


def test_a_clip_about_which_most_could_not_tell_is_settled_as_that() -> None:
    _, value = _settled(ann=traced(label=None), ben=traced(label=None), cem=traced(trace(0, 30)))
    assert value == traced(label=None)


def test_generated_without_a_common_fault_is_left_to_a_reviewer() -> None:
    found = _decide(ann=traced(trace(0, 30, HAND)), ben=traced(trace(50, 80, CUP)))
    assert isinstance(found, OpenTask)
    assert found.why is NoConsensusReason.NO_COMMON_FAULT


def test_a_moving_fault_follows_the_middle_of_the_movements() -> None:
    def moving(shift: float, first: int, last: int) -> TraceAnswer:
        start, end = COPY.at_us(first), COPY.at_us(last)
        boxes = (Box(shift, 0.2, shift + 0.3, 0.5), Box(shift + 0.4, 0.2, shift + 0.7, 0.5))
        marks = (BoxAt(start, boxes[0]), BoxAt(end, boxes[1]))
        return traced(Trace(span=TimeSpan(start, COPY.at_us(last + 1)), track=marks))

    _, value = _settled(ann=moving(0.1, 0, 60), ben=moving(0.12, 0, 60), cem=moving(0.15, 3, 60))
    (merged,) = value.traces
    assert [mark.at_us for mark in merged.track] == [COPY.at_us(0), COPY.at_us(60)]
    # At the start Cem's mark is not there yet.
    assert [mark.box.x0 for mark in merged.track] == pytest.approx([0.11, 0.52])
