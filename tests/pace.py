"""How slow this machine is just now: a limit in seconds is meant for one of usual speed."""

import time
from typing import Final

_STEPS: Final = 500_000
_USUAL_S: Final = 0.04
"""What the loop takes where the limits of the tests were set."""


def slowness() -> float:
    """How many times longer than usual a plain loop takes here, at least 1."""
    return max(1.0, min(_loop_s() for _ in range(3)) / _USUAL_S)


def _loop_s() -> float:
    began_s = time.perf_counter()
    sum(step * step for step in range(_STEPS))
    return time.perf_counter() - began_s
