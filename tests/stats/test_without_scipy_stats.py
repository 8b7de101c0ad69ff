"""Formulas that replace `scipy.stats`, which takes a second to load, agree with it."""

import math

import numpy as np
import pytest
from scipy import ndimage
from scipy.stats import binom, kurtosis

from unreel.annotation.campaign_state import estimate_median
from unreel.core.estimate import Estimate
from unreel.curation.audit.clip_features import compute_frame_features


@pytest.mark.parametrize("n", [*range(8, 200), 1_000, 10_001])
def test_the_interval_of_a_median_is_that_of_the_binomial_quantile(n: int) -> None:
    found = estimate_median(range(n))
    assert isinstance(found, Estimate)
    below = int(binom.ppf(0.025, n, 0.5))
    assert (found.low, found.high) == (max(0, below - 1), min(n - 1, n - below))


def test_the_tails_of_noise_are_its_kurtosis() -> None:
    grey = np.random.default_rng(3).integers(0, 256, (64, 64), dtype=np.uint8)
    features = compute_frame_features(np.repeat(grey[:, :, None], 3, axis=2))
    plane = grey.astype(np.float64)
    noise = plane - ndimage.median_filter(plane, size=3)
    tails = math.log(kurtosis(noise, axis=None) + 3)
    assert features["noise tails"] == pytest.approx(tails, abs=1e-3)
