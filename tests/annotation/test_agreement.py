"""How far people agree."""

import numpy as np
import pytest

from opinions import UnstoredOpinion, rated, said, task, trace, traced
from unreel.annotation.campaign import AnnotationInterface, VoteAnswer
from unreel.annotation.quality import (
    AgreementMetric,
    measure_annotator_agreement,
    measure_unanimity,
)
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.judgement import Label
from unreel.core.trace import Category


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
