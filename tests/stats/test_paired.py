"""Two reviewers on the same clips."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.paired import paired_difference

Estimated = Callable[[Measured], Estimate]
NAN = float("nan")


def test_the_difference_is_the_mean_gap_on_common_rows(estimated: Estimated) -> None:
    first = [1, 0, 1, NAN, 1, 1, 1, 0, 1]
    second = [0, 0, NAN, 1, 1, 0, 1, 1, 0]
    clips = ["a", "a", "b", "c", "d", "e", "f", "g", "h"]
    estimate = estimated(paired_difference(first, second, seed=1, clusters=clips, bounds=(0, 1)))
    assert estimate.value == pytest.approx((1 + 0 + 0 + 1 + 0 - 1 + 1) / 7)
    assert estimate.n == 6


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=6, max_size=40),
    st.integers(0, 1_000),
)
def test_swapping_the_reviewers_turns_the_sign(rows: list[tuple[int, int]], seed: int) -> None:
    first, second = np.array(rows).T / 4
    there = paired_difference(first, second, seed=seed, bounds=(0, 1))
    back = paired_difference(second, first, seed=seed, bounds=(0, 1))
    assert isinstance(there, Estimate)
    assert isinstance(back, Estimate)
    assert there.value == pytest.approx(-back.value)
    width = there.high - there.low
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=0.25 * width)


def test_pairing_sees_a_small_gap_that_two_separate_intervals_hide(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    hard = rng.normal(size=300)
    first, second = hard + 0.1 + 0.1 * rng.normal(size=300), hard + 0.1 * rng.normal(size=300)
    alone = [estimated(bootstrap_mean(values, seed=1)) for values in (first, second)]
    assert alone[0].low < alone[1].high
    assert estimated(paired_difference(first, second, seed=1)).low > 0.05


def test_reviewers_that_never_differ_may_still_differ_on_few_clips(estimated: Estimated) -> None:
    same = np.tile([0.0, 1.0], 250)
    estimate = estimated(paired_difference(same, same, seed=1, bounds=(0, 1)))
    assert estimate.value == 0
    assert -0.01 < estimate.low < 0 < estimate.high < 0.01


def test_reviewers_that_never_differ_are_unmeasured_without_bounds() -> None:
    assert isinstance(paired_difference([1.0] * 9, [1.0] * 9, seed=1), Unmeasured)


def test_no_clip_in_common_is_unmeasured() -> None:
    measured = paired_difference([1.0, NAN], [NAN, 1.0], seed=1)
    assert measured == Unmeasured("the reviewers have no clip in common")


def test_reviewers_need_the_same_rows() -> None:
    with pytest.raises(InvalidValueError, match="Align them"):
        paired_difference([1.0, 2.0], [1.0], seed=1)
    with pytest.raises(InvalidValueError, match="Name the clip of every row"):
        paired_difference([1.0, 2.0], [1.0, 2.0], seed=1, clusters=["a"])


def test_a_value_outside_the_metrics_bounds_is_not_hidden_by_the_difference() -> None:
    with pytest.raises(InvalidValueError, match="Check the bounds"):
        paired_difference([5.0] * 8, [5.0, 4.9] * 4, seed=1, bounds=(0, 1))
