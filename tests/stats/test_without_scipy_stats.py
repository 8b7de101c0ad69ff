"""Formulas that replace `scipy.stats`, which takes a second to load, agree with it."""

import numpy as np
import pytest
from scipy.stats import binom, kurtosis

from unreel.annotation.campaign_state import estimate_median
from unreel.core.estimate import Estimate
from unreel.curation.audit.clip_features import _compute_kurtosis


@pytest.mark.parametrize("n", [*range(8, 200), 1_000, 10_001])
def test_the_interval_of_a_median_is_that_of_the_binomial_quantile(n: int) -> None:
    found = estimate_median(range(n))
    assert isinstance(found, Estimate)
    below = int(binom.ppf(0.025, n, 0.5))
    assert (found.low, found.high) == (max(0, below - 1), min(n - 1, n - below))


def test_the_tails_of_noise_are_its_kurtosis() -> None:
    noise = np.random.default_rng(0).standard_t(5, size=(64, 96))
    assert _compute_kurtosis(noise) == pytest.approx(kurtosis(noise, axis=None) + 3, rel=1e-12)
