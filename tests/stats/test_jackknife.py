"""The doubt of a difference, from leaving out parts of the clips."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.estimate import Unmeasured
from unreel.stats.jackknife_values import JackknifeValues
from unreel.stats.paired_differences import DifferenceTestResult, compute_difference_interval


def _without_each(gaps: np.ndarray) -> np.ndarray:
    return (gaps.sum() - gaps) / (len(gaps) - 1)


def _test(gaps: np.ndarray, reach: float = 1.0) -> DifferenceTestResult:
    found = compute_difference_interval(
        gaps.mean(), JackknifeValues(_without_each(gaps)), n=len(gaps), few=len(gaps), reach=reach
    )
    assert isinstance(found, DifferenceTestResult)
    return found


def test_a_mean_gets_the_interval_of_students_t() -> None:
    gaps = np.concatenate([np.full(20, 0.4), np.full(20, -0.2)])
    found = _test(gaps)
    error = gaps.std(ddof=1) / math.sqrt(40)
    assert found.estimate.value == pytest.approx(0.1)
    assert found.estimate.high - 0.1 == pytest.approx(2.0227 * error, rel=1e-3)


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=30))
def test_the_interval_leaves_out_0_exactly_where_p_is_below_5_in_100(gaps: list[float]) -> None:
    found = _test(np.array(gaps))
    outside = not found.estimate.low <= 0 <= found.estimate.high
    if abs(found.p - 0.05) > 1e-6 and np.ptp(gaps) > 1e-6:
        assert outside is (found.p < 0.05)


def test_few_clips_that_make_the_whole_difference_count_as_few() -> None:
    three, ten = (np.r_[np.ones(n), np.zeros(200 - n)] for n in (3, 10))
    assert _test(three).p > 0.1
    assert _test(ten).p < 0.01


def test_clips_that_are_all_alike_still_leave_doubt() -> None:
    same, opposed = _test(np.zeros(50)), _test(np.ones(50))
    assert (same.estimate.value, same.p) == (0, 1)
    assert -0.1 < same.estimate.low < 0 < same.estimate.high < 0.1
    assert opposed.p < 1e-9
    assert 0.85 < opposed.estimate.low < opposed.estimate.high == 1


@pytest.mark.parametrize(
    ("left_out", "why"),
    [([0.1] * 5, "needs 6 clips"), ([0.1] * 9 + [math.nan], "without some of them")],
)
def test_what_rests_on_too_little_is_unmeasured(left_out: list[float], why: str) -> None:
    found = compute_difference_interval(
        0.1, JackknifeValues(np.array(left_out)), n=10, few=len(left_out), reach=1
    )
    assert isinstance(found, Unmeasured)
    assert why in found.why


def test_an_unbounded_figure_of_clips_all_alike_is_unmeasured() -> None:
    assert isinstance(
        compute_difference_interval(0.0, JackknifeValues(np.zeros(9)), n=9, few=9), Unmeasured
    )
