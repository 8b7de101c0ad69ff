"""Which example stands where in a training: a list that follows from the recipe alone."""

import math
from collections.abc import Sequence

import numpy as np

from unreel.train.recipe import OptimiseSection


class Order:
    """The examples of a training one after another, epoch after epoch.

    An epoch draws as many examples as there are, each as often as its weight says against the mean
    weight: with equal weights each once. The place of an example depends on the seed alone, never on
    how many processes or devices read the list.

    Args:
        weights: one for each example.
        seed: of the recipe.
    """

    def __init__(self, weights: Sequence[float], *, seed: int) -> None:
        self._weights, self._seed = np.array(weights, dtype=float), seed
        self._drawn: tuple[int, list[int]] = (-1, [])

    def __len__(self) -> int:
        """How many examples an epoch draws."""
        return len(self._weights)

    def __getitem__(self, place: int) -> int:
        """The example at that place; the list never ends."""
        epoch, within = divmod(place, len(self._weights))
        if self._drawn[0] != epoch:
            self._drawn = (epoch, self._draw(epoch))
        return self._drawn[1][within]

    def _draw(self, epoch: int) -> list[int]:
        draw = np.random.default_rng((self._seed, epoch))
        n, queue = len(self._weights), draw.permutation(len(self._weights))
        shares = self._weights[queue]
        # One comb over all shares: nobody is drawn more than one time off its due.
        ends = np.cumsum(shares) * (n / shares.sum())
        ends[-1] = n
        drawn = queue[np.searchsorted(ends, np.arange(n) + draw.random(), side="right")]
        return [int(each) for each in draw.permutation(drawn)]


def count_steps(optimise: OptimiseSection, *, n_examples: int, n_devices: int) -> int:
    """How many steps a training takes: what the recipe says, or as many as its epochs fill."""
    if optimise.max_steps is not None:
        return optimise.max_steps
    at_once = optimise.batch_size * optimise.accumulate * n_devices
    return max(1, math.ceil(optimise.epochs * n_examples / at_once))
