"""Statistical power: the smallest difference between two reviewers that a benchmark can show."""

import math

from unreel.core.errors import InvalidValueError

POWER = 0.8
"""Probability of detecting a true difference of the reported size."""
DISCORDANT = 0.3
"""Default fraction of clips on which one of two reviewers is right and the other wrong, if unknown."""
N_DIFFERENCES = 7
"""Number of differences that `unreel compare` tests, and corrects for, between two reviewers under `reality`."""


def compute_detectable_difference(
    error: float, *, free: float, n_clusters: int, reach: float, alpha: float = 0.05
) -> float:
    """Return the smallest true difference that a two-sided test at `alpha` finds with 80 % power.

    `error` and `free` are the standard error of the difference and its degrees of freedom. `reach`
    is the maximum difference of two values: a true difference of d needs a fraction d / `reach` of
    clips that differ, so that reviewers who seldom differ do not make small differences visible.
    """
    measured = _compute_power_factor(free, alpha) * error
    if math.isinf(reach):
        return measured
    return min(reach, max(measured, _compute_one_sided_difference(n_clusters, reach, alpha)))


def compute_detectable_accuracy_gap(
    n_clusters: int, *, discordant: float = DISCORDANT, alpha: float = 0.05
) -> float:
    """Return the accuracy difference shown with 80 % power; one is right on `discordant` of clips."""
    if n_clusters < 2 or not 0 < discordant <= 1:  # noqa: PLR2004  a spread needs two
        raise InvalidValueError(
            f"got {n_clusters} clips and a share of {discordant}. Use 2 clips or more and a share in 0..1"
        )
    squared = _compute_power_factor(n_clusters - 1, alpha) ** 2
    spread = math.sqrt(squared * discordant / (n_clusters + squared))
    return max(spread, _compute_one_sided_difference(n_clusters, 1.0, alpha))


def _compute_power_factor(free: float, alpha: float) -> float:
    """Return the detectable difference in units of its standard error."""
    from scipy.special import stdtrit

    return -float(stdtrit(free, alpha / 2)) + float(stdtrit(free, POWER))


def _compute_one_sided_difference(n_clusters: int, reach: float, alpha: float) -> float:
    """Return the detectable difference if all clips that differ favour the same reviewer."""
    squared = _compute_power_factor(max(n_clusters - 1, 1), alpha) ** 2
    return reach * squared / (n_clusters + squared)
