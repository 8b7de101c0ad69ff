"""Rows grouped by clip, ready to be drawn again and again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unreel.core.errors import InvalidValueError

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Clusters = Sequence[str] | npt.NDArray[Any] | None
"""The clip of every row; `None` when every row is a clip of its own."""

# Elements of one block of weights: a few temporaries of this size stay near the processor.
_BLOCK: Final = 2**15
# One binomial draw per kind costs about as much as this many single draws.
_BINOMIAL_COST: Final = 8


def as_columns(*columns: npt.ArrayLike) -> tuple[Array, ...]:
    """The columns as float arrays of one length, or an error that says what is wrong with them."""
    arrays = tuple(np.asarray(column, dtype=np.float64) for column in columns)
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1 or len(shapes[0]) != 1:
        msg = f"columns must be flat and equally long, got shapes {shapes}. Align the rows"
        raise InvalidValueError(msg)
    if not all(np.isfinite(array).all() for array in arrays):
        msg = "a column holds NaN or infinity. Leave out rows without a value and count them"
        raise InvalidValueError(msg)
    return arrays


def as_clips(clusters: Clusters, n_rows: int) -> npt.NDArray[Any]:
    """The clip of each of `n_rows` rows, numbered when every row is a clip of its own."""
    clips = np.arange(n_rows) if clusters is None else np.asarray(clusters)
    if clips.shape != (n_rows,):
        msg = f"{n_rows} rows but clips of shape {clips.shape}. Name the clip of every row"
        raise InvalidValueError(msg)
    return clips


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The distinct rows of a table, and the clips that hold them.

    A resample is a vector of weights: how often each distinct row occurs when whole clips are drawn
    with replacement. A table of ratings from 1 to 5 costs twenty-five weights however long it is.
    The order in which rows came changes nothing.
    """

    columns: tuple[Array, ...]
    """The distinct rows, column by column, sorted by the first column, then the second, ..."""
    sizes: IntArray
    """How many clips of each kind were observed."""
    holders: "_Holders | None"
    """Which kinds of clip hold each distinct row; `None`: a clip of kind i holds row i alone."""

    @classmethod
    def of(cls, columns: Sequence[Array], clusters: Clusters = None) -> "Sample":
        """Group the rows of equally long `columns` by their clip."""
        order = np.lexsort(columns[::-1])
        rows = tuple(column[order] for column in columns)
        starts = np.flatnonzero(first_of_run(*rows))
        distinct = tuple(column[starts] for column in rows)
        labels, clip = np.unique(as_clips(clusters, len(order)), return_inverse=True)
        if len(labels) == len(order):
            return cls(distinct, np.diff(starts, append=len(order)), None)
        return cls(distinct, np.ones(len(labels), dtype=np.int64), _Holders(clip[order], starts))

    @property
    def n_clusters(self) -> int:
        """Clips."""
        return int(self.sizes.sum())

    @property
    def n_rows(self) -> int:
        """Rows, alike ones counted one by one."""
        return self.n_clusters if self.holders is None else len(self.holders.clip)

    @property
    def n_free(self) -> float:
        """Clips that would carry as much if all held equally many rows (Kish's effective size)."""
        if self.holders is None:
            return float(self.n_clusters)
        rows = np.bincount(self.holders.clip)
        return float(rows.sum() ** 2 / (rows**2).sum())

    @property
    def observed(self) -> Array:
        """Weights of the rows as they came, shaped as one resample."""
        return self._spread(self.sizes[np.newaxis].astype(np.float64))

    @property
    def block(self) -> int:
        """Resamples to draw at once, so that memory stays bounded."""
        return max(1, _BLOCK // max(1, self.n_rows))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Weights of `count` resamples, one per line."""
        kinds, n = len(self.sizes), self.n_clusters
        if kinds * _BINOMIAL_COST < n:
            return self._spread(rng.multinomial(n, self.sizes / n, size=count).astype(np.float64))
        picks = rng.integers(n, size=(count, n))
        if kinds < n:
            picks = np.repeat(np.arange(kinds), self.sizes).take(picks)
        picks += kinds * np.arange(count)[:, np.newaxis]
        drawn = np.bincount(picks.ravel(), minlength=count * kinds).reshape(count, kinds)
        return self._spread(drawn.astype(np.float64))

    def _spread(self, drawn: Array) -> Array:
        return drawn if self.holders is None else self.holders.spread(drawn)


@dataclass(frozen=True, slots=True, eq=False)
class _Holders:
    """The clip of every row, rows being sorted, and where each distinct row starts."""

    clip: IntArray
    starts: IntArray

    def spread(self, drawn: Array) -> Array:
        """Weights of the distinct rows from those of the clips."""
        rows = drawn.take(self.clip, axis=1)
        if len(self.starts) == len(self.clip):
            return rows
        merged: Array = np.add.reduceat(rows, self.starts, axis=1)
        return merged


def weighted_sum(weights: Array, column: Array) -> Array:
    """Sum of `column` under each line of `weights`.

    Not a matrix product: the threads of a BLAS spin against other processes, which made 100,000 rows
    five times slower on a busy machine, and its sums differ from one machine to the next.
    """
    total: Array = np.einsum("ri,i->r", weights, column)
    return total


def first_of_run(*columns: Array) -> npt.NDArray[np.bool_]:
    """True where sorted rows differ from the row before; the first row always does."""
    differs = np.ones(len(columns[0]), dtype=np.bool_)
    differs[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return differs
