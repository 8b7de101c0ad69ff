"""Agreement beyond chance."""

from collections.abc import Callable
from typing import get_args

import krippendorff
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.agreement import Scale, cohen_kappa, fleiss_kappa, krippendorff_alpha

Estimated = Callable[[Measured], Estimate]

SCALES: tuple[Scale, ...] = get_args(Scale)
NAN = float("nan")

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 12 units, 4 observers.
PRINTED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


@pytest.mark.parametrize(
    ("scale", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_gives_the_printed_values(estimated: Estimated, scale: Scale, printed: float) -> None:
    estimate = estimated(krippendorff_alpha(PRINTED, scale=scale, seed=1))
    assert round(estimate.value, 3) == printed
    assert estimate.n == 11  # the twelfth unit has one rating


@pytest.mark.parametrize("scale", SCALES)
@given(
    ratings=arrays(
        float, (4, 15), elements=st.sampled_from([1.0, 2.0, 3.0, 4.5, 7.0, NAN]), fill=st.nothing()
    )
)
def test_alpha_is_the_one_of_the_library(scale: Scale, ratings: npt.NDArray[np.float64]) -> None:
    measured = krippendorff_alpha(ratings, scale=scale, seed=1)
    if isinstance(measured, Estimate):
        expected = krippendorff.alpha(reliability_data=ratings, level_of_measurement=scale)
        assert measured.value == pytest.approx(expected, abs=1e-9)


def _rate(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    truth = rng.integers(1, 6, n)
    noisy = np.clip(truth + rng.integers(-1, 2, (3, n)), 1, 5)
    ratings: npt.NDArray[np.float64] = noisy.astype(np.float64)
    ratings[rng.random(ratings.shape) < 0.1] = NAN
    return ratings


@pytest.mark.parametrize("scale", SCALES)
def test_the_interval_of_alpha_is_the_one_found_by_drawing_units(
    estimated: Estimated, rng: np.random.Generator, scale: Scale
) -> None:
    ratings = _rate(rng, 100)
    estimate = estimated(krippendorff_alpha(ratings, scale=scale, seed=1))
    paired = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    n = paired.shape[1]
    drawn = [
        krippendorff.alpha(paired[:, rng.integers(n, size=n)], level_of_measurement=scale)
        for _ in range(1_000)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    width = high - low
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.12 * width)


@pytest.mark.parametrize("scale", SCALES)
def test_who_rated_and_in_which_order_changes_nothing(
    rng: np.random.Generator, scale: Scale
) -> None:
    ratings = _rate(rng, 40)
    shuffled = rng.permuted(ratings, axis=0)[:, rng.permutation(40)]
    assert krippendorff_alpha(ratings, scale=scale, seed=1) == krippendorff_alpha(
        shuffled, scale=scale, seed=1
    )


@pytest.mark.parametrize("scale", SCALES)
def test_perfect_agreement_keeps_some_doubt(estimated: Estimated, scale: Scale) -> None:
    ratings = np.tile(np.arange(50) % 5, (3, 1))
    estimate = estimated(krippendorff_alpha(ratings, scale=scale, seed=1))
    assert (estimate.value, estimate.high) == pytest.approx((1, 1))
    assert 0.8 < estimate.low < 0.9


@pytest.mark.parametrize(
    ("ratings", "why"),
    [
        ([[1, 2, 3]], "no unit was rated by two raters"),
        ([[1, NAN, 3], [NAN, 2, NAN]], "no unit was rated by two raters"),
        ([[], []], "no unit was rated by two raters"),
        ([[4, 4, 4], [4, 4, NAN]], "all ratings are 4"),
    ],
)
def test_alpha_needs_two_raters_and_two_values(ratings: list[list[float]], why: str) -> None:
    measured = krippendorff_alpha(ratings, scale="ordinal", seed=1)
    assert isinstance(measured, Unmeasured)
    assert why in measured.why


@pytest.mark.parametrize("scale", SCALES)
def test_values_that_only_one_unit_has_are_too_few_for_an_interval(scale: Scale) -> None:
    ratings = np.full((2, 20), 0.1)
    ratings[:, 0] = 0.7  # neither has an exact binary form, so sums of squares round
    measured = krippendorff_alpha(ratings, scale=scale, seed=1)
    assert isinstance(measured, Unmeasured)
    assert "resamples have no value" in measured.why


@pytest.mark.parametrize("ratings", [[1, 2, 3], [[1, float("inf")], [1, 2]]])
def test_ratings_are_a_table_of_numbers(ratings: npt.ArrayLike) -> None:
    with pytest.raises(InvalidValueError, match="Pivot them"):
        krippendorff_alpha(ratings, scale="interval", seed=1)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=8, max_size=60)
)
def test_kappa_is_the_one_of_scikit_learn(rows: list[tuple[str, str]]) -> None:
    first, second = zip(*rows, strict=True)
    measured = cohen_kappa(first, second, seed=1)
    if isinstance(measured, Estimate):
        assert measured.value == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
        assert measured.n == len(rows)


def test_kappa_gives_the_textbook_value_of_fifty_grant_proposals(estimated: Estimated) -> None:
    first = [1] * 25 + [0] * 25
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    estimate = estimated(cohen_kappa(first, second, seed=1))
    assert estimate.value == pytest.approx(0.4)
    # Asymptotic standard error of Fleiss, Cohen and Everitt 1969 for this table: 0.127
    assert (estimate.low, estimate.high) == pytest.approx((0.15, 0.65), abs=0.05)


def test_kappa_draws_clips(estimated: Estimated, rng: np.random.Generator) -> None:
    first = rng.integers(0, 3, 80)
    second = np.where(rng.random(80) < 0.6, first, 0)
    once = estimated(cohen_kappa(first, second, seed=1))
    grouped = estimated(
        cohen_kappa(first.repeat(5), second.repeat(5), seed=1, clusters=np.arange(80).repeat(5))
    )
    assert grouped.value == pytest.approx(once.value)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.15)


def test_kappa_refuses_rows_that_one_rater_skipped() -> None:
    with pytest.raises(InvalidValueError, match="same number of rows"):
        cohen_kappa([1, 0], [1], seed=1)
    with pytest.raises(InvalidValueError, match="a label is NaN"):
        cohen_kappa([1, 0], [1, NAN], seed=1)


# Fleiss 1971 as worked in textbooks: 10 units, 14 raters, 5 labels; kappa is 0.210.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_fleiss_kappa_gives_the_printed_value(estimated: Estimated) -> None:
    units = [np.repeat(np.arange(1.0, 6), counts) for counts in FLEISS]
    estimate = estimated(fleiss_kappa(np.array(units).T, seed=1))
    assert round(estimate.value, 3) == 0.210
    assert estimate.n == 10


def test_the_interval_of_fleiss_kappa_is_the_one_found_by_drawing_units(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    ratings = _rate(rng, 100)
    estimate = estimated(fleiss_kappa(ratings, seed=1))
    paired = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    n = paired.shape[1]
    drawn = [
        estimated(fleiss_kappa(paired[:, rng.integers(n, size=n)], seed=1)).value
        for _ in range(300)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.2 * (high - low))


def test_fleiss_kappa_of_no_pairs_or_one_label_is_unmeasured() -> None:
    assert isinstance(fleiss_kappa([[1, NAN], [NAN, 2]], seed=1), Unmeasured)
    assert isinstance(fleiss_kappa([[1, 1], [1, 1]], seed=1), Unmeasured)
    with pytest.raises(InvalidValueError):
        fleiss_kappa([1, 2], seed=1)
