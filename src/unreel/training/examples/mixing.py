"""The order of lessons: a pass over all data with its weights, the same for the same seed and epoch."""

import math
from collections.abc import Sequence

from unreel.core.identity import digest
from unreel.training.examples.example import TrainingExample


def compute_epoch_order(
    examples: Sequence[TrainingExample], *, weights: Sequence[float], seed: int, epoch: int
) -> list[int]:
    """Return the indices in `examples` in the order of `epoch`, which counts from 0.

    An example of weight 2 occurs twice in each epoch, an example of weight 0.5 in every second
    epoch. The position of each example depends on its own key, so that a new example does not
    change the order of the others.
    """
    drawn = []
    for place, example in enumerate(examples):
        weight = weights[example.data]
        begin = _draw_unit_fraction("phase", seed, example.key)
        times = math.floor(weight * (epoch + 1) + begin) - math.floor(weight * epoch + begin)
        drawn += [
            (digest("order", str(seed), str(epoch), example.key, str(time)), place)
            for time in range(times)
        ]
    return [place for _, place in sorted(drawn)]


def _draw_unit_fraction(what: str, seed: int, key: str) -> float:
    """Return a pseudorandom number from 0 up to 1 (exclusive) that depends on the key."""
    return int(digest(what, str(seed), key)[:13], 16) / 16**13
