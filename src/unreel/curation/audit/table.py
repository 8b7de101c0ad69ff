"""The features of many clips as columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.reviewers.floors.fitting import Features
from unreel.stats.sample import Array

N_BINS: Final = 5
LEAST_HOLDERS: Final = 3
"""A feature that fewer clips have teaches nothing about the others."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """One line for each clip. Nothing in it follows from labels, so it serves under any."""

    names: tuple[str, ...]
    """Of the columns; the fifths of a feature have its name."""
    raw: Array
    """As measured; of a fifth, whether the clip lies in it."""
    is_bin: tuple[bool, ...]

    @property
    def scaled(self) -> Array:
        """Every column around 0, in its own spreads."""
        spread = self.raw.std(axis=0)
        scaled: Array = (self.raw - self.raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return scaled

    def only(self, chosen: Sequence[int]) -> "FeatureTable":
        """The table of the columns at `chosen`."""
        own = list(chosen)
        names, bins = zip(*((self.names[i], self.is_bin[i]) for i in own), strict=True)
        return FeatureTable(names, self.raw[:, own], bins)


def tabulate(clips: Sequence[Features]) -> FeatureTable:
    """`clips` without features that are rare or the same for all, and with the fifths of all that is measured on a scale.

    The fifths let a model that adds up features see a value that is typical in the middle: all
    generated clips lasting five seconds, say, and real ones less or more.
    """
    holders = Counter(name for features in clips for name, value in features.items() if value)
    common = sorted(name for name, n in holders.items() if n >= LEAST_HOLDERS)
    columns = [np.array([features.get(name, 0.0) for features in clips]) for name in common]
    known = [(n, c) for n, c in zip(common, columns, strict=True) if len(np.unique(c)) > 1]
    fifths = [(name, own) for name, column in known for own in _fifths(column)]
    both = [*known, *fifths]
    raw = np.array([column for _, column in both]).reshape(len(both), len(clips)).T
    return FeatureTable(
        tuple(n for n, _ in both), raw, (False,) * len(known) + (True,) * len(fifths)
    )


def _fifths(column: Array) -> list[Array]:
    if len(np.unique(column)) <= N_BINS:
        return []
    borders = np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS))
    own = np.searchsorted(borders, column, side="right")
    return [(own == i).astype(np.float64) for i in np.unique(own)]
