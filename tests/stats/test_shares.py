import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.stats.proportion import (
    WeightedProportion,
    estimate_proportion,
    sum_weighted_proportions,
)

counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def share(weight: float, successes: int, n: int) -> WeightedProportion:
    return WeightedProportion(weight=weight, successes=successes, n=n)


@given(counts)
def test_one_share_of_weight_one_has_the_interval_of_that_share(count: tuple[int, int]) -> None:
    alone, plain = sum_weighted_proportions([share(1, *count)]), estimate_proportion(*count)
    assert isinstance(alone, Estimate)
    assert isinstance(plain, Estimate)
    assert (alone.value, alone.low, alone.high) == pytest.approx(
        (plain.value, plain.low, plain.high)
    )


def test_the_distances_to_the_ends_of_shares_add_up_as_squares() -> None:
    found = sum_weighted_proportions([share(1, 56, 70), share(-1, 48, 80)])
    first, second = estimate_proportion(56, 70), estimate_proportion(48, 80)
    assert isinstance(found, Estimate)
    assert isinstance(first, Estimate)
    assert isinstance(second, Estimate)
    assert found.value == pytest.approx(0.2)
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    assert (found.low, found.high) == pytest.approx((0.2 - below, 0.2 + above))
    # Newcombe 1998, table II, example (a), with Wilson's intervals: [0.0524, 0.3339].
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=0.01)
    assert found.n == 150


def test_three_right_of_three_leave_doubt() -> None:
    found = sum_weighted_proportions([share(0.5, 33, 50), share(0.5, 3, 3)])
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(0.83)
    assert found.low < 0.6


@given(counts, counts)
def test_the_mean_of_two_shares_stays_between_0_and_1(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    found = sum_weighted_proportions([share(0.5, *first), share(0.5, *second)])
    assert isinstance(found, Estimate)
    assert -1e-12 <= found.low <= found.value <= found.high <= 1 + 1e-12


def test_a_share_of_nothing_makes_the_sum_unmeasured() -> None:
    assert isinstance(sum_weighted_proportions([share(0.5, 1, 2), share(0.5, 0, 0)]), Unmeasured)
    assert isinstance(sum_weighted_proportions([]), Unmeasured)


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="successes must be from 0"):
        share(1, 3, 2)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    truth, held, tries = 0.5 * 0.9 + 0.5 * 0.6, 0, 2_000
    for _ in range(tries):
        many, few = int(rng.binomial(50, 0.9)), int(rng.binomial(8, 0.6))
        found = sum_weighted_proportions([share(0.5, many, 50), share(0.5, few, 8)])
        assert isinstance(found, Estimate)
        held += found.low <= truth <= found.high
    assert 0.93 <= held / tries <= 0.98
