"""Many intervals at once are those of one at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.estimate import Unmeasured
from unreel.stats.bootstrap import StatisticLimits, compute_bootstrap_interval
from unreel.stats.proportion import mid_p_interval
from unreel.stats.proportion_intervals import compute_proportion_intervals, mid_p_intervals


@given(st.floats(0, 1), st.floats(1, 1e5))
def test_mid_p_intervals_are_those_of_one_share(share: float, n: float) -> None:
    low, high = mid_p_intervals(np.array([share]), np.array([n]), level=0.95)
    assert (low[0], high[0]) == pytest.approx(mid_p_interval(share, n, level=0.95), abs=1e-9)


def test_intervals_of_many_shares_are_those_of_the_bootstrap() -> None:
    rng = np.random.default_rng(0)
    values = np.array([0.5, 0.9, 0.02, 1.0, 0.0])
    spread = np.array([0.05, 0.03, 0.01, 0.0, 0.0])
    drawn = np.clip(values + rng.normal(size=(500, 5)) * spread, 0, 1)
    n_free = np.full(5, 40.0)
    lows, highs = compute_proportion_intervals(
        values, drawn, n_clusters=np.full(5, 50.0), n_free=n_free
    )
    for place, value in enumerate(values.tolist()):
        limits = StatisticLimits(0.0, 1.0, 40.0)
        one = compute_bootstrap_interval(
            value, drawn[:, place], n_clusters=50, level=0.95, limits=limits
        )
        assert not isinstance(one, Unmeasured)
        assert (lows[place], highs[place]) == pytest.approx(one, abs=1e-9)


def test_few_scenes_get_the_interval_of_a_share_of_few_trials() -> None:
    lows, highs = compute_proportion_intervals(
        np.array([0.75]), np.full((10, 1), 0.75), n_clusters=np.array([4.0]), n_free=np.array([4.0])
    )
    assert (lows[0], highs[0]) == pytest.approx(mid_p_interval(0.75, 4, level=0.95))


def test_a_share_that_most_resamples_lack_has_no_interval() -> None:
    drawn = np.full((10, 2), np.nan)
    drawn[:5] = 0.4
    column = np.array([0.5, np.nan])
    lows, highs = compute_proportion_intervals(
        column, drawn, n_clusters=np.full(2, 9.0), n_free=np.full(2, 9.0)
    )
    assert np.isnan(lows).all()
    assert np.isnan(highs).all()
