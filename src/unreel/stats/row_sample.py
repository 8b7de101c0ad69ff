"""Rows grouped by clusters, prepared for repeated resampling."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError
from unreel.stats.clusters import (
    NOBODY,
    Array,
    BoolArray,
    ClusterIds,
    ClusterResampler,
    Clusters,
    IntArray,
    count_chosen_rows,
    count_distinct_values,
)
from unreel.stats.jackknife_values import MAX_GROUPS

__all__ = (
    "Array",
    "BoolArray",
    "ClusterIds",
    "ClusterResampler",
    "Clusters",
    "DistinctRowIndices",
    "IntArray",
    "JackknifeGroupCounts",
    "RowSample",
    "find_run_starts",
    "require_float_columns",
    "weighted_sum",
)

# Number of weights in one block: a few temporaries of this size fit into the processor's cache.
_BLOCK = 2**15
# Maximum integer that is ranked by counting, in one byte each.
_FEW = 255


def require_float_columns(*columns: npt.ArrayLike) -> tuple[Array, ...]:
    """Return the columns as float arrays of one length.

    Raise `InvalidValueError` if the columns are not flat, differ in length, or contain NaN or
    infinity.
    """
    arrays = tuple(np.asarray(column, dtype=np.float64) for column in columns)
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1 or len(shapes[0]) != 1:
        raise InvalidValueError(
            f"columns must be flat and equally long, got shapes {shapes}. Align the rows"
        )
    if not all(np.isfinite(array).all() for array in arrays):
        raise InvalidValueError(
            "a column holds NaN or infinity. Leave out rows without a value and count them"
        )
    return arrays


@dataclass(frozen=True, slots=True, eq=False)
class RowSample:
    """Distinct rows of a table, with the scenes and creators that contain the rows.

    A resample is a vector of weights: how often each distinct row occurs when whole scenes are
    drawn with replacement. A table with two ratings from 1 to 5 needs 25 weights, whatever its
    length. The order of the rows has no effect.
    """

    columns: tuple[Array, ...]
    """Distinct rows, column by column, sorted by the first column, then the second, ..."""
    starts: IntArray
    """Index at which each distinct row starts among all rows in sorted order."""
    ties: ClusterIds
    """Scene and creator of every row in sorted order."""
    scenes: ClusterResampler

    @classmethod
    def of(cls, columns: Iterable[npt.NDArray[Any]], clusters: Clusters = None) -> "RowSample":
        """Build the sample of equally long `columns`, which may be an iterator, with their `clusters`."""
        codes = DistinctRowIndices.of(columns)
        order = np.argsort(codes.code, kind="stable")
        starts = np.cumsum(codes.counts) - codes.counts
        ties = ClusterIds.of(clusters, len(order)).only(order)
        return cls(codes.distinct, starts, ties, ClusterResampler.of(ties.scene, starts))

    @property
    def n_clusters(self) -> int:
        """Return the number of scenes."""
        return self.scenes.n_groups

    @property
    def n_rows(self) -> int:
        """Return the number of rows, including duplicates."""
        return len(self.ties.scene)

    @property
    def n_free(self) -> float:
        """Return Kish's effective number of scenes: as many equal scenes give the same information."""
        return self.ties.n_free

    @property
    def observed(self) -> Array:
        """Return the weights of the observed rows, in the shape of one resample."""
        return np.diff(self.starts, append=self.n_rows)[np.newaxis].astype(np.float64)

    @property
    def block(self) -> int:
        """Return the number of resamples to draw at once, so that memory stays bounded."""
        return max(1, _BLOCK // max(1, self.n_rows))

    @property
    def cells(self) -> ClusterResampler:
        """Return a resampler of cells, one scene by one creator; real clips are in every resample."""
        is_real = self.ties.creator == NOBODY
        return ClusterResampler.of(
            np.where(is_real, NOBODY, _compute_cell_ids(self.ties)), self.starts
        )

    @property
    def crossing(self) -> tuple[float, float, float]:
        """Return the degree to which creators and scenes cross (1: all made all; 0: none), and their numbers."""
        generated = self.ties.only(self.ties.creator != NOBODY)
        n_cells, n_scenes, n_creators = (
            count_distinct_values(_compute_cell_ids(generated)),
            generated.n_scenes,
            generated.n_creators,
        )
        shared = (n_cells / n_scenes - 1, n_creators - 1), (n_cells / n_creators - 1, n_scenes - 1)
        return min(part / max(1, limit) for part, limit in shared), n_creators, n_scenes

    def group_counts(self, kind: Literal["scene", "creator", "cell"]) -> "JackknifeGroupCounts":
        """Count the distinct rows in each jackknife group of scenes, of creators, or of both (`cell`)."""
        scene, creator = self.ties.scene, self.ties.creator
        # The factor 37 spreads the cells of a scene, and those of a creator, over all groups.
        numbers = {"scene": scene, "creator": creator, "cell": scene + 37 * creator}[kind]
        group = numbers % MAX_GROUPS
        if kind != "scene":
            group = np.where(creator == NOBODY, MAX_GROUPS, group)
        return JackknifeGroupCounts.of(group, self.starts, block=self.block)

    def without_creators(self) -> Iterator[Array]:
        """Yield blocks of weights that leave out a creator per line, or several if there are very many."""
        _, index = np.unique(self.ties.creator, return_inverse=True)
        group = np.where(self.ties.creator == NOBODY, NOBODY, index % MAX_GROUPS)
        return self._without(group, np.unique(group[group != NOBODY]))

    def _without(self, group: IntArray, left_out: IntArray) -> Iterator[Array]:
        for start in range(0, len(left_out), self.block):
            lines = left_out[start : start + self.block]
            yield np.stack([count_chosen_rows(group != line, self.starts) for line in lines])


@dataclass(frozen=True, slots=True, eq=False)
class JackknifeGroupCounts:
    """Number of times that each jackknife group contains each distinct row."""

    observed: Array
    """Weights of the distinct rows with all groups, shaped as one resample."""
    row: npt.NDArray[np.int32]
    """Indices of the distinct rows in each group, group by group."""
    times: npt.NDArray[np.int32]
    """Number of times that the group contains the row, for each entry of `row`."""
    starts: IntArray
    """Index in `row` at which each group starts, and the end of the last group."""
    block: int
    """Number of lines of weights in one block."""

    @classmethod
    def of(cls, group: npt.NDArray[Any], starts: IntArray, *, block: int) -> "JackknifeGroupCounts":
        """Count sorted rows by `group`; distinct rows begin at `starts`. Group `MAX_GROUPS` stays."""
        counts = np.diff(starts, append=len(group))
        key = np.repeat(np.arange(len(starts)), counts)
        key += group.astype(np.int64) * len(starts)
        n_keys = (MAX_GROUPS + 1) * len(starts)
        if n_keys > 4 * len(key):
            keys, times = np.unique(key, return_counts=True)
        else:
            times = np.bincount(key, minlength=n_keys)
            keys = np.flatnonzero(times)
            times = times[keys]
        first = np.searchsorted(keys, np.arange(MAX_GROUPS + 1) * len(starts))
        return cls(
            counts[np.newaxis].astype(np.float64),
            (keys % len(starts))[: first[-1]].astype(np.int32),
            times[: first[-1]].astype(np.int32),
            first,
            block,
        )

    def without_each(self) -> Iterator[Array]:
        """Yield blocks of weights with each group left out, one group per line."""
        for start in range(0, MAX_GROUPS, self.block):
            lines = range(start, min(start + self.block, MAX_GROUPS))
            weights = np.repeat(self.observed, len(lines), axis=0)
            for line, group in enumerate(lines):
                rows = slice(self.starts[group], self.starts[group + 1])
                weights[line, self.row[rows]] -= self.times[rows]
            yield weights


@dataclass(frozen=True, slots=True, eq=False)
class DistinctRowIndices:
    """Index of each row among the distinct rows, computed column by column to save memory."""

    code: npt.NDArray[Any]
    """Index of every row among the distinct rows, in the smallest type that fits."""
    distinct: tuple[Array, ...]
    counts: IntArray
    """Number of rows per distinct row."""

    @classmethod
    def of(cls, columns: Iterable[npt.NDArray[Any]]) -> "DistinctRowIndices":
        """Build the row codes of equally long `columns`, sorted by the first column, then the second, ..."""
        code, counts = None, np.zeros(0, np.int64)
        distinct: tuple[Array, ...] = ()
        for column in columns:
            values, rank = _rank_distinct_values(column)
            if code is not None:
                rank = code.astype(np.int64) * len(values) + rank
            codes, code, counts = _compact_codes(rank, limit=max(1, len(counts)) * len(values))
            before, last = np.divmod(codes, len(values))
            distinct = (*(known[before] for known in distinct), values[last])
        if code is None:
            raise InvalidValueError("a sample needs a column. Give it one")
        return cls(code, distinct, counts)

    @property
    def first(self) -> IntArray:
        """Return the index of the first occurrence of each distinct row."""
        first = np.empty(len(self.counts), np.int64)
        first[self.code[::-1]] = np.arange(len(self.code))[::-1]
        return first


def _compute_cell_ids(cluster_ids: ClusterIds) -> IntArray:
    """Return for each row the number of its cell: the combination of scene and creator."""
    return (
        cluster_ids.scene.astype(np.int64) * (int(cluster_ids.creator.max()) + 1)
        + cluster_ids.creator
    )


def _rank_distinct_values(column: npt.NDArray[Any]) -> tuple[Array, npt.NDArray[Any]]:
    """Return the sorted distinct values of `column`, and the index of each row's value in them."""
    if len(column) and column.min() >= 0 and column.max() <= _FEW:
        small = column.astype(np.uint8)
        if (small == column).all():
            occurs = np.bincount(small) > 0
            index = (np.cumsum(occurs) - 1).astype(np.uint8)
            return np.flatnonzero(occurs).astype(np.float64), index[small]
    values, rank = np.unique(column, return_inverse=True)
    return values.astype(np.float64), rank


def _compact_codes(
    codes: npt.NDArray[Any], *, limit: int
) -> tuple[IntArray, npt.NDArray[Any], IntArray]:
    """Return the sorted distinct codes below `limit`, each row's index in them, and their counts."""
    if limit > 4 * len(codes):
        distinct, index, counts = np.unique(codes, return_inverse=True, return_counts=True)
        return distinct, index.astype(_select_code_dtype(len(distinct))), counts
    counts = np.bincount(codes, minlength=limit)
    distinct = np.flatnonzero(counts)
    index = np.cumsum(counts > 0) - 1
    return distinct, index.astype(_select_code_dtype(len(distinct)))[codes], counts[distinct]


def _select_code_dtype(n: int) -> npt.DTypeLike:
    """Return the integer type for `n` codes: 16 bits if they fit, because they sort in one pass."""
    return np.uint16 if n < 1 << 16 else np.int32


def weighted_sum(weights: Array, column: Array) -> Array:
    """Compute the sum of `column` under each line of `weights`.

    A matrix product is not used: the threads of a BLAS compete with other processes, which made
    100,000 rows five times slower on a busy machine, and its sums differ between machines.
    """
    total: Array = np.einsum("ri,i->r", weights, column)
    return total


def find_run_starts(*columns: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the sorted rows: true for the first row of each run of equal rows."""
    differs = np.ones(len(columns[0]), dtype=np.bool_)
    differs[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return differs
