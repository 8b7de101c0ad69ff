"""Draws without putting back: how often two sets of marks meet by chance."""

import numpy as np

from unreel.core.errors import InvalidValueError
from unreel.stats.sample import Array


def meeting_chances(n: int, ours: int, theirs: int) -> Array:
    """Chances that 0, 1, ... of `n` things carry both marks, where `ours` and `theirs` of them carry each by chance.

    The hypergeometric distribution, by logarithms of factorials: exact to ten digits for millions of things.
    """
    if not (0 <= ours <= n and 0 <= theirs <= n):
        msg = f"{ours} and {theirs} marks do not fit on {n} things. Check the counts"
        raise InvalidValueError(msg)
    from scipy.special import gammaln  # scipy.stats has it too, and takes seconds to load

    both = np.arange(min(ours, theirs) + 1, dtype=np.float64)
    neither = n - ours - theirs + both
    possible = neither >= 0
    whole = gammaln(np.array([ours, theirs, n - ours, n - theirs]) + 1.0).sum() - gammaln(n + 1.0)
    used = np.stack([both, ours - both, theirs - both, np.maximum(neither, 0)])
    logs: Array = whole - gammaln(used + 1.0).sum(axis=0)
    return np.where(possible, np.exp(logs), 0.0)
