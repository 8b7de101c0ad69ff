"""Lengths that tell nothing: real clips are trimmed until they last as long as generated ones do."""

import random
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.errors import InvalidValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """Keep the first `length_s` seconds, so that the first frame stays."""

    length_s: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class TooShort:
    """No wanted length is left that this clip could be trimmed to; it is not stretched."""

    length_s: Fraction
    wanted_s: Fraction
    """The shortest length that nobody could fill."""


TOO_SHORT: Final = -1
"""In the place of a length: no wanted one is left that the clip could be trimmed to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lasting:
    """How long many clips last, as columns."""

    lengths_s: Sequence[Fraction]
    """Every length that occurs, once."""
    own: NDArray[np.integer]
    """For each clip, which of these is its own."""
    names: NDArray[Any]
    """For each clip, what it is told apart by among those of one length."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given:
    """Which length each clip is given, and the shortest that nobody could fill."""

    lengths: NDArray[np.int64]
    unfilled: int | None


def match_lengths(
    lengths_s: Mapping[str, Fraction], wanted_s: Sequence[Fraction], *, seed: int
) -> dict[str, Trim | TooShort]:
    """A trim for each clip of `lengths_s`, so that together they last as `wanted_s` do.

    Each clip gets a length that occurs in `wanted_s`, in exact time: with as many clips on both sides
    exactly these lengths, otherwise their quantiles. Who gets which is drawn with `seed` among those
    that are long enough, and as many clips as possible get one. The order of the mapping plays no part.
    """
    if not wanted_s:
        msg = "there are no lengths to match. Give those of the generated clips"
        raise InvalidValueError(msg)
    occurring = list({*lengths_s.values(), *wanted_s})
    place = {length_s: number for number, length_s in enumerate(occurring)}
    own = np.array([place[length_s] for length_s in lengths_s.values()], np.int64)
    wanted = np.array([place[length_s] for length_s in wanted_s], np.int64)
    real = Lasting(lengths_s=occurring, own=own, names=np.array([*lengths_s]))
    given = draw_lengths(real, wanted, seed=seed)
    return {
        name: _trim(length, given.unfilled, occurring, length_s)
        for (name, length_s), length in zip(lengths_s.items(), given.lengths.tolist(), strict=True)
    }


def _trim(
    length: int, unfilled: int | None, occurring: Sequence[Fraction], length_s: Fraction
) -> Trim | TooShort:
    if length == TOO_SHORT and unfilled is not None:
        return TooShort(length_s=length_s, wanted_s=occurring[unfilled])
    return Trim(length_s=occurring[length])


def draw_lengths(real: Lasting, wanted: NDArray[np.integer], *, seed: int) -> Given:
    """The same for columns; `wanted` says which lengths occur among those to be matched, and how often."""
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
    unfilled, above = None, len(own)
    # From the longest down: whoever can fill a length can fill every shorter one, so any draw among
    # them leaves the best that is possible for the rest.
    for place in reversed(range(len(targets))):
        if enough[place] < above:
            free.frombytes(by_length[enough[place] : above].astype(np.int64).tobytes())
            above = int(enough[place])
        if not free:
            unfilled = int(by_rank[targets[place]])
            continue
        drawn = draw.randrange(len(free))
        free[drawn], free[-1] = free[-1], free[drawn]
        lengths[free.pop()] = by_rank[targets[place]]
    return Given(lengths=lengths, unfilled=unfilled)


def length_gap(first_s: Sequence[Fraction], second_s: Sequence[Fraction]) -> Fraction:
    """Largest difference of the two cumulative distributions (Kolmogorov-Smirnov): 0 when equal."""
    first, second = sorted(first_s), sorted(second_s)
    return max(
        abs(
            Fraction(bisect_right(first, at), len(first))
            - Fraction(bisect_right(second, at), len(second))
        )
        for at in {*first, *second}
    )


def _quantiles(ordered: NDArray[np.integer], n: int) -> NDArray[np.integer]:
    """`n` of the lengths, in the middle of `n` equal shares of their distribution."""
    middles: NDArray[np.integer] = ordered[(2 * np.arange(n) + 1) * len(ordered) // (2 * n or 1)]
    return middles
