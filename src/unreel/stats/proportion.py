"""Shares of a count."""

import math
from statistics import NormalDist

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured


def wilson(successes: int, n: int, *, level: float = 0.95) -> Measured:
    """Share of `successes` among `n` independent trials, with Wilson's score interval.

    It stays inside 0..1 and keeps a width when every trial went the same way. Rows of one clip are
    not independent trials: use `bootstrap_mean` for them.
    """
    if not 0 <= successes <= n:
        msg = f"a share needs 0 <= successes <= n, got {successes} of {n}. Check what was counted"
        raise InvalidValueError(msg)
    if n == 0:
        return Unmeasured("nothing was counted")
    share = successes / n
    low, high = wilson_interval(share, n, level=level)
    return Estimate(value=share, low=low, high=high, n=n, level=level)


def wilson_interval(share: float, n: float, *, level: float) -> tuple[float, float]:
    """Ends of Wilson's interval for an observed `share` of `n` trials, which may be fractions."""
    z = normal_quantile(level)
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / shrink
    # At 0 and 1 the formula ends exactly there, rounding does not.
    return min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))


def normal_quantile(level: float) -> float:
    """How many standard deviations around the middle hold the share `level` of a normal curve."""
    if not 0 < level < 1:
        msg = f"a level lies between 0 and 1, got {level}. Use 0.95 for a 95 % interval"
        raise InvalidValueError(msg)
    return -NormalDist().inv_cdf((1 - level) / 2)
