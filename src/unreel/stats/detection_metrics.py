"""Detection metrics of probabilities and labels for generated clips."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.bootstrap import (
    ROUNDING,
    StatisticLimits,
    bootstrap,
    bootstrap_mean,
    bound_constant_statistic,
    compute_tail_fraction,
    estimate_bounded_mean,
    explain_too_few_clusters,
)
from unreel.stats.correlation import OrderedPairCounter, build_ordered_pair_limits
from unreel.stats.proportion import WeightedProportion, sum_weighted_proportions
from unreel.stats.resampling import Statistic, resample_statistic
from unreel.stats.row_sample import (
    Array,
    ClusterIds,
    Clusters,
    RowSample,
    find_run_starts,
    require_float_columns,
    weighted_sum,
)

_WHOLE = 1e-9
"""Tolerance for rounding errors: 1 % of 300 clips must count as 3 clips."""


def auc(
    generated: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute the probability that a generated clip scores higher than a real one; n counts rows.

    A tie counts as half. `generated` is 1 for generated and 0 for real. The interval resamples
    clips.
    """
    truth, column = _require_binary_truth(generated, scores)
    if len(np.unique(truth)) < 2:  # noqa: PLR2004  real and generated
        return Unmeasured("needs at least one real and one generated clip")
    sample = RowSample.of((truth, column), clusters)
    pairs = OrderedPairCounter.of(*sample.columns)

    def area(weights: Array) -> Array:
        counts = pairs.count(weights)
        return (counts.same + counts.tied / 2) / counts.ordered

    return bootstrap(
        area, sample, seed=seed, level=level, limits=build_ordered_pair_limits(sample, truth)
    )


def f1(
    generated: npt.ArrayLike,
    called: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute F1 for the answer `generated` (1 in both columns); n counts rows, right real ones have no effect."""
    truth, call = _require_binary_truth(generated, called)
    is_counted = (truth > 0) | (call > 0)
    if not is_counted.any():
        return Unmeasured("no clip is generated or was called so")
    ties = ClusterIds.of(clusters, len(truth))
    sample = RowSample.of(((truth * call).astype(np.uint8), (truth + call).astype(np.uint8)), ties)
    hits, calls = sample.columns

    def harmonic(weights: Array) -> Array:
        either = weighted_sum(weights, calls)
        either[either == 0] = np.nan
        return 2 * weighted_sum(weights, hits) / either

    limits = StatisticLimits(0.0, 1.0, ties.only(is_counted).n_free)
    return bootstrap(harmonic, sample, seed=seed, level=level, limits=limits)


def tpr_at_fpr(
    generated: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    fpr: float,
    seed: int,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Measured:
    """Compute the fraction of generated clips above the threshold for a false positive rate `fpr`.

    The threshold is the lowest score of a real clip that at most `fpr` of the real clips exceed; a
    tie with it counts as below. A rate of less than one real clip cannot be measured. The interval
    resamples clips and sets the threshold again each time. It includes that of a threshold one clip
    stricter, which keeps the rate on new clips: with 100 real clips and a rate of 1 % it covers
    0.99, and without that 0.80 to 0.97. n counts rows.
    """
    truth, column = _require_binary_truth(generated, scores)
    ties = ClusterIds.of(clusters, len(truth))
    n_real, fewest = ties.only(truth == 0).n_scenes, math.ceil(1 / fpr - _WHOLE)
    if n_real < fewest:
        return Unmeasured(
            f"{100 * fpr:g} % of false alarms need {fewest} real clips, here are {n_real}"
        )
    if not truth.any():
        return Unmeasured("needs at least one generated clip")
    sample = RowSample.of((-column, truth), ties)
    limits = StatisticLimits(0.0, 1.0, ties.only(truth == 1).n_free)
    measured, stricter = (
        bootstrap(
            _build_detection_rate_statistic(sample, fpr, spare=n),
            sample,
            seed=seed,
            level=level,
            limits=limits,
        )
        for n in (0, 1)
    )
    if isinstance(measured, Unmeasured) or isinstance(stricter, Unmeasured):
        return measured
    return replace(measured, low=min(measured.low, stricter.low))


def _build_detection_rate_statistic(sample: RowSample, fpr: float, *, spare: int) -> Statistic:
    """Return the detection rate at `fpr`, with `spare` more real clips above every threshold."""
    falling, generated = sample.columns
    starts = np.flatnonzero(find_run_starts(falling))

    def caught(weights: Array) -> Array:
        fake = np.add.reduceat(weights * generated, starts, axis=1)
        real = np.add.reduceat(weights * (1 - generated), starts, axis=1)
        n_fake, n_real = fake.sum(axis=1), real.sum(axis=1)
        n_fake[(n_fake == 0) | (n_real == 0)] = np.nan
        max_real = fpr * (n_real + spare) - spare + _WHOLE
        passes = np.cumsum(real, axis=1) <= max_real[:, np.newaxis]
        rate: Array = np.einsum("rs,rs->r", fake, passes) / n_fake
        return rate

    return caught


def balanced_accuracy(
    *, correct_real: int, n_real: int, correct_generated: int, n_generated: int, level: float = 0.95
) -> Measured:
    """Compute the mean accuracy on real and generated clips, each asked once; n counts all clips."""
    if n_real == 0:
        return Unmeasured("no real clips")
    if n_generated == 0:
        return Unmeasured("no generated clips")
    real = WeightedProportion(weight=0.5, successes=correct_real, n=n_real)
    generated = WeightedProportion(weight=0.5, successes=correct_generated, n=n_generated)
    return sum_weighted_proportions([real, generated], level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Rows with similar probabilities: the mean reported probability and the observed fraction."""

    p_mean: float
    """Mean reported probability of being generated."""
    generated: Estimate
    """Fraction of generated rows, with its interval; the rows of one clip count as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationMetrics:
    """Calibration of reported probabilities: calibration error, Brier score and reliability bins."""

    ece: Measured
    """Expected calibration error: mean distance of reported and true fractions over the bins, weighted by rows."""
    brier: Measured
    """Mean squared difference between the probability and the truth, 0 or 1."""
    bins: tuple[ReliabilityBin, ...]
    """Bins from the lowest probabilities to the highest."""


def measure_probability_calibration(
    generated: npt.ArrayLike,
    p_generated: npt.ArrayLike,
    *,
    seed: int,
    clusters: Clusters = None,
    bins: int = 10,
    level: float = 0.95,
) -> CalibrationMetrics:
    """Compute calibration in `bins` equal bins; equal probabilities share a bin."""
    truth, reported = _require_binary_truth(generated, p_generated)
    if len(reported) == 0:
        nothing = Unmeasured("no rows")
        return CalibrationMetrics(ece=nothing, brier=nothing, bins=())
    if bins < 1:
        raise InvalidValueError(f"bins must be at least 1, got {bins}")
    if reported.min() < 0 or reported.max() > 1:
        raise InvalidValueError(
            f"probabilities must be between 0 and 1, got {reported.min()} to {reported.max()}"
        )
    squares = (reported - truth) ** 2
    brier = bootstrap_mean(squares, seed=seed, clusters=clusters, bounds=(0, 1), level=level)
    _, bin_index, count = np.unique(reported, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    number = np.floor(middle * bins / len(reported))[bin_index]
    sample = RowSample.of((number, reported - truth), clusters)
    ece = _estimate_calibration_error(sample, seed=seed, level=level)
    ties = ClusterIds.of(clusters, len(reported))
    table = []
    for chosen in (number == bin_number for bin_number in np.unique(number)):
        fraction = estimate_bounded_mean(
            RowSample.of((truth[chosen],), ties.only(chosen)), (0, 1), level=level
        )
        table.append(ReliabilityBin(p_mean=float(reported[chosen].mean()), generated=fraction))
    return CalibrationMetrics(ece=ece, brier=brier, bins=tuple(table))


def _require_binary_truth(generated: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Array, Array]:
    truth, column = require_float_columns(generated, scores)
    if not np.isin(truth, (0, 1)).all():
        raise InvalidValueError(
            f"labels must be 0 or 1, got {np.unique(truth)[:5]}. Give 1 for generated, 0 for real"
        )
    return truth, column


def _estimate_calibration_error(sample: RowSample, *, seed: int, level: float) -> Measured:
    """Return the sum of the bins' distances between reported and true, weighted by their fraction of rows.

    Noise adds to distances, so resamples are above the value and their percentiles miss a truth
    near 0. But no truth is farther from the value than the sum of the bins' own errors (triangle
    inequality), and resampling estimates that sum: it gives the lower bound.
    """
    number, gap = sample.columns
    bins = np.flatnonzero(find_run_starts(number))

    def distances(weights: Array) -> Array:
        weighted_gap = np.add.reduceat(weights * gap, bins, axis=1)
        signed: Array = weighted_gap / weights.sum(axis=1, keepdims=True)
        return signed

    observed = distances(sample.observed)[0]
    value = float(np.abs(observed).sum())
    too_few = explain_too_few_clusters(sample, level=level)
    if too_few:
        return Unmeasured(f"{too_few}; the bare value is {value:.4g}")
    replicates, n_independent = resample_statistic(distances, sample, seed=seed, level=level)
    n_clusters = float(n_independent.min())
    noise = np.abs(replicates - observed).sum(axis=1)
    if noise.max() <= ROUNDING:
        low, high = bound_constant_statistic(
            value, StatisticLimits(0.0, 1.0, sample.n_free), level=level
        )
    else:
        tail = compute_tail_fraction(n_clusters, level=level)
        low = max(0.0, value - float(np.quantile(noise, 1 - tail)))
        high = max(value, float(np.quantile(np.abs(replicates).sum(axis=1), 1 - tail)))
    return Estimate(
        value=value, low=low, high=high, n=sample.n_rows, n_clusters=int(n_clusters), level=level
    )
