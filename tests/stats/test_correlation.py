"""Correlations with people's scores."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap
from scipy.stats import pearsonr, spearmanr

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.correlation import plcc, srocc

Estimated = Callable[[Measured], Estimate]
Correlation = Callable[..., Measured]
Reference = Callable[..., float]

BOTH = pytest.mark.parametrize(
    ("correlation", "reference"),
    [
        pytest.param(plcc, lambda x, y: pearsonr(x, y).statistic, id="plcc"),
        pytest.param(srocc, lambda x, y: spearmanr(x, y).statistic, id="srocc"),
    ],
)
SCORES = st.integers(1, 5)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=12, max_size=60).filter(
    lambda rows: all(len(set(column)) > 1 for column in zip(*rows, strict=True))
)


def _related(rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.float64], ...]:
    human = rng.integers(1, 6, n).astype(float)
    return human, human + rng.normal(size=n)


@BOTH
@given(rows=PAIRS)
def test_tied_scores_correlate_as_in_scipy(
    correlation: Correlation, reference: Reference, rows: list[tuple[int, int]]
) -> None:
    x, y = np.array(rows).T
    measured = correlation(x, y, seed=1)
    if isinstance(measured, Estimate):
        assert measured.value == pytest.approx(reference(x, y), abs=1e-12)
        assert -1 <= measured.low <= measured.high <= 1
        assert measured.n == len(rows)
    else:
        assert "resamples have no value" in measured.why


@BOTH
@given(values=st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=20, unique=True))
def test_continuous_scores_correlate_as_in_scipy(
    estimated: Estimated, correlation: Correlation, reference: Reference, values: list[float]
) -> None:
    x, y = values[:10], values[10:]
    assert estimated(correlation(x, y, seed=1)).value == pytest.approx(reference(x, y), abs=1e-9)


@BOTH
def test_the_interval_is_the_one_scipy_finds_by_drawing_pairs(
    estimated: Estimated, correlation: Correlation, reference: Reference, rng: np.random.Generator
) -> None:
    x, y = _related(rng, 200)
    ends = scipy_bootstrap(
        (x, y), reference, paired=True, n_resamples=2_000, method="percentile", rng=rng
    ).confidence_interval
    estimate = estimated(correlation(x, y, seed=1))
    width = ends.high - ends.low
    assert (estimate.low, estimate.high) == pytest.approx((ends.low, ends.high), abs=0.1 * width)


@BOTH
def test_rows_repeated_within_a_clip_bring_no_certainty(
    estimated: Estimated, correlation: Correlation, reference: Reference, rng: np.random.Generator
) -> None:
    x, y = _related(rng, 60)
    once = estimated(correlation(x, y, seed=1))
    clips = np.arange(60).repeat(10)
    grouped = estimated(correlation(x.repeat(10), y.repeat(10), seed=1, clusters=clips))
    assert grouped.value == pytest.approx(once.value)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.15)


@BOTH
def test_turning_the_scores_round_turns_the_sign(
    estimated: Estimated, correlation: Correlation, reference: Reference, rng: np.random.Generator
) -> None:
    x, y = _related(rng, 100)
    assert estimated(correlation(x, -y, seed=1)).value == pytest.approx(
        -estimated(correlation(x, y, seed=1)).value
    )
    assert estimated(correlation(y, x, seed=1)).value == pytest.approx(
        estimated(correlation(x, y, seed=1)).value
    )


@BOTH
def test_a_perfect_correlation_keeps_doubt_that_shrinks_with_clips(
    estimated: Estimated, correlation: Correlation, reference: Reference
) -> None:
    lows = []
    for n in (10, 30, 1_000):
        estimate = estimated(correlation(np.arange(n), 3 * np.arange(n) + 1, seed=1))
        assert estimate.value == pytest.approx(1)
        assert estimate.high == pytest.approx(1)
        lows.append(estimate.low)
    assert lows == sorted(lows)
    assert 0.4 < lows[0] < 0.5  # ten clips leave a share 0.278 unseen, which may all be reversed
    assert 0.99 < lows[-1] < 1


@BOTH
@pytest.mark.parametrize(
    ("human", "scores", "why"),
    [
        ([3] * 9, range(9), "all people's scores are 3"),
        (range(9), [0.1] * 9, "all given scores are 0.1"),
        ([], [], "no rows"),
    ],
)
def test_a_constant_is_unmeasured(
    correlation: Correlation, reference: Reference, human: object, scores: object, why: str
) -> None:
    measured = correlation(np.array(human), np.array(scores), seed=1)
    assert isinstance(measured, Unmeasured)
    assert why in measured.why


@BOTH
def test_one_clip_that_differs_is_too_few_for_an_interval(
    correlation: Correlation, reference: Reference
) -> None:
    measured = correlation([1] * 19 + [2], list(range(20)), seed=1)
    assert isinstance(measured, Unmeasured)
    assert "resamples have no value" in measured.why
