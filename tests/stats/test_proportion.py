"""Shares and Wilson's interval."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.proportion import wilson

Estimated = Callable[[Measured], Estimate]

COUNTS = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_wilson_is_the_interval_that_scipy_computes(
    estimated: Estimated, count: tuple[int, int], level: float
) -> None:
    estimate = estimated(wilson(*count, level=level))
    reference = binomtest(*count).proportion_ci(level, method="wilson")
    assert estimate.value == count[0] / count[1]
    assert (estimate.low, estimate.high) == pytest.approx((reference.low, reference.high))
    assert (estimate.n, estimate.level) == (count[1], level)


@pytest.mark.parametrize(
    ("successes", "n", "ends"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilson_gives_the_printed_intervals_of_newcombe_1998(
    estimated: Estimated, successes: int, n: int, ends: tuple[float, float]
) -> None:
    estimate = estimated(wilson(successes, n))
    assert (round(estimate.low, 4), round(estimate.high, 4)) == ends


@given(st.integers(1, 10_000))
def test_all_right_still_leaves_doubt_and_ends_exactly_at_one(estimated: Estimated, n: int) -> None:
    estimate = estimated(wilson(n, n))
    assert estimate.low < 1
    assert estimate.high == 1


@given(COUNTS)
def test_successes_and_failures_mirror_each_other(
    estimated: Estimated, count: tuple[int, int]
) -> None:
    successes, n = count
    here, there = estimated(wilson(successes, n)), estimated(wilson(n - successes, n))
    assert here.low == pytest.approx(1 - there.high, abs=1e-12)


@pytest.mark.parametrize(("n", "share"), [(20, 0.1), (20, 0.5), (100, 0.03), (400, 0.92)])
def test_wilson_holds_the_truth_about_as_often_as_it_says(
    estimated: Estimated, n: int, share: float
) -> None:
    estimates = [estimated(wilson(successes, n)) for successes in range(n + 1)]
    held = sum(
        binom.pmf(successes, n, share)
        for successes, estimate in enumerate(estimates)
        if estimate.low <= share <= estimate.high
    )
    assert 0.92 <= held <= 0.98


def test_nothing_counted_is_unmeasured() -> None:
    assert isinstance(wilson(0, 0), Unmeasured)


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (0, -1)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(InvalidValueError, match="Check what was counted"):
        wilson(successes, n)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_outside_0_to_1_is_refused(level: float) -> None:
    with pytest.raises(InvalidValueError, match=r"Use 0\.95"):
        wilson(1, 2, level=level)
