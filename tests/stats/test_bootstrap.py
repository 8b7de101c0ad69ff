"""Drawing whole clips again."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import StatisticLimits, bootstrap, bootstrap_mean
from unreel.stats.proportion import estimate_proportion
from unreel.stats.resampling import RESAMPLES
from unreel.stats.row_sample import Array, RowSample, require_float_columns

Estimated = Callable[[Measured], Estimate]

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=60)


def _median(sample: RowSample) -> Callable[[Array], Array]:
    (values,) = sample.columns
    return lambda weights: np.array(
        [np.median(values.repeat(line.astype(int))) for line in weights]
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_a_resample_draws_whole_clips_as_many_as_there_are(clips: list[int]) -> None:
    sample = RowSample.of(require_float_columns(np.arange(len(clips))), np.array(clips))
    for line in sample.scenes.draw(np.random.default_rng(0), 5):
        times = {clip: set(line[np.array(clips) == clip]) for clip in clips}
        assert all(len(drawn) == 1 for drawn in times.values())
        assert sum(drawn.pop() for drawn in times.values()) == sample.n_clusters


@given(ROWS)
def test_alike_rows_share_the_sum_of_their_weights(rows: list[tuple[int, int]]) -> None:
    clips, values = np.array(rows).T
    merged = RowSample.of(require_float_columns(values), clips)
    apart = RowSample.of(require_float_columns(values, np.arange(len(rows))), clips)
    assert merged.n_rows == apart.n_rows == len(rows)
    for many, single in zip(_draws(merged), _draws(apart), strict=True):
        by_value = [single[apart.columns[0] == value].sum() for value in merged.columns[0]]
        if merged.n_clusters < len(rows):  # else alike clips are drawn together, in other draws
            assert many == pytest.approx(by_value)
        assert many.sum() >= merged.n_clusters


def _draws(sample: RowSample) -> Array:
    return np.concatenate([sample.observed, sample.scenes.draw(np.random.default_rng(0), 4)])


def test_every_clip_is_drawn_equally_often() -> None:
    alike = RowSample.of(require_float_columns([0.0] * 900 + [1.0] * 100))
    distinct = RowSample.of(require_float_columns(np.arange(20.0)))
    grouped = RowSample.of(require_float_columns(np.arange(40.0)), np.arange(40) // 2)
    rng = np.random.default_rng(1)
    assert alike.scenes.draw(rng, 2_000).mean(axis=0) == pytest.approx([900, 100], abs=1)
    assert distinct.scenes.draw(rng, 20_000).mean(axis=0) == pytest.approx(np.ones(20), abs=0.05)
    assert grouped.scenes.draw(rng, 20_000).mean(axis=0) == pytest.approx(np.ones(40), abs=0.05)


def test_the_mean_and_its_interval_agree_with_scipy(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    values = rng.gamma(2.0, size=400)
    estimate = estimated(bootstrap_mean(values, seed=1))
    reference = scipy_bootstrap((values,), np.mean, n_resamples=5_000, method="percentile", rng=rng)
    assert estimate.value == pytest.approx(values.mean())
    width = reference.confidence_interval.high - reference.confidence_interval.low
    assert estimate.low == pytest.approx(reference.confidence_interval.low, abs=0.06 * width)
    assert estimate.high == pytest.approx(reference.confidence_interval.high, abs=0.06 * width)


def test_any_statistic_of_weights_gets_an_interval(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    values = rng.normal(size=101)
    sample = RowSample.of((values,))
    estimate = estimated(bootstrap(_median(sample), sample, seed=1))
    assert estimate.value == np.median(values)
    assert estimate.low < estimate.value < estimate.high
    assert 0.3 < estimate.high - estimate.low < 0.8  # 2 * 1.96 * 1.253 / sqrt(101) = 0.49


def test_rows_of_one_clip_do_not_count_as_many_clips(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    values = rng.normal(size=50).repeat(20)
    clips = np.arange(50).repeat(20)
    once = estimated(bootstrap_mean(values[::20], seed=5))
    grouped = estimated(bootstrap_mean(values, seed=5, clusters=clips))
    fooled = estimated(bootstrap_mean(values, seed=5))
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.1)
    assert fooled.high - fooled.low < 0.4 * (grouped.high - grouped.low)
    assert grouped.n == 1_000


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_bounded_mean_always_has_an_interval_with_a_width_inside_the_bounds(
    values: list[float],
) -> None:
    estimate = bootstrap_mean(values, seed=0, bounds=(0, 1))
    assert isinstance(estimate, Estimate)
    assert -1e-9 <= estimate.low <= estimate.value <= estimate.high <= 1 + 1e-9
    assert estimate.high > estimate.low


def test_the_seed_alone_decides(rng: np.random.Generator) -> None:
    values = rng.normal(size=80)
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    assert bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)


def test_few_clips_without_bounds_are_unmeasured_and_keep_their_bare_value() -> None:
    one_clip = bootstrap_mean([1.0, 2.0, 3.0], seed=1, clusters=["a", "a", "a"])
    assert one_clip == Unmeasured(
        "an interval at level 0.95 needs 6 clips, here are 1; the bare value is 2"
    )
    assert isinstance(bootstrap_mean([1.0, 2.0, 3.0, 4.0, 5.0], seed=1), Unmeasured)
    assert isinstance(bootstrap_mean([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], seed=1), Estimate)
    assert isinstance(bootstrap_mean([1.0, 2.0, 3.0, 4.0, 5.0], seed=1, level=0.9), Estimate)


def test_one_clip_with_most_rows_counts_as_hardly_more_than_one_clip(estimated: Estimated) -> None:
    clips = ["a"] * 1_000 + ["b"]
    lopsided = estimated(bootstrap_mean([1.0] * 1_001, seed=1, clusters=clips, bounds=(0, 1)))
    single = estimated(estimate_proportion(1, 1))
    assert lopsided.low == pytest.approx(single.low, abs=0.01)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_clips_at_a_bound_get_the_interval_of_a_share_that_never_varied(
    estimated: Estimated, constant: float
) -> None:
    estimate = estimated(bootstrap_mean([constant] * 440, seed=1, bounds=(0, 1)))
    share = estimated(estimate_proportion(int(440 * constant), 440))
    assert (estimate.low, estimate.high) == pytest.approx((share.low, share.high))


def test_clips_that_are_all_alike_are_unmeasured_without_bounds() -> None:
    measured = bootstrap_mean([0.3] * 50, seed=1)
    assert isinstance(measured, Unmeasured)
    assert "all clips are alike" in measured.why
    assert "0.3" in measured.why


def test_a_statistic_without_a_value_is_unmeasured(rng: np.random.Generator) -> None:
    sample = RowSample.of((rng.normal(size=20),))
    nowhere = bootstrap(lambda weights: np.full(len(weights), np.nan), sample, seed=1)
    assert isinstance(nowhere, Unmeasured)


def _fails_beyond(share: float) -> Callable[[Array], Array]:
    """The share of the first row's weight, without a value in about `share` of the resamples."""
    seen = np.random.default_rng(0)

    def statistic(weights: Array) -> Array:
        value: Array = weights[:, 0] / weights.sum(axis=1)
        if len(weights) > 1:
            value[seen.random(len(weights)) < share] = np.nan
        return value

    return statistic


def test_resamples_without_a_value_are_left_out_while_they_are_few() -> None:
    sample = RowSample.of((np.arange(20.0),))
    assert isinstance(bootstrap(_fails_beyond(0.05), sample, seed=1), Estimate)
    refused = bootstrap(_fails_beyond(0.2), sample, seed=1)
    assert isinstance(refused, Unmeasured)
    assert f"of {RESAMPLES} resamples have no value" in refused.why


def test_a_biased_statistic_still_lies_inside_its_interval(
    estimated: Estimated, rng: np.random.Generator
) -> None:
    sample = RowSample.of((rng.normal(size=50),))

    def distinct(weights: Array) -> Array:
        share: Array = np.count_nonzero(weights, axis=1) / weights.shape[1]
        return share

    estimate = estimated(bootstrap(distinct, sample, seed=1, limits=StatisticLimits(0, 1, 50)))
    assert estimate.value == estimate.high == 1
    assert estimate.low < 0.7


@pytest.mark.parametrize("bounds", [(0.0, 0.5), (0.6, 1.0)])
def test_values_outside_their_bounds_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InvalidValueError, match="Check the bounds"):
        bootstrap_mean([0.55] * 8, seed=1, bounds=bounds)


@pytest.mark.parametrize("values", [[1.0, float("nan")], [float("inf")], [[1.0], [2.0]]])
def test_rows_that_are_no_numbers_are_refused(values: npt.ArrayLike) -> None:
    with pytest.raises(InvalidValueError):
        bootstrap_mean(values, seed=1)
