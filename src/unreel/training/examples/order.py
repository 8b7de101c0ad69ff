"""Order of the training examples, determined by the recipe, the seed and the epoch."""

import math
from bisect import bisect_right
from collections.abc import Sequence

from unreel.core.content_ids import digest
from unreel.training.examples.example import TrainingExample
from unreel.training.recipe import OptimiserSection


def compute_epoch_order(
    examples: Sequence[TrainingExample], *, weights: Sequence[float], seed: int, epoch: int
) -> list[int]:
    """Return the order of the examples in `epoch`, which counts from 0, as indices into `examples`.

    An example of weight 2 occurs twice in each epoch, an example of weight 0.5 in every second
    epoch. The position of each example depends on its own key, so that a new example does not
    change the order of the others.
    """
    order = []
    for i, example in enumerate(examples):
        weight = weights[example.data]
        begin = _hash_to_unit_fraction("phase", seed, example.key)
        times = math.floor(weight * (epoch + 1) + begin) - math.floor(weight * epoch + begin)
        order += [
            (digest("order", str(seed), str(epoch), example.key, str(time)), i)
            for time in range(times)
        ]
    return [i for _, i in sorted(order)]


def _hash_to_unit_fraction(what: str, seed: int, key: str) -> float:
    """Return a pseudorandom number from 0 up to 1 (exclusive) that depends on the key."""
    return int(digest(what, str(seed), key)[:13], 16) / 16**13


class ExampleOrder:
    """Endless sequence of the examples of a training, epoch after epoch.

    The position of an example depends only on its key and the seed, not on the number of processes
    or devices that read the sequence.

    Args:
        examples: Examples to learn from.
        weights: Weights of the data sections.
        seed: Seed of the recipe.
    """

    def __init__(
        self, examples: Sequence[TrainingExample], *, weights: Sequence[float], seed: int
    ) -> None:
        self._examples, self._weights, self._seed = examples, weights, seed
        self._ends: list[int] = []
        self._drawn: tuple[int, list[int]] = (-1, [])

    def __getitem__(self, index: int) -> TrainingExample:
        """Return the example at `index` of the endless sequence."""
        epoch = self._find(index)
        start = self._ends[epoch - 1] if epoch else 0
        return self._examples[self._draw(epoch)[index - start]]

    def _find(self, index: int) -> int:
        """Return the epoch that contains `index`; an epoch may be empty if weights are small."""
        while not self._ends or self._ends[-1] <= index:
            before = self._ends[-1] if self._ends else 0
            self._ends.append(before + len(self._draw(len(self._ends))))
        return bisect_right(self._ends, index)

    def _draw(self, epoch: int) -> list[int]:
        if self._drawn[0] != epoch:
            order = compute_epoch_order(
                self._examples, weights=self._weights, seed=self._seed, epoch=epoch
            )
            self._drawn = (epoch, order)
        return self._drawn[1]


def compute_epoch_length(examples: Sequence[TrainingExample], weights: Sequence[float]) -> float:
    """Return the mean number of examples in an epoch: the sum of their weights."""
    return math.fsum(weights[example.data] for example in examples)


def count_training_steps(optimise: OptimiserSection, *, in_a_pass: float, n_devices: int) -> int:
    """Return the number of training steps: `max_steps` of the recipe, or as many as its epochs need."""
    if optimise.max_steps is not None:
        return optimise.max_steps
    at_once = optimise.batch_size * optimise.accumulate * n_devices
    return max(1, math.ceil(optimise.epochs * in_a_pass / at_once - 1e-9))
