"""Pairs in order."""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.correlation import OrderedPairCounter, count_ordered_pairs, pair_consistency

Estimated = Callable[[Measured], Estimate]

ROWS = st.lists(
    st.tuples(st.integers(1, 5) | st.integers(1, 40), st.integers(1, 9)), min_size=6, max_size=40
)
THIRTY = np.repeat([1, 2, 3, 4, 5], [3, 7, 10, 6, 4])


def _count_slowly(human: Sequence[float], scores: Sequence[float]) -> tuple[int, int, int]:
    """Ordered, same, tied: pair by pair."""
    ordered = same = tied = 0
    for (h1, s1), (h2, s2) in combinations(zip(human, scores, strict=True), 2):
        ordered += h1 != h2
        same += (h1 < h2 and s1 < s2) or (h1 > h2 and s1 > s2)
        tied += h1 != h2 and s1 == s2
    return ordered, same, tied


@given(ROWS)
def test_fast_counting_counts_what_slow_counting_counts(rows: list[tuple[int, int]]) -> None:
    human, scores = (np.array(column, dtype=float) for column in zip(*sorted(rows), strict=True))
    counts = OrderedPairCounter.of(human, scores).count(np.ones((1, len(rows))))
    ordered, same, tied = _count_slowly(human.tolist(), scores.tolist())
    assert count_ordered_pairs(human) == ordered
    assert np.nan_to_num(counts.ordered[0]) == ordered
    assert (counts.same[0], counts.tied[0]) == (same, tied)


@given(ROWS, st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_a_weight_counts_a_row_that_often(rows: list[tuple[int, int]], often: list[int]) -> None:
    human, scores = (np.array(column, dtype=float) for column in zip(*sorted(rows), strict=True))
    weights = np.array(often[: len(rows)])
    counts = OrderedPairCounter.of(human, scores).count(
        np.array([weights, weights * 0 + 1], dtype=float)
    )
    expected = _count_slowly(human.repeat(weights).tolist(), scores.repeat(weights).tolist())
    assert np.nan_to_num(counts.ordered[0]) == expected[0]
    assert (counts.same[0], counts.tied[0]) == expected[1:]


def test_thirty_clips_of_the_paper_give_345_ordered_pairs() -> None:
    assert count_ordered_pairs(THIRTY) == 345


def test_the_rate_is_a_share_of_the_ordered_pairs(estimated: Estimated) -> None:
    scores = THIRTY.astype(float)
    scores[0] = 3.5  # one clip of score 1 above 7 clips of score 2 and 10 of score 3
    scores[3] = 4.0  # one clip of score 2 above 10 of score 3, level with 6 of score 4
    estimate = estimated(pair_consistency(THIRTY, scores, seed=1))
    _, same, _ = _count_slowly(THIRTY.tolist(), scores.tolist())
    assert estimate.value == same / 345
    assert same == 345 - 17 - 16 + 1
    assert estimate.n == 30


def test_a_predicted_tie_disagrees(estimated: Estimated) -> None:
    human = np.arange(20) % 2
    assert estimated(pair_consistency(human, np.zeros(20), seed=1)).value == 0


@given(ROWS)
def test_agreement_disagreement_and_ties_make_one(rows: list[tuple[int, int]]) -> None:
    human, scores = np.array(rows).T
    with_scores = pair_consistency(human, scores, seed=1)
    against = pair_consistency(human, -scores, seed=1)
    if isinstance(with_scores, Estimate) and isinstance(against, Estimate):
        ordered, _, tied = _count_slowly(human.tolist(), scores.tolist())
        assert with_scores.value + against.value + tied / ordered == pytest.approx(1)
    else:
        assert isinstance(with_scores, Unmeasured)
        assert isinstance(against, Unmeasured)


def test_perfect_order_keeps_the_doubt_of_pairs_that_share_no_clip(estimated: Estimated) -> None:
    estimate = estimated(pair_consistency(THIRTY, THIRTY, seed=1))
    assert (estimate.value, estimate.high) == (1, 1)
    # Of 15 trials none failed: a true share above this would fail in more than 5 of 100 cases.
    assert estimate.low == pytest.approx(0.05 ** (1 / 15), abs=1e-6)


def test_pairs_of_one_clip_stand_or_fall_together(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    human = rng.integers(1, 6, 60)
    scores = human + 2 * rng.normal(size=60)
    estimate = estimated(pair_consistency(human, scores, seed=1))
    n_pairs = count_ordered_pairs(human)
    as_if_independent = 2 * 1.96 * np.sqrt(estimate.value * (1 - estimate.value) / n_pairs)
    assert estimate.high - estimate.low > 2 * as_if_independent


@pytest.mark.parametrize("human", [[], [3], [2, 2, 2]])
def test_without_an_ordered_pair_there_is_no_rate(human: list[int]) -> None:
    assert count_ordered_pairs(human) == 0
    assert isinstance(pair_consistency(human, range(len(human)), seed=1), Unmeasured)
