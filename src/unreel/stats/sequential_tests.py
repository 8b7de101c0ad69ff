"""Sequential tests whose false-alarm rate is valid over all checks of a growing series.

Each test is an e-process: a series of evidence values whose expectation is at most 1 at any
stopping time if the null hypothesis is true. By Ville's inequality, the probability that the
series ever reaches 1 / alpha is at most alpha, however often it is checked. The t-tests are the
scale-invariant mixture of Lai (1976) and Wang and Ramdas (2024, arXiv:2310.03722) over normal
effects. The test of a fraction is the betting test of Waudby-Smith and Ramdas (2024,
doi:10.1093/jrsssb/qkad009); its only assumption is that values lie in 0..1. A change may begin
at any time, so each test restarts every `START_EVERY` values. The restarts share the
false-alarm rate with weights that sum to 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unreel.stats.row_sample import Array

START_EVERY = 5
"""Number of values between two starts of a test."""
SLOPE_SD = 0.3
"""Prior standard deviation of a slope per value, in standard deviations of the noise."""
SHIFT_SD = 1.0
"""Prior standard deviation of a shift, in standard deviations of the noise."""
BETS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Fractions of the evidence that is lost by one value of 0; the test averages over them."""
_HALVINGS = 20
_ROUNDING = 1e-12

Interval = tuple[float, float, float]
"""Value, lower and upper bound; the bounds are infinite if there are too few values."""


@dataclass(frozen=True, slots=True, eq=False)
class SequentialTestEvidence:
    """Logarithm of the evidence of a sequential test after each value, combined over its restarts."""

    log_evidence: Array
    starts: tuple[int, ...]
    """Index of the start with most of the evidence, after each value."""

    def first_above(self, log_limit: float) -> int | None:
        """Return the index at which the evidence first reaches the limit; `None` if it never does."""
        above = np.flatnonzero(self.log_evidence >= log_limit)
        return int(above[0]) if len(above) else None


def combine_restarted_tests(
    n: int, evidence: Callable[[slice], Array], known: SequentialTestEvidence | None = None
) -> SequentialTestEvidence:
    """Combine the evidence of the tests that start at 0, `START_EVERY`, ...

    `evidence` returns the logarithm of the evidence after each of the selected values; a slice with
    a negative step selects from the newest to the oldest. With the result `known` for the first
    values, each further value takes time in proportion to `n`.
    """
    if known is not None:
        return _extend_evidence(n, evidence, known)
    total, best = np.full(n, -np.inf), np.full(n, -np.inf)
    starts = np.zeros(n, np.intp)
    for start in range(0, n, START_EVERY):
        of_start = evidence(slice(start, None)) + compute_log_start_weight(start)
        total[start:] = np.logaddexp(total[start:], of_start)
        better = of_start > best[start:]
        starts[start:][better] = start
        best[start:][better] = of_start[better]
    return SequentialTestEvidence(total, tuple(starts.tolist()))


def _extend_evidence(
    n: int, evidence: Callable[[slice], Array], known: SequentialTestEvidence
) -> SequentialTestEvidence:
    """Add the values that follow the known ones: each is tested from all starts at once."""
    log_evidence, starts = known.log_evidence.tolist(), [*known.starts]
    for last in range(len(starts), n):
        first_values = range(0, last + 1, START_EVERY)
        logs = evidence(slice(last, None, -1))[::-1][::START_EVERY]
        logs = logs + np.array([compute_log_start_weight(start) for start in first_values])
        log_evidence.append(float(np.logaddexp.reduce(logs)))
        starts.append(first_values[int(logs.argmax())])
    return SequentialTestEvidence(np.array(log_evidence), tuple(starts))


def compute_log_start_weight(start: int) -> float:
    """Return the logarithm of the weight of the test that begins at `start`: 1/2, 1/6, 1/12, ..."""
    number = start // START_EVERY
    return -math.log((number + 1) * (number + 2))


def compute_trend_evidence(values: Array, sign: int, min_change: float = 0.0) -> Array:
    """Compute log evidence of rise (`sign` 1) or fall (-1) by value; -inf below a change of `min_change`."""
    x = np.arange(len(values), dtype=np.float64)
    y = values - (values[0] if len(values) else 0.0)
    n = x + 1
    spread = np.cumsum(x * x) - np.cumsum(x) ** 2 / n
    product = np.cumsum(x * y) - np.cumsum(x) * np.cumsum(y) / n
    total = np.maximum(np.cumsum(y * y) - np.cumsum(y) ** 2 / n, 0.0)
    floor = _ROUNDING * (1 + np.cumsum(y * y))
    slopes = np.divide(product, spread, out=np.zeros_like(total), where=spread > 0)
    log_evidence = _compute_log_t_evidence(
        total, slopes * product, SLOPE_SD**2 * spread, n_free=n - 1, floor=floor
    )
    return np.where((sign * slopes > 0) & (sign * slopes * x >= min_change), log_evidence, -np.inf)


def compute_mean_evidence(values: Array, limit: float, sign: int) -> Array:
    """Return the log evidence, after each value, that the mean is above (`sign` 1) or below `limit`."""
    y = values - limit
    n = np.arange(1, len(y) + 1, dtype=np.float64)
    sums, total = np.cumsum(y), np.cumsum(y * y)
    log_evidence = _compute_log_t_evidence(
        total, sums**2 / n, SHIFT_SD**2 * n, n_free=n, floor=0 * n + _ROUNDING
    )
    return np.where(sign * sums > 0, log_evidence, -np.inf)


def compute_fraction_evidence(values: Array, limit: float) -> Array:
    """Return the log evidence, after each value in 0..1, that their mean is above `limit`."""
    gains = [np.cumsum(np.log1p(bet / limit * (values - limit))) for bet in BETS]
    mean: Array = np.logaddexp.reduce(gains, axis=0) - math.log(len(BETS))
    return mean


def estimate_trend_interval(values: Array, alpha: float) -> Interval:
    """Return the change along the fitted line, with an interval that is valid at all times together."""
    x = np.arange(len(values), dtype=np.float64)
    x -= x.mean()
    spread = float(x @ x)
    if not spread:
        return math.nan, -math.inf, math.inf
    slope = float(x @ values) / spread
    residual = float(np.square(values - values.mean() - slope * x).sum())
    half_width = _compute_half_width(
        residual, SLOPE_SD**2 * spread, len(values) - 1, alpha
    ) / math.sqrt(spread)
    length = len(values) - 1
    return length * slope, length * (slope - half_width), length * (slope + half_width)


def estimate_mean_interval(values: Array, alpha: float) -> Interval:
    """Return the mean with an interval that is valid at all times together."""
    mean, n = float(values.mean()), len(values)
    residual = float(np.square(values - mean).sum())
    half_width = _compute_half_width(residual, SHIFT_SD**2 * n, n, alpha) / math.sqrt(n)
    return mean, mean - half_width, mean + half_width


def estimate_fraction_interval(values: Array, alpha: float) -> Interval:
    """Return the mean of values in 0..1 with an always valid interval; `alpha` applies to each side."""
    mean = float(values.mean())
    low, high = _compute_lower_bound(values, alpha), 1 - _compute_lower_bound(1 - values, alpha)
    return mean, min(low, mean), max(high, mean)


def _compute_lower_bound(values: Array, alpha: float) -> float:
    """Return the largest limit that the test of a fraction rejects; it is below the mean."""
    low, high = 0.0, float(values.mean())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        excluded = middle > 0 and compute_fraction_evidence(values, middle)[-1] >= -math.log(alpha)
        low, high = (middle, high) if excluded else (low, middle)
    return low


def _compute_log_t_evidence(
    total: Array, explained: Array, precision: Array, *, n_free: Array, floor: Array
) -> Array:
    """Return the log evidence of a regression on one column; a constant series gives no evidence."""
    left = total - np.minimum(explained, total) * precision / (1 + precision)
    ratio = np.divide(total, left, out=np.ones_like(total), where=(total > floor) & (left > 0))
    evidence: Array = 0.5 * (n_free * np.log(ratio) - np.log1p(precision))
    return evidence


def _compute_half_width(residual: float, precision: float, n_free: int, alpha: float) -> float:
    """Return the half-width of the interval of a coefficient, in units of 1 / sqrt(sum of squares)."""
    growth = ((1 + precision) / alpha**2) ** (1 / n_free)
    if growth >= 1 + precision:
        return math.inf
    return math.sqrt(residual * (growth - 1) / (1 - growth / (1 + precision)))
