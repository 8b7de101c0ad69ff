"""Shares and the mid-P interval."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.proportion import estimate_proportion

Estimated = Callable[[Measured], Estimate]

COUNTS = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_at_each_end_half_of_the_seen_count_and_all_beyond_make_up_the_tail(
    estimated: Estimated, count: tuple[int, int], level: float
) -> None:
    successes, n = count
    estimate = estimated(estimate_proportion(*count, level=level))
    tail = (1 - level) / 2
    if successes > 0:
        seen = binom.pmf(successes, n, estimate.low) / 2
        assert binom.sf(successes, n, estimate.low) + seen == pytest.approx(tail, rel=1e-6)
    if successes < n:
        seen = binom.pmf(successes, n, estimate.high) / 2
        assert binom.cdf(successes - 1, n, estimate.high) + seen == pytest.approx(tail, rel=1e-6)
    assert estimate.value == successes / n
    assert (estimate.n, estimate.level) == (n, level)


@pytest.mark.parametrize(
    ("successes", "n", "ends"),
    [
        (81, 263, (0.2544, 0.3658)),
        (15, 148, (0.0601, 0.1581)),
        (0, 20, (0.0, 0.1391)),
        (1, 29, (0.0017, 0.1585)),
    ],
)
def test_the_printed_mid_p_intervals_of_newcombe_1998(
    estimated: Estimated, successes: int, n: int, ends: tuple[float, float]
) -> None:
    estimate = estimated(estimate_proportion(successes, n))
    assert (round(estimate.low, 4), round(estimate.high, 4)) == ends


@given(st.integers(1, 10_000))
def test_all_right_still_leaves_doubt_and_ends_exactly_at_one(estimated: Estimated, n: int) -> None:
    estimate = estimated(estimate_proportion(n, n))
    assert estimate.low < 1
    assert estimate.high == 1


@given(COUNTS)
def test_successes_and_failures_mirror_each_other(
    estimated: Estimated, count: tuple[int, int]
) -> None:
    successes, n = count
    here, there = (
        estimated(estimate_proportion(successes, n)),
        estimated(estimate_proportion(n - successes, n)),
    )
    assert here.low == pytest.approx(1 - there.high, abs=1e-12)


@pytest.mark.parametrize("n", [20, 50, 200, 332])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.9, 0.95, 0.98, 0.99])
def test_the_truth_is_held_at_least_about_as_often_as_it_says(
    estimated: Estimated, n: int, share: float
) -> None:
    estimates = [estimated(estimate_proportion(successes, n)) for successes in range(n + 1)]
    held = sum(
        binom.pmf(successes, n, share)
        for successes, estimate in enumerate(estimates)
        if estimate.low <= share <= estimate.high
    )
    # Few trials of an extreme share have few outcomes: no interval can be held 95 times of 100.
    assert 0.93 <= held <= (0.97 if share < 0.9 else 0.995)


def test_nothing_counted_is_unmeasured() -> None:
    assert isinstance(estimate_proportion(0, 0), Unmeasured)


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (0, -1)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(InvalidValueError, match="successes must be from 0"):
        estimate_proportion(successes, n)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_outside_0_to_1_is_refused(level: float) -> None:
    with pytest.raises(InvalidValueError, match="level must be between"):
        estimate_proportion(1, 2, level=level)
