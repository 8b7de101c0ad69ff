"""Choice of the next pair to compare, by its expected information about all strengths.

Strengths have a normal prior around 0 with a spread that is estimated from the results. Each
result updates the prior by the Bradley-Terry model; a normal distribution around the mode
approximates the posterior. The information of a comparison is the mutual information of its
result and the strengths (Houlsby et al. 2011, arXiv:1112.5745), by their closed form for a
normal posterior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from unreel.core.errors import InvalidValueError
from unreel.stats.row_sample import Array, IntArray

SPREAD = 1.5
"""Prior standard deviation of strengths, with which most comparisons are far from certain."""
_SPREADS = (0.2, 5.0)
"""Minimum and maximum of the standard deviation of strengths that is estimated from results."""
_LOG_SPREAD_SD = 0.4
"""Prior standard deviation of the logarithm of the spread: 0.7 to 3.3 in 95 % of cases."""
MAX_COMPETITORS = 2000
"""Maximum number of competitors; the posterior stores the square of their number."""
_STEPS = 50
_TOLERANCE = 1e-9
_PROBIT = math.sqrt(math.pi / 8)
"""Scale at which the logistic curve approximates the normal one."""
_WIDTH = math.sqrt(math.pi * math.log(2) / 2)
"""Width of the Gaussian that approximates the entropy of the normal curve."""


@dataclass(frozen=True, slots=True, eq=False)
class StrengthPosterior:
    """Normal posterior of the competitors' strengths: mean and covariance."""

    mean: Array
    covariance: Array

    def spread_of(self, first: IntArray, second: IntArray) -> Array:
        """Return the variance of the difference between the strengths of each pair."""
        variances = np.diagonal(self.covariance)
        between = self.covariance[first, second]
        return np.asarray(np.maximum(variances[first] + variances[second] - 2 * between, 0.0))


def estimate_strength_posterior(wins: Array, *, spread: float | None = None) -> StrengthPosterior:
    """Estimate the posterior of strengths; `wins[i, j]` counts how often i was preferred to j.

    `spread` is the standard deviation of the prior of strengths; by default it is estimated from
    the results, near `SPREAD` if they are few. Raise `InvalidValueError` if `wins` is not a square
    table of counts, or is too large.
    """
    size = len(wins)
    if wins.shape != (size, size) or not 1 < size <= MAX_COMPETITORS or not np.all(wins >= 0):
        raise InvalidValueError(
            f"results of 2 to {MAX_COMPETITORS} competitors are a square of counts. Count wins of row over column"
        )
    mean, precision = _fit_strengths(
        wins, _estimate_strength_spread(wins) if spread is None else spread
    )
    return StrengthPosterior(mean, np.linalg.inv(precision).astype(np.float64))


def _estimate_strength_spread(wins: Array) -> float:
    """Estimate the most likely spread of strengths, by Laplace's approximation of its likelihood."""
    from scipy.optimize import minimize_scalar

    has_results = wins.sum(axis=1) + wins.sum(axis=0) > 0
    if not has_results.any():
        return SPREAD
    results = wins[np.ix_(has_results, has_results)]
    mode = np.zeros(len(results))

    def unlikely(log_spread: float) -> float:
        spread = math.exp(log_spread)
        mode[:], precision = _fit_strengths(results, spread, start=mode)
        log_likelihood = -(results * np.logaddexp(0.0, mode[None, :] - mode[:, None])).sum()
        prior = mode @ mode / spread**2 / 2 + len(mode) * log_spread
        away = (log_spread - math.log(SPREAD)) / _LOG_SPREAD_SD
        return float(prior - log_likelihood + np.linalg.slogdet(precision)[1] / 2 + away**2 / 2)

    ends = (math.log(_SPREADS[0]), math.log(_SPREADS[1]))
    optimum = minimize_scalar(unlikely, bounds=ends, method="bounded", options={"xatol": 0.05})
    return math.exp(float(optimum.x))


def _fit_strengths(
    wins: Array, spread: float, *, start: Array | None = None
) -> tuple[Array, Array]:
    """Compute the most likely strengths and the precision matrix at these strengths."""
    size = len(wins)
    n_results = wins + wins.T
    mean = np.zeros(size) if start is None else start.copy()
    precision = np.eye(size) / spread**2
    for _ in range(_STEPS):
        wins_expected = n_results / (1 + np.exp(-(mean[:, None] - mean[None, :])))
        slope = (wins - wins_expected).sum(axis=1) - mean / spread**2
        weight = wins_expected * (
            1
            - np.divide(
                wins_expected, n_results, out=np.zeros_like(wins_expected), where=n_results > 0
            )
        )
        precision = np.diag(weight.sum(axis=1) + 1 / spread**2) - weight
        step = np.linalg.solve(precision, slope)
        # Limit long steps, which overshoot if one side always wins.
        mean = mean + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < _TOLERANCE:
            break
    return mean, precision


def compute_pair_information_gain(
    posterior: StrengthPosterior, first: IntArray, second: IntArray
) -> Array:
    """Return the expected information, in bits, that comparing each pair gives about the strengths."""
    difference = (posterior.mean[first] - posterior.mean[second]) * _PROBIT
    spread = posterior.spread_of(first, second) * _PROBIT**2
    safe = np.clip(ndtr(difference / np.sqrt(1 + spread)), 1e-12, 1 - 1e-12)
    of_result = np.asarray(-(safe * np.log2(safe) + (1 - safe) * np.log2(1 - safe)))
    width = spread + _WIDTH**2
    of_noise = _WIDTH / np.sqrt(width) * np.exp(-(difference**2) / (2 * width))
    return np.asarray(np.maximum(of_result - of_noise, 0.0))


def choose_next_pairs(
    posterior: StrengthPosterior, pairs: Sequence[tuple[int, int]], *, n: int, seed: int
) -> list[int]:
    """Return the indices in `pairs` of the `n` pairs to compare next, the most informative first.

    After each choice the posterior variance is reduced as if the result were known, so that one
    batch does not ask for the same information twice. `seed` breaks ties. A pair is chosen again
    only after all of `pairs` were chosen.
    """
    order = np.random.default_rng(seed).permutation(len(pairs))
    columns = [np.array([pairs[i][column] for i in order], dtype=np.int64) for column in (0, 1)]
    left = np.ones(len(pairs), dtype=bool)
    updated = posterior
    chosen: list[int] = []
    while len(chosen) < n and len(pairs):
        if not left.any():
            left[:] = True
        gains = np.where(left, compute_pair_information_gain(updated, *columns), -1.0)
        i = int(np.argmax(gains))
        left[i] = False
        chosen.append(int(order[i]))
        updated = _update_posterior(updated, *(int(column[i]) for column in columns))
    return chosen


def _update_posterior(posterior: StrengthPosterior, first: int, second: int) -> StrengthPosterior:
    """Return the posterior after one more comparison of the pair, by its expected curvature."""
    mean, covariance = posterior.mean, posterior.covariance
    along = covariance[:, first] - covariance[:, second]
    spread = along[first] - along[second]
    chance = 1 / (1 + np.exp(-(mean[first] - mean[second]) / np.sqrt(1 + np.pi * spread / 8)))
    curvature = chance * (1 - chance)
    shrunk = np.outer(along, along) * (curvature / (1 + curvature * spread))
    return StrengthPosterior(mean, np.asarray(covariance - shrunk))
