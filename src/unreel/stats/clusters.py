"""Scene and creator of every row as numbers, resampling of groups of rows, and connected groups of names."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.core.estimate import RowCluster
from unreel.stats.jackknife_values import get_jackknife_groups
from unreel.stats.label_digests import (
    DIGEST_BYTES,
    LabelDigestList,
    Numbers,
    digest_label,
    rank_digests,
)

NOBODY = -1
MANY = 1 << 17
"""Maximum number of labels that are stored as text, with numbers in their sorted order. For more labels, 16-byte
digests are stored: the order has no effect, see `stats.row_sample`."""


class LabelNumbering:
    """Collector that gives each label an integer, in bounded memory.

    Args:
        known: Existing numbers, which are extended; `None` numbers labels in sorted order.
        max_labels: Maximum number of distinct labels that are stored as text.
    """

    def __init__(self, known: dict[str, int] | None = None, *, max_labels: float = MANY) -> None:
        self._is_fixed = known is not None
        self._known: dict[str, int] = {} if known is None else known
        self._max_labels = float("inf") if self._is_fixed else max_labels
        self._numbers = array("i")
        self._digests = bytearray()

    def add(self, label: str) -> None:
        """Add the label of the next row."""
        if self._digests:
            self._digests += digest_label(label)
            return
        self._numbers.append(self._known.setdefault(label, len(self._known)))
        if len(self._known) > self._max_labels:
            digests = np.frombuffer(b"".join(map(digest_label, self._known)), f"V{DIGEST_BYTES}")
            self._digests += digests[self.met].tobytes()
            self._known, self._numbers = {}, array("i")

    @property
    def met(self) -> Numbers:
        """Return the label number of every row; labels are numbered in order of first occurrence."""
        return np.frombuffer(self._numbers, np.int32)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels by number; empty if the labels are too many to keep in memory."""
        return tuple(self._known if self._is_fixed else sorted(self._known))

    def numbers(self) -> Numbers:
        """Return rows' label numbers in sorted order, as in `known`, or by digest if they are too many."""
        if self._digests:
            return rank_digests(self._digests)
        if self._is_fixed or not self._known:
            return self.met
        rank = np.empty(len(self._known), np.int32)
        rank[[self._known[name] for name in self.names]] = np.arange(len(rank))
        return rank[self.met]


class SharedLabelNumbering:
    """Collector that gives each label its number in `known_digests`, shared by all compared sets of rows."""

    def __init__(self, known_digests: LabelDigestList) -> None:
        self._known = known_digests
        self._digests = bytearray()

    def add(self, label: str) -> None:
        """Add the label of the next row."""
        self._digests += digest_label(label)

    def numbers(self) -> Numbers:
        """Return the number of every row's label."""
        return self._known.number(self._digests)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterIds:
    """Scene and creator of every row, as numbers."""

    scene: Numbers
    creator: Numbers
    """Number of the creator of each row; `NOBODY` (-1) if unknown."""
    names: tuple[str, ...] = ()
    """Names of the creators, by number."""

    @classmethod
    def of(cls, clusters: "Clusters", n_rows: int) -> "ClusterIds":
        """Return the scene and creator of `n_rows` rows; without `clusters` every row is its own scene."""
        if isinstance(clusters, ClusterIds):
            ties = clusters
        elif clusters is None and get_jackknife_groups() is None:
            ties = cls(np.arange(n_rows, dtype=np.int32), np.full(n_rows, NOBODY, np.int32))
        elif clusters is None:
            ties = build_cluster_ids(map(RowCluster, map(str, range(n_rows))))
        elif len(clusters) and isinstance(clusters[0], RowCluster):
            ties = build_cluster_ids(clusters)
        else:
            ties = build_cluster_ids(map(RowCluster, np.asarray(clusters).tolist()))
        if ties.scene.shape != (n_rows,):
            raise InvalidValueError(
                f"{n_rows} rows but {len(ties.scene)} clips. Name the clip of every row"
            )
        return ties

    def only(self, chosen: npt.NDArray[Any]) -> "ClusterIds":
        """Return the scene and creator of the rows in `chosen`, which contains indices or booleans."""
        return ClusterIds(self.scene[chosen], self.creator[chosen], self.names)

    @property
    def n_scenes(self) -> int:
        """Return the number of distinct scenes."""
        return count_distinct_values(self.scene)

    @property
    def n_creators(self) -> int:
        """Return the number of distinct creators."""
        return count_distinct_values(self.creator[self.creator != NOBODY])

    @property
    def n_free(self) -> float:
        """Return Kish's effective number of scenes: as many equal scenes give the same information."""
        rows = np.bincount(self.scene)
        return float(rows.sum() ** 2 / (rows**2).sum())


Clusters = ClusterIds | Sequence[str | RowCluster] | npt.NDArray[Any] | None
"""Cluster of every row: the clip, or the scene and creator; `None` if all rows are independent."""


class ClusterIdBuilder:
    """Collector of the scene and creator of every row, one row at a time."""

    def __init__(self) -> None:
        groups = get_jackknife_groups()
        self._scenes = LabelNumbering() if groups is None else SharedLabelNumbering(groups.scenes)
        self._creators = LabelNumbering(
            None if groups is None else groups.creators, max_labels=float("inf")
        )
        self._has_creator = bytearray()

    def add(self, scene: str, creator: str) -> None:
        """Add the scene and creator of the next row; `creator` is "" if it has none."""
        self._scenes.add(scene)
        self._has_creator.append(bool(creator))
        if creator:
            self._creators.add(creator)

    def ties(self) -> ClusterIds:
        """Return the scene and creator numbers of all rows that were added."""
        has_creator = np.frombuffer(self._has_creator, np.bool_)
        creator = np.full(len(has_creator), NOBODY, np.int32)
        creator[has_creator] = self._creators.numbers()
        return ClusterIds(self._scenes.numbers(), creator, self._creators.names)


def build_cluster_ids(clusters: Iterable[Any]) -> ClusterIds:
    """Build the cluster ids of rows from `clusters`: the scene and creator of each row."""
    builder = ClusterIdBuilder()
    for scene, creator in clusters:
        builder.add(scene, creator)
    return builder.ties()


def count_distinct_values(numbers: npt.NDArray[Any]) -> int:
    """Return the number of distinct values in `numbers`, all of which are 0 or more."""
    if len(numbers) == 0:
        return 0
    if int(numbers.max()) < 4 * len(numbers):
        return int(np.count_nonzero(np.bincount(numbers)))
    return len(np.unique(numbers))


Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# One binomial draw per kind costs about as much as this number of single draws.
_BINOMIAL_COST = 8


@dataclass(frozen=True, slots=True, eq=False)
class ClusterResampler:
    """Resampler that draws groups of rows, such as scenes, with replacement, as many as were observed."""

    sizes: IntArray
    """Number of observed groups of each kind."""
    holders: "_RowGroupCounts | None"
    """Kinds of group that contain each distinct row; `None` if groups of kind i contain only row i."""
    always: Array | float = 0.0
    """Weights of the distinct rows that are in every resample."""

    @classmethod
    def of(cls, group: npt.NDArray[Any], starts: IntArray) -> "ClusterResampler":
        """Build the resampler of sorted rows by `group`; distinct rows begin at `starts`. Group -1 stays."""
        is_grouped = group != NOBODY
        labels = group[is_grouped]
        always = 0.0 if len(labels) == len(group) else count_chosen_rows(~is_grouped, starts)
        n_groups = count_distinct_values(labels)
        if n_groups == len(labels):
            return cls(count_chosen_rows(is_grouped, starts).astype(np.int64), None, always)
        numbers = np.full(len(group), n_groups)
        numbers[is_grouped] = np.unique(labels, return_inverse=True)[1]
        holders = _RowGroupCounts.of(numbers, starts, n_groups=n_groups)
        if n_groups <= MANY:
            return cls(np.ones(n_groups, dtype=np.int64), holders, always)
        return cls(*holders.merge_equal(), always)

    @property
    def n_groups(self) -> int:
        """Return the number of groups in one resample."""
        return int(self.sizes.sum())

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Draw `count` resamples; return the weight of each distinct row, one resample per line."""
        kinds, n = len(self.sizes), self.n_groups
        if kinds * _BINOMIAL_COST < n:
            return self._spread(rng.multinomial(n, self.sizes / n, size=count).astype(np.float64))
        picks = rng.integers(n, size=(count, n))
        if (self.sizes != 1).any():
            picks = np.repeat(np.arange(kinds), self.sizes).take(picks)
        picks += kinds * np.arange(count)[:, np.newaxis]
        counts = np.bincount(picks.ravel(), minlength=count * kinds).reshape(count, kinds)
        return self._spread(counts.astype(np.float64))

    def _spread(self, counts: Array) -> Array:
        weights = counts if self.holders is None else self.holders.spread(counts)
        weights += self.always
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class _RowGroupCounts:
    """Counts of each distinct row in each group of rows; sorted by row, then by group."""

    group: IntArray
    """Group of each entry; rows without a group have the number `n_groups`."""
    times: Array
    starts: IntArray
    """Index of the first entry of each distinct row."""
    n_groups: int

    @classmethod
    def of(cls, numbers: IntArray, starts: IntArray, *, n_groups: int) -> "_RowGroupCounts":
        """Build the groups per distinct row, given sorted group `numbers` and the `starts` of distinct rows."""
        rows = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(numbers)))
        cells, times = np.unique(rows * (n_groups + 1) + numbers, return_counts=True)
        row, group = np.divmod(cells, n_groups + 1)
        begins = np.flatnonzero(np.diff(row, prepend=-1))
        return cls(group, times.astype(np.float64), begins, n_groups)

    def spread(self, weights: Array) -> Array:
        """Compute the weights of the distinct rows from the weights of the groups."""
        if self.group.max() == self.n_groups:
            weights = np.pad(weights, ((0, 0), (0, 1)))
        rows = weights.take(self.group, axis=1)
        if self.times.max() > 1:
            rows *= self.times
        if len(self.starts) == len(self.group):
            return rows
        merged: Array = np.add.reduceat(rows, self.starts, axis=1)
        return merged

    def merge_equal(self) -> "tuple[IntArray, _RowGroupCounts]":
        """Merge groups of the same rows, by a 128-bit sum of row hashes; return size and rows per kind."""
        row = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.group)))
        by_group = np.argsort(self.group, kind="stable")
        begins = np.searchsorted(self.group[by_group], np.arange(self.n_groups))
        ends = np.searchsorted(self.group[by_group], self.n_groups)
        rng, hashes = np.random.default_rng(0), []
        for _ in range(2):
            row_hash = rng.integers(2**64, size=len(self.starts), dtype=np.uint64)[row]
            row_hash *= self.times.astype(np.uint64)
            hashes.append(np.add.reduceat(row_hash[by_group][:ends], begins))
        order = np.lexsort(hashes)
        differs = np.zeros(self.n_groups, np.bool_)
        for row_hash in hashes:
            differs[1:] |= row_hash[order][1:] != row_hash[order][:-1]
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
    ) -> "_RowGroupCounts":
        begins = np.flatnonzero(np.diff(row[chosen], prepend=-1))
        return _RowGroupCounts(kind[self.group[chosen]], self.times[chosen], begins, n_kinds)


def count_chosen_rows(chosen: BoolArray, starts: IntArray) -> Array:
    """Return, for each distinct row, how many of its occurrences are in the mask `chosen`."""
    counts: Array = np.add.reduceat(chosen, starts, dtype=np.float64)
    return counts


def group_connected_names(
    names: Sequence[str], pairs: Iterable[tuple[str, str]]
) -> list[list[str]]:
    """Group `names` that `pairs` connect, directly or through others; the order of names is kept."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    index = {name: number for number, name in enumerate(names)}
    ends = np.array([(index[first], index[second]) for first, second in pairs], np.intp)
    rows, columns = ends.reshape(-1, 2).T
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(len(names),) * 2)
    _, labels = connected_components(graph, directed=False)
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for name, label in zip(names, labels.tolist(), strict=True):
        groups[label].append(name)
    return list(groups.values())
