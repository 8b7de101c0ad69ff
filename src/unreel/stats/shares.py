"""Weighted sums of independent shares, such as the mean of two accuracies.

Each share keeps its own mid-P interval, and the distances from share to end add up as squares
(Newcombe 1998, doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I; Zou and Donner
2008, doi:10.1002/sim.3095). So three right answers of three still leave doubt, which drawing the
same three clips again would not show.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.stats.proportion import mid_p_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedShare:
    """`weight` times the share of `successes` among `n` trials; no trial belongs to two shares."""

    weight: float
    successes: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.n:
            msg = (
                f"a share needs 0 <= successes <= n, got {self.successes} of {self.n}. "
                "Check the counts"
            )
            raise InvalidValueError(msg)


def sum_shares(shares: Sequence[WeightedShare], *, level: float = 0.95) -> Measured:
    """The sum of `shares`, with its interval; n counts the trials of all of them."""
    if not shares or any(share.n == 0 for share in shares):
        return Unmeasured("nothing was counted")
    value = below = above = spread = doubt = 0.0
    for share in shares:
        p = share.successes / share.n
        low, high = mid_p_interval(p, share.n, level=level)
        ends = sorted((share.weight * (low - p), share.weight * (high - p)))
        value += share.weight * p
        below += ends[0] ** 2
        above += ends[1] ** 2
        spread += (ends[1] - ends[0]) ** 2
        doubt += (ends[1] - ends[0]) ** 4 / share.n
    n = sum(share.n for share in shares)
    return Estimate(
        value=value,
        low=value - math.sqrt(below),
        high=value + math.sqrt(above),
        n=n,
        # As Satterthwaite counts degrees of freedom: a share of few trials that makes most of the doubt decides.
        n_clusters=round(spread**2 / doubt) if doubt else n,
        level=level,
    )
