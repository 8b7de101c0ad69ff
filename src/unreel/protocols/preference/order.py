"""Presentation order of the clips of a pair."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from unreel.core.clip import ClipId
from unreel.core.judgement import Pair
from unreel.core.verdict import Position


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair in the order of showing, and which of the two is real."""

    pair: Pair
    real: Position


def balance_order(pairs: Sequence[tuple[ClipId, ClipId]], *, seed: int) -> list[ShownPair]:
    """Show the real clip of half of the pairs first; `pairs` are (real, generated).

    Which half is random. Of an odd number, one more shows it first or second, also at random.
    """
    # Not a secret: a plan that a seed can repeat.
    dice = random.Random(seed)  # noqa: S311
    orders = [Position.FIRST, Position.SECOND] * ((len(pairs) + 1) // 2)
    if dice.random() < 1 / 2:
        orders.reverse()
    orders = orders[: len(pairs)]
    dice.shuffle(orders)
    return [
        ShownPair(
            Pair(real, generated) if order is Position.FIRST else Pair(generated, real), order
        )
        for (real, generated), order in zip(pairs, orders, strict=True)
    ]
