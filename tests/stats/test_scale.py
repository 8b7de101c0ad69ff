"""A hundred thousand rows: bounded time on a busy machine, and bounded memory."""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from pace import slowness
from stats.pairs import mean_difference
from unreel.core.estimate import Estimate, Measured, RowCluster
from unreel.stats.agreement import cohen_kappa, krippendorff_alpha
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.correlation import pair_consistency, plcc, srocc
from unreel.stats.detection_metrics import auc, measure_probability_calibration

N = 100_000
SLOW = pytest.mark.slow
RNG = np.random.default_rng(11)
HUMAN = RNG.integers(1, 6, N)
SCORES = HUMAN + RNG.normal(size=N)
WHOLE = np.clip(np.rint(SCORES), 1, 5)
CLIPS = np.arange(N) // 3
CROSSED = [RowCluster(f"scene {row // 40}", f"creator {row % 40}") for row in range(N)]
MAKERS = [RowCluster(f"scene {row // 3}", f"creator {row}") for row in range(N)]
TRUTH = (HUMAN > 3).astype(float)
TOLD = 1 / (1 + np.exp(3 - SCORES))


# Processor seconds: about ten times what an idle core needs.
@pytest.mark.parametrize(
    ("seconds", "measure"),
    [
        pytest.param(20, lambda: bootstrap_mean(SCORES, seed=1, clusters=CLIPS), id="mean"),
        pytest.param(1, lambda: bootstrap_mean(TRUTH, seed=1), id="share"),
        pytest.param(20, lambda: mean_difference(SCORES, HUMAN, clusters=CLIPS), id="paired"),
        pytest.param(
            30,
            lambda: bootstrap_mean(SCORES, seed=1, clusters=CROSSED),
            id="mean-two-ways",
            marks=SLOW,
        ),
        pytest.param(
            30,
            lambda: bootstrap_mean(SCORES, seed=1, clusters=MAKERS),
            id="mean-many-creators",
            marks=SLOW,
        ),
        pytest.param(30, lambda: plcc(HUMAN, SCORES, seed=1), id="plcc", marks=SLOW),
        pytest.param(60, lambda: srocc(HUMAN, SCORES, seed=1), id="srocc", marks=SLOW),
        pytest.param(1, lambda: srocc(HUMAN, WHOLE, seed=1), id="srocc-whole-scores"),
        pytest.param(60, lambda: pair_consistency(HUMAN, SCORES, seed=1), id="pcr", marks=SLOW),
        pytest.param(1, lambda: pair_consistency(HUMAN, WHOLE, seed=1), id="pcr-whole-scores"),
        pytest.param(
            30,
            lambda: pair_consistency(SCORES[:10_000], TOLD[::-1][:10_000], seed=1),
            id="pcr-10k",
            marks=SLOW,
        ),
        pytest.param(60, lambda: auc(TRUTH, SCORES, seed=1), id="auc", marks=SLOW),
        pytest.param(
            60,
            lambda: measure_probability_calibration(TRUTH, TOLD, seed=1).ece,
            id="calibration",
            marks=SLOW,
        ),
        pytest.param(
            3, lambda: krippendorff_alpha([HUMAN, WHOLE], scale="ordinal", seed=1), id="alpha"
        ),
        pytest.param(20, lambda: cohen_kappa(HUMAN, WHOLE, seed=1, clusters=CLIPS), id="kappa"),
    ],
)
def test_a_hundred_thousand_rows_take_seconds(
    seconds: float, measure: Callable[[], Measured]
) -> None:
    started = time.process_time()
    measured = measure()
    assert time.process_time() - started < seconds * slowness()
    assert isinstance(measured, Estimate)
    assert measured.high - measured.low < 0.03


@pytest.mark.parametrize(
    "measure",
    [
        pytest.param(
            lambda: pair_consistency(SCORES[:10_000], TOLD[::-1][:10_000], seed=1),
            id="pcr",
            marks=SLOW,
        ),
        pytest.param(
            lambda: srocc(SCORES, TOLD, seed=1, clusters=CLIPS % 20), id="srocc", marks=SLOW
        ),
        pytest.param(
            lambda: bootstrap_mean(SCORES, seed=1, clusters=MAKERS), id="two-ways", marks=SLOW
        ),
    ],
)
def test_memory_does_not_grow_with_pairs_or_resamples(measure: Callable[[], Measured]) -> None:
    tracemalloc.start()
    try:
        assert isinstance(measure(), Estimate)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100e6  # all pairs would take 0.8 GB, all resamples at once 0.16 or 1.6 GB
