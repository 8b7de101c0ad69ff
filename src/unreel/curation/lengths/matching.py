"""Matching of clip lengths: real clips are trimmed to the lengths of generated ones."""

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

TOO_SHORT: Final = -1
"""In the place of a length: no wanted one is left that the clip could be trimmed to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClipLengths:
    """Lengths of many clips as columns."""

    lengths_s: Sequence[Fraction]
    """Every length that occurs, once."""
    own: NDArray[np.integer]
    """For each clip, which of these is its own."""
    names: NDArray[Any]
    """For each clip, what it is told apart by among those of one length."""


def draw_lengths(real: ClipLengths, wanted: NDArray[np.integer], *, seed: int) -> NDArray[np.int64]:
    """Return the trimmed length of each clip, so that their distribution matches the `wanted` lengths.

    With as many clips on both sides these are exactly the wanted lengths, otherwise their quantiles. Who
    gets which is drawn with `seed` among those that are long enough, and as many clips as possible get one.
    The order of the clips plays no part.
    """
    by_rank = np.array(sorted(range(len(real.lengths_s)), key=real.lengths_s.__getitem__))
    rank = np.empty_like(by_rank)
    rank[by_rank] = np.arange(len(by_rank))
    own = rank[real.own]
    by_length = np.lexsort((real.names, own))
    targets = _quantiles(np.sort(rank[wanted]), len(own))
    enough = np.searchsorted(own[by_length], targets)
    draw = random.Random(seed)  # noqa: S311  a repeatable draw, no secret
    lengths = np.full(len(own), TOO_SHORT)
    free = array("q")
    above = len(own)
    # From the longest down: whoever can fill a length can fill every shorter one, so any draw among
    # them leaves the best that is possible for the rest.
    for place in reversed(range(len(targets))):
        if enough[place] < above:
            free.frombytes(by_length[enough[place] : above].astype(np.int64).tobytes())
            above = int(enough[place])
        if free:
            drawn = draw.randrange(len(free))
            free[drawn], free[-1] = free[-1], free[drawn]
            lengths[free.pop()] = by_rank[targets[place]]
    return lengths


def _quantiles(ordered: NDArray[np.integer], n: int) -> NDArray[np.integer]:
    """`n` of the lengths, in the middle of `n` equal shares of their distribution."""
    middles: NDArray[np.integer] = ordered[(2 * np.arange(n) + 1) * len(ordered) // (2 * n or 1)]
    return middles
