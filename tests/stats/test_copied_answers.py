"""Chances of meeting, against the formula of whole numbers."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidValueError
from unreel.stats.copied_answers import hypergeometric_probabilities


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.just(n), *[st.integers(0, n)] * 2)))
def test_chances_are_those_of_whole_numbers(sizes: tuple[int, int, int]) -> None:
    n, ours, theirs = sizes
    exact = [
        comb(ours, k) * comb(n - ours, theirs - k) / comb(n, theirs)
        for k in range(min(ours, theirs) + 1)
    ]
    assert hypergeometric_probabilities(n, ours, theirs) == pytest.approx(
        np.array(exact), abs=1e-10
    )


def test_chances_of_a_million_things_add_up_to_one() -> None:
    assert hypergeometric_probabilities(1_000_000, 3_000, 2_000).sum() == pytest.approx(1, abs=1e-8)


def test_more_marks_than_things_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="do not fit"):
        hypergeometric_probabilities(3, 4, 1)
