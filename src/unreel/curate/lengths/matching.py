"""Lengths that tell nothing: real clips are trimmed until they last as long as generated ones do."""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

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
    targets = _quantiles(sorted(wanted_s), len(lengths_s))
    by_length = sorted(lengths_s, key=lambda name: (lengths_s[name], name))
    ordered = [lengths_s[name] for name in by_length]
    draw = random.Random(seed)  # noqa: S311  a repeatable draw, no secret
    trims: dict[str, Trim | TooShort] = {}
    free: list[str] = []
    unfilled: list[Fraction] = []
    above = len(by_length)
    # From the longest down: whoever can fill a length can fill every shorter one, so any draw among
    # them leaves the best that is possible for the rest.
    for target in reversed(targets):
        enough = bisect_left(ordered, target)
        free += by_length[enough:above]
        above = min(above, enough)
        if not free:
            unfilled.append(target)
            continue
        place = draw.randrange(len(free))
        free[place], free[-1] = free[-1], free[place]
        trims[free.pop()] = Trim(length_s=target)
    for name in by_length:
        if name not in trims:
            trims[name] = TooShort(length_s=lengths_s[name], wanted_s=min(unfilled))
    return trims


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


def _quantiles(ordered: Sequence[Fraction], n: int) -> list[Fraction]:
    """`n` of the lengths, in the middle of `n` equal shares of their distribution."""
    return [ordered[(2 * place + 1) * len(ordered) // (2 * n)] for place in range(n)]
