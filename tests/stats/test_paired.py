"""Two reviewers on the same clips."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.pairs import mean_difference
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.jackknife_values import JackknifeGroups
from unreel.stats.paired_differences import estimate_paired_difference

Estimated = Callable[[Measured], Estimate]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=6, max_size=40))
def test_swapping_the_reviewers_turns_the_sign(rows: list[tuple[int, int]]) -> None:
    first, second = np.array(rows).T / 4
    there = mean_difference(first, second, bounds=(0, 1))
    back = mean_difference(second, first, bounds=(0, 1))
    assert isinstance(there, Estimate)
    assert isinstance(back, Estimate)
    assert there.value == pytest.approx(np.mean(first) - np.mean(second), abs=1e-12)
    assert (there.value, there.low, there.high) == pytest.approx(
        (-back.value, -back.high, -back.low), abs=1e-12
    )


def test_pairing_sees_a_small_gap_that_two_separate_intervals_hide(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    hard = rng.normal(size=300)
    first, second = hard + 0.1 + 0.1 * rng.normal(size=300), hard + 0.1 * rng.normal(size=300)
    alone = [estimated(bootstrap_mean(values, seed=1)) for values in (first, second)]
    assert alone[0].low < alone[1].high
    assert estimated(mean_difference(first, second)).low > 0.05


def test_reviewers_that_never_differ_may_still_differ_on_few_clips(estimated: Estimated) -> None:
    same = np.tile([0.0, 1.0], 250)
    estimate = estimated(mean_difference(same, same, bounds=(0, 1)))
    assert estimate.value == 0
    assert -0.01 < estimate.low < 0 < estimate.high < 0.01


def test_reviewers_that_never_differ_are_unmeasured_without_bounds() -> None:
    assert isinstance(mean_difference([1.0] * 9, [1.0] * 9), Unmeasured)


def test_figures_that_are_unmeasured_or_tell_nothing_of_their_clips_have_no_difference() -> None:
    plain, absent = bootstrap_mean([0.0, 1.0] * 9, seed=0, bounds=(0, 1)), Unmeasured("no rows")
    assert estimate_paired_difference(plain, absent, groups=JackknifeGroups()) is absent
    assert isinstance(
        estimate_paired_difference(plain, plain, groups=JackknifeGroups()), Unmeasured
    )
