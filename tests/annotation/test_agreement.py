"""How far people agree."""

import numpy as np
import pytest
from hypothesis import given, settings

from opinions import boxes, rated, said, task, trace, traced, traces
from unreel.annotation.agreement import (
    AgreementMetric,
    measure_annotator_agreement,
    measure_unanimity,
)
from unreel.annotation.campaign import AnnotationInterface
from unreel.annotation.consensus.trace_matching import (
    build_trace_tube,
    interpolate_trace_boxes,
    mean_box_iou_on_shared_frames,
    temporal_iou,
    tube_iou,
)
from unreel.annotation.judgements import VoteAnswer
from unreel.annotation.opinion import UnstoredOpinion
from unreel.core.box import Box
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.judgement import Label
from unreel.core.trace import BoxAt, Category, Trace

COPY = task().copies[0]


def _value(measured: Measured) -> float:
    assert isinstance(measured, Estimate), measured
    return measured.value


def _votes(n: int, seed: int = 1) -> list[UnstoredOpinion]:
    """Ann is right, Ben nearly always, Cem guesses."""
    rng = np.random.default_rng(seed)
    found: list[UnstoredOpinion] = []
    for number in range(n):
        truth = list(Label)[rng.integers(2)]
        other = Label.REAL if truth is Label.GENERATED else Label.GENERATED
        ben = truth if rng.random() < 0.9 else other
        cem = truth if rng.random() < 0.5 else other
        values = {
            "ann": VoteAnswer(label=truth),
            "ben": VoteAnswer(label=ben),
            "cem": VoteAnswer(label=cem),
        }
        found += said(values, task(str(number)))
    return found


def test_agreement_tells_who_agrees_with_whom() -> None:
    opinions = _votes(200)
    found = measure_annotator_agreement(opinions, interface=AnnotationInterface.REALITY, seed=1)
    by = {who: _value(row[AgreementMetric.SAME_ANSWER]) for who, row in found.by_annotator.items()}
    assert by["cem"] < min(by["ann"], by["ben"])
    for name in ("alpha-nominal", "fleiss-kappa"):
        measured = found.overall[name]
        assert isinstance(measured, Estimate)
        assert measured.low < 0.27 < measured.high
        assert measured.n == 200
    assert "alpha-ordinal" not in found.overall


def test_unanimity_counts_tasks_in_which_nobody_differs() -> None:
    opinions = said({"ann": rated(3), "ben": rated(3)}, task("a"))
    opinions += said({"ann": rated(3), "ben": rated(4)}, task("b"))
    opinions += said({"ann": rated(3)}, task("c"))
    measured = measure_unanimity(opinions, seed=1)
    assert isinstance(measured, Estimate)
    assert (measured.value, measured.n) == (0.5, 2)
    assert isinstance(measure_unanimity(said({"ann": rated(1)}), seed=1), Unmeasured)


def test_scores_agree_more_by_order_than_by_name() -> None:
    opinions: list[UnstoredOpinion] = []
    for number in range(60):
        score = number % 4 + 1
        opinions += said(
            {"ann": rated(score), "ben": rated(score + number % 3 % 2)}, task(str(number))
        )
    opinions += said({"ann": rated(None), "ben": rated(2)}, task("discarded by one"))
    found = measure_annotator_agreement(opinions, interface=AnnotationInterface.REALISM, seed=1)
    assert _value(found.overall["alpha-ordinal"]) > _value(found.overall["alpha-nominal"]) + 0.1
    ordinal = found.overall["alpha-ordinal"]
    assert isinstance(ordinal, Estimate)
    assert ordinal.n == 60


def test_boxes_times_and_kinds_of_the_same_fault_are_compared_one_by_one() -> None:
    kinds = [Category.OBJECT_MERGING, Category.SUDDEN_BLURRING]
    ann = trace(0, 29, (0.0, 0.0, 0.4, 0.4), kinds)
    ben = trace(15, 44, (0.0, 0.0, 0.4, 0.2), kinds[:1])
    lone = trace(60, 80, (0.7, 0.7, 0.9, 0.9))
    opinions = said({"ann": traced(ann, lone), "ben": traced(ben)})
    row = measure_annotator_agreement(
        opinions, interface=AnnotationInterface.TRACE, seed=1
    ).by_annotator["ann"]
    assert _value(row[AgreementMetric.SAME_ANSWER]) == 1
    assert AgreementMetric.TUBE_IOU not in row  # 1/6 of the tube is too little to be the same fault
    near = trace(5, 34, (0.0, 0.0, 0.4, 0.2), kinds[:1])
    opinions = said({"ann": traced(ann, lone), "ben": traced(near)})
    found = measure_annotator_agreement(opinions, interface=AnnotationInterface.TRACE, seed=1)
    row = found.by_annotator["ann"]
    assert _value(row[AgreementMetric.SAME_FAULTS]) == pytest.approx(2 / 3)
    assert _value(row[AgreementMetric.BOX_IOU]) == pytest.approx(0.5)
    assert _value(row[AgreementMetric.TEMPORAL_IOU]) == pytest.approx(25 / 35, abs=1e-4)
    assert _value(row[AgreementMetric.TUBE_IOU]) == pytest.approx(25 / 35 / 2, abs=1e-4)
    assert _value(row[AgreementMetric.SAME_KINDS]) == 0.5
    assert set(found.by_category) == set(kinds)


def test_no_opinions_measure_nothing_and_say_so() -> None:
    found = measure_annotator_agreement([], interface=AnnotationInterface.REALISM, seed=1)
    assert all(isinstance(value, Unmeasured) for value in found.overall.values())
    assert not found.by_annotator


@settings(max_examples=60, deadline=None)
@given(one=traces(), other=traces())
def test_overlaps_are_symmetric_and_between_0_and_1(one: Trace, other: Trace) -> None:
    assert temporal_iou(one.span, one.span) == 1
    assert 0 <= temporal_iou(one.span, other.span) == temporal_iou(other.span, one.span) <= 1
    for measure in (tube_iou, mean_box_iou_on_shared_frames):
        tubes = build_trace_tube(one, COPY), build_trace_tube(other, COPY)
        found = measure(*tubes)
        assert found == measure(*tubes[::-1])
        assert found is None or 0 <= found <= 1
        if one.track:
            assert measure(tubes[0], tubes[0]) == pytest.approx(1)


@given(first=boxes(), last=boxes())
def test_corners_move_evenly_and_stand_still_outside(first: Box, last: Box) -> None:
    still = trace(10, 29)
    at = (still.span.start_us, still.span.start_us + 200_000)
    marks = (BoxAt(at[0], first), BoxAt(at[1], last))
    moving = Trace(span=still.span, track=marks)
    x0 = interpolate_trace_boxes(moving, [0, at[0], at[0] + 50_000, at[1], at[1] + 90_000])[:, 0]
    quarter = first.x0 + (last.x0 - first.x0) / 4
    assert x0 == pytest.approx([first.x0, first.x0, quarter, last.x0, last.x0])
