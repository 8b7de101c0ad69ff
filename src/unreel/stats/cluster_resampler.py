"""Groups of rows drawn again: up to `MANY` groups one by one, more of them by their kind."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unreel.stats.cluster_ids import MANY, NOBODY, count_kinds

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# One binomial draw per kind costs about as much as this many single draws.
_BINOMIAL_COST: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class ClusterResampler:
    """Groups of rows that are drawn with replacement, as many as were observed."""

    sizes: IntArray
    """How many groups of each kind were observed."""
    holders: "_RowHolders | None"
    """Which kinds of group hold each distinct row; `None`: a group of kind i holds row i alone."""
    always: Array | float = 0.0
    """Weights of the distinct rows that are in every resample."""

    @classmethod
    def of(cls, group: npt.NDArray[Any], starts: IntArray) -> "ClusterResampler":
        """Return resamples of the groups of sorted rows that start at `starts`; missing ids are never sampled."""
        drawn = group != NOBODY
        labels = group[drawn]
        always = 0.0 if len(labels) == len(group) else count_chosen(~drawn, starts)
        n_groups = count_kinds(labels)
        if n_groups == len(labels):
            return cls(count_chosen(drawn, starts).astype(np.int64), None, always)
        numbers = np.full(len(group), n_groups)
        numbers[drawn] = np.unique(labels, return_inverse=True)[1]
        holders = _RowHolders.of(numbers, starts, n_groups=n_groups)
        if n_groups <= MANY:
            return cls(np.ones(n_groups, dtype=np.int64), holders, always)
        return cls(*holders.merge_alike(), always)

    @property
    def n_groups(self) -> int:
        """Return the number of groups in one resample."""
        return int(self.sizes.sum())

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw `count` resamples and return the weights of the distinct rows, one resample per line."""
        kinds, n = len(self.sizes), self.n_groups
        if kinds * _BINOMIAL_COST < n:
            return self._spread(rng.multinomial(n, self.sizes / n, size=count).astype(np.float64))
        picks = rng.integers(n, size=(count, n))
        if (self.sizes != 1).any():
            picks = np.repeat(np.arange(kinds), self.sizes).take(picks)
        picks += kinds * np.arange(count)[:, np.newaxis]
        drawn = np.bincount(picks.ravel(), minlength=count * kinds).reshape(count, kinds)
        return self._spread(drawn.astype(np.float64))

    def _spread(self, drawn: Array) -> Array:
        weights = drawn if self.holders is None else self.holders.spread(drawn)
        weights += self.always
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class _RowHolders:
    """Groups that contain each distinct row, with counts: sorted by row, then by group."""

    group: IntArray
    """Rows of no group have the number after the last."""
    times: Array
    starts: IntArray
    """Where each distinct row starts."""
    n_groups: int

    @classmethod
    def of(cls, numbers: IntArray, starts: IntArray, *, n_groups: int) -> "_RowHolders":
        """Build the table of groups per distinct row from `numbers`, the group number of each sorted row.

        `starts` holds the index at which each distinct row starts.
        """
        rows = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(numbers)))
        held, times = np.unique(rows * (n_groups + 1) + numbers, return_counts=True)
        row, group = np.divmod(held, n_groups + 1)
        begins = np.flatnonzero(np.diff(row, prepend=-1))
        return cls(group, times.astype(np.float64), begins, n_groups)

    def spread(self, drawn: Array) -> Array:
        """Compute the weights of the distinct rows from the weights of the groups."""
        if self.group.max() == self.n_groups:
            drawn = np.pad(drawn, ((0, 0), (0, 1)))
        rows = drawn.take(self.group, axis=1)
        if self.times.max() > 1:
            rows *= self.times
        if len(self.starts) == len(self.group):
            return rows
        merged: Array = np.add.reduceat(rows, self.starts, axis=1)
        return merged

    def merge_alike(self) -> "tuple[IntArray, _RowHolders]":
        """Return the number of groups with equal rows, and the rows of each kind of group.

        A group is known by the sum of marks of its rows: two marks of 64 bits, drawn once for all.
        """
        row = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.group)))
        by_group = np.argsort(self.group, kind="stable")
        begins = np.searchsorted(self.group[by_group], np.arange(self.n_groups))
        ends = np.searchsorted(self.group[by_group], self.n_groups)
        rng, marks = np.random.default_rng(0), []
        for _ in range(2):
            mark = rng.integers(2**64, size=len(self.starts), dtype=np.uint64)[row]
            mark *= self.times.astype(np.uint64)
            marks.append(np.add.reduceat(mark[by_group][:ends], begins))
        order = np.lexsort(marks)
        differs = np.zeros(self.n_groups, np.bool_)
        for mark in marks:
            differs[1:] |= mark[order][1:] != mark[order][:-1]
        kind = np.empty(self.n_groups + 1, np.int64)
        kind[order] = np.cumsum(differs)
        n_kinds = int(kind[order[-1]]) + 1
        kind[-1] = n_kinds
        differs[0] = True
        stays = np.zeros(self.n_groups + 1, np.bool_)
        stays[-1] = True
        stays[order[differs]] = True
        return np.bincount(kind[:-1]), self._only(stays[self.group], row, kind, n_kinds)

    def _only(
        self, chosen: BoolArray, row: IntArray, kind: IntArray, n_kinds: int
    ) -> "_RowHolders":
        begins = np.flatnonzero(np.diff(row[chosen], prepend=-1))
        return _RowHolders(kind[self.group[chosen]], self.times[chosen], begins, n_kinds)


def count_chosen(chosen: BoolArray, starts: IntArray) -> Array:
    """Return the number of chosen rows per distinct row."""
    counts: Array = np.add.reduceat(chosen, starts, dtype=np.float64)
    return counts
