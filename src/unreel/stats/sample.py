"""Rows grouped by what is drawn together, ready to be drawn again and again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from unreel.core.cluster import Cluster
from unreel.core.errors import InvalidValueError
from unreel.stats.leaving_out import MOST_GROUPS, asked_groups, number

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Elements of one block of weights: a few temporaries of this size stay near the processor.
_BLOCK: Final = 2**15
# One binomial draw per kind costs about as much as this many single draws.
_BINOMIAL_COST: Final = 8
_NOBODY: Final = -1


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


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The scene and the creator of every row, by number."""

    scene: IntArray
    creator: IntArray
    """`_NOBODY` where no creator is known."""

    @classmethod
    def of(cls, clusters: "Clusters", n_rows: int) -> "Ties":
        """The ties of `n_rows` rows; without `clusters` every row is a scene of its own."""
        if isinstance(clusters, Ties):
            ties = clusters
        elif clusters is None:
            groups, places = asked_groups(), range(n_rows)
            scene = np.arange(n_rows) if groups is None else number(map(str, places), groups.scenes)
            ties = cls(scene, np.full(n_rows, _NOBODY))
        elif len(clusters) and isinstance(clusters[0], Cluster):
            scenes, creators = zip(*clusters, strict=True)
            ties = cls(_number_scenes(scenes), _number_creators(creators))
        else:
            scene = _number_scenes(np.asarray(clusters).tolist())
            ties = cls(scene, np.full(len(scene), _NOBODY))
        if ties.scene.shape != (n_rows,):
            msg = f"{n_rows} rows but {len(ties.scene)} clips. Name the clip of every row"
            raise InvalidValueError(msg)
        return ties

    def only(self, chosen: npt.NDArray[Any]) -> "Ties":
        """The ties of the rows at `chosen`, places or truth values."""
        return Ties(self.scene[chosen], self.creator[chosen])

    @property
    def n_scenes(self) -> int:
        """Different scenes."""
        return len(np.unique(self.scene))

    @property
    def n_creators(self) -> int:
        """Different creators."""
        return len(np.unique(self.creator[self.creator != _NOBODY]))


Clusters = Ties | Sequence[str | Cluster] | npt.NDArray[Any] | None
"""What every row is drawn with: its clip, or its scene and creator; `None` when no row is tied to another."""


def _number_scenes(labels: Sequence[str]) -> IntArray:
    groups = asked_groups()
    return _numbered(labels) if groups is None else number(labels, groups.scenes)


def _number_creators(labels: Sequence[str]) -> IntArray:
    groups = asked_groups()
    if groups is None:
        nobody = int("" in labels)  # it sorts before every name
        return _numbered(labels) - nobody
    known = number((label for label in labels if label), groups.creators)
    numbers = np.full(len(labels), _NOBODY)
    numbers[[bool(label) for label in labels]] = known
    return numbers


def _numbered(labels: Sequence[str]) -> IntArray:
    """Each label's place among all labels in order."""
    number = {label: place for place, label in enumerate(sorted(set(labels)))}
    return np.fromiter((number[label] for label in labels), np.int64, count=len(labels))


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Groups of rows that are drawn with replacement, as many as were observed."""

    sizes: IntArray
    """How many groups of each kind were observed."""
    holders: "_Holders | None"
    """Which kinds of group hold each distinct row; `None`: a group of kind i holds row i alone."""
    always: Array | float = 0.0
    """Weights of the distinct rows that are in every resample."""

    @classmethod
    def of(cls, group: IntArray, starts: IntArray) -> "Draw":
        """Draws of the groups of sorted rows, whose distinct ones start at `starts`; `_NOBODY` is never drawn."""
        drawn = group != _NOBODY
        labels, number = np.unique(group[drawn], return_inverse=True)
        always = 0.0 if drawn.all() else _count(~drawn, starts)
        if len(labels) == len(number):
            return cls(_count(drawn, starts).astype(np.int64), None, always)
        numbers = np.full(len(group), len(labels))
        numbers[drawn] = number
        ones = np.ones(len(labels), dtype=np.int64)
        return cls(ones, _Holders(numbers, starts, drawn_all=bool(drawn.all())), always)

    @property
    def n_groups(self) -> int:
        """Groups in one draw."""
        return int(self.sizes.sum())

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Weights of `count` resamples, one per line."""
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
class _Holders:
    """The group of every row, rows being sorted, and where each distinct row starts."""

    group: IntArray
    starts: IntArray
    drawn_all: bool
    """Whether every row belongs to a group; else those that do not have the number after the last."""

    def spread(self, drawn: Array) -> Array:
        """Weights of the distinct rows from those of the groups."""
        if not self.drawn_all:
            drawn = np.pad(drawn, ((0, 0), (0, 1)))
        rows = drawn.take(self.group, axis=1)
        if len(self.starts) == len(self.group):
            return rows
        merged: Array = np.add.reduceat(rows, self.starts, axis=1)
        return merged


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The distinct rows of a table, and the scenes and creators that hold them.

    A resample is a vector of weights: how often each distinct row occurs when whole scenes are drawn
    with replacement. A table of ratings from 1 to 5 costs twenty-five weights however long it is.
    The order in which rows came changes nothing.
    """

    columns: tuple[Array, ...]
    """The distinct rows, column by column, sorted by the first column, then the second, ..."""
    starts: IntArray
    """Where each distinct row starts among all rows, sorted so."""
    ties: Ties
    """The scene and the creator of every row, sorted so."""
    scenes: Draw

    @classmethod
    def of(cls, columns: Sequence[Array], clusters: Clusters = None) -> "Sample":
        """Group the rows of equally long `columns` by what they are drawn with."""
        order = np.lexsort(columns[::-1])
        rows = tuple(column[order] for column in columns)
        starts = np.flatnonzero(first_of_run(*rows))
        ties = Ties.of(clusters, len(order)).only(order)
        distinct = tuple(column[starts] for column in rows)
        return cls(distinct, starts, ties, Draw.of(ties.scene, starts))

    @property
    def n_clusters(self) -> int:
        """Scenes."""
        return self.scenes.n_groups

    @property
    def n_rows(self) -> int:
        """Rows, alike ones counted one by one."""
        return len(self.ties.scene)

    @property
    def n_free(self) -> float:
        """Scenes that would carry as much if all held equally many rows (Kish's effective size)."""
        rows = np.bincount(self.ties.scene)
        return float(rows.sum() ** 2 / (rows**2).sum())

    @property
    def observed(self) -> Array:
        """Weights of the rows as they came, shaped as one resample."""
        return np.diff(self.starts, append=self.n_rows)[np.newaxis].astype(np.float64)

    @property
    def block(self) -> int:
        """Resamples to draw at once, so that memory stays bounded."""
        return max(1, _BLOCK // max(1, self.n_rows))

    @property
    def cells(self) -> Draw:
        """Draws of what one creator made of one scene; real clips are in every resample."""
        scene, creator = self.ties.scene, self.ties.creator
        cell = scene * (creator.max() + 1) + creator
        return Draw.of(np.where(creator == _NOBODY, _NOBODY, cell), self.starts)

    @property
    def crossing(self) -> tuple[float, float, float]:
        """How far creators and scenes cross, from 0 to 1 (all with all), and how many of both cross."""
        made = self.ties.only(self.ties.creator != _NOBODY)
        n_cells, n_scenes, n_creators = self.cells.n_groups, made.n_scenes, made.n_creators
        shared = (n_cells / n_scenes - 1, n_creators - 1), (n_cells / n_creators - 1, n_scenes - 1)
        return min(part / max(1, most) for part, most in shared), n_creators, n_scenes

    def without_each(self, kind: Literal["scene", "creator", "cell"]) -> Iterator[Array]:
        """Weights with each of `MOST_GROUPS` groups left out, by number, one per line, in blocks."""
        scene, creator = self.ties.scene, self.ties.creator
        # A step that spreads the cells of a scene, and those of a creator, over all groups.
        numbers = {"scene": scene, "creator": creator, "cell": scene + 37 * creator}[kind]
        group = numbers % MOST_GROUPS
        if kind != "scene":
            group = np.where(creator == _NOBODY, _NOBODY, group)
        return self._without(group, np.arange(MOST_GROUPS))

    def without_creators(self) -> Iterator[Array]:
        """Weights with each creator left out, one per line, in blocks; of very many creators, some at a time."""
        _, place = np.unique(self.ties.creator, return_inverse=True)
        group = np.where(self.ties.creator == _NOBODY, _NOBODY, place % MOST_GROUPS)
        return self._without(group, np.unique(group[group != _NOBODY]))

    def _without(self, group: IntArray, left_out: IntArray) -> Iterator[Array]:
        for start in range(0, len(left_out), self.block):
            lines = left_out[start : start + self.block]
            yield np.stack([_count(group != line, self.starts) for line in lines])


def _count(chosen: BoolArray, starts: IntArray) -> Array:
    """How many of the chosen rows each distinct row stands for."""
    counts: Array = np.add.reduceat(chosen.astype(np.float64), starts)
    return counts


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
