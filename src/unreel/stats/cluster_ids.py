"""Scene and creator index of every row, collected row by row."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unreel.core.cluster import RowCluster
from unreel.core.errors import InvalidValueError
from unreel.stats.jackknife_values import get_requested_groups
from unreel.stats.label_digests import (
    DIGEST_BYTES,
    LabelDigests,
    Numbers,
    digest_label,
    rank_digests,
)

NOBODY: Final = -1
MANY: Final = 1 << 17
"""Maximum number of labels in memory, numbered in their order. Of more, 16 bytes each are stored:
their order has no effect, see `stats.sample`.
"""


class LabelNumbers:
    """Gives every label a number, and holds little of each.

    Args:
        known: numbers that stand already, and are added to; `None`: labels are numbered in their order.
        most: different labels that are held as they are.
    """

    def __init__(self, known: dict[str, int] | None = None, *, most: float = MANY) -> None:
        self._stand = known is not None
        self._known: dict[str, int] = {} if known is None else known
        self._most = float("inf") if self._stand else most
        self._numbers = array("i")
        self._digests = bytearray()

    def add(self, label: str) -> None:
        """Add the label of the next row."""
        if self._digests:
            self._digests += digest_label(label)
            return
        self._numbers.append(self._known.setdefault(label, len(self._known)))
        if len(self._known) > self._most:
            held = np.frombuffer(b"".join(map(digest_label, self._known)), f"V{DIGEST_BYTES}")
            self._digests += held[self.met].tobytes()
            self._known, self._numbers = {}, array("i")

    @property
    def met(self) -> Numbers:
        """Return the label number of every row; labels are numbered in order of first occurrence."""
        return np.frombuffer(self._numbers, np.int32)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels by number; empty if the labels are too many to keep in memory."""
        return tuple(self._known if self._stand else sorted(self._known))

    def numbers(self) -> Numbers:
        """Return the label number of every row."""
        if self._digests:
            return rank_digests(self._digests)
        if self._stand or not self._known:
            return self.met
        place = np.empty(len(self._known), np.int32)
        place[[self._known[name] for name in self.names]] = np.arange(len(place))
        return place[self.met]


class SharedLabels:
    """Gives every label the number that it has among `known`, labels of all sets of rows that are compared."""

    def __init__(self, known: LabelDigests) -> None:
        self._known = known
        self._digests = bytearray()

    def add(self, label: str) -> None:
        """Add the label of the next row."""
        self._digests += digest_label(label)

    def numbers(self) -> Numbers:
        """Return the number of every row's label."""
        return self._known.number(self._digests)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterIds:
    """The scene and the creator of every row, by number."""

    scene: Numbers
    creator: Numbers
    """`NOBODY` (-1) if the creator is unknown."""
    names: tuple[str, ...] = ()
    """Of the creators, by number."""

    @classmethod
    def of(cls, clusters: "Clusters", n_rows: int) -> "ClusterIds":
        """Return the scene and creator of `n_rows` rows; without `clusters` every row is its own scene."""
        if isinstance(clusters, ClusterIds):
            ties = clusters
        elif clusters is None and get_requested_groups() is None:
            ties = cls(np.arange(n_rows, dtype=np.int32), np.full(n_rows, NOBODY, np.int32))
        elif clusters is None:
            ties = build_cluster_ids(map(RowCluster, map(str, range(n_rows))))
        elif len(clusters) and isinstance(clusters[0], RowCluster):
            ties = build_cluster_ids(clusters)
        else:
            ties = build_cluster_ids(map(RowCluster, np.asarray(clusters).tolist()))
        if ties.scene.shape != (n_rows,):
            msg = f"{n_rows} rows but {len(ties.scene)} clips. Name the clip of every row"
            raise InvalidValueError(msg)
        return ties

    def only(self, chosen: npt.NDArray[Any]) -> "ClusterIds":
        """Return the scene and creator of the rows in `chosen`, which holds indices or booleans."""
        return ClusterIds(self.scene[chosen], self.creator[chosen], self.names)

    @property
    def n_scenes(self) -> int:
        """Return the number of distinct scenes."""
        return count_kinds(self.scene)

    @property
    def n_creators(self) -> int:
        """Return the number of distinct creators."""
        return count_kinds(self.creator[self.creator != NOBODY])

    @property
    def n_free(self) -> float:
        """Return Kish's effective number of scenes.

        It is the number of scenes with equally many rows that would give the same information.
        """
        rows = np.bincount(self.scene)
        return float(rows.sum() ** 2 / (rows**2).sum())


Clusters = ClusterIds | Sequence[str | RowCluster] | npt.NDArray[Any] | None
"""What every row is drawn with: its clip, or its scene and creator; `None` when no row is tied to another."""


class ClusterIdBuilder:
    """Collector of the scene and creator of every row, one row at a time."""

    def __init__(self) -> None:
        groups = get_requested_groups()
        self._scenes = LabelNumbers() if groups is None else SharedLabels(groups.scenes)
        self._creators = LabelNumbers(
            None if groups is None else groups.creators, most=float("inf")
        )
        self._made = bytearray()

    def add(self, scene: str, creator: str) -> None:
        """Return the cluster of the next row; "" if it has no creator."""
        self._scenes.add(scene)
        self._made.append(bool(creator))
        if creator:
            self._creators.add(creator)

    def ties(self) -> ClusterIds:
        """Return the scene and creator of all added rows."""
        made = np.frombuffer(self._made, np.bool_)
        creator = np.full(len(made), NOBODY, np.int32)
        creator[made] = self._creators.numbers()
        return ClusterIds(self._scenes.numbers(), creator, self._creators.names)


def build_cluster_ids(clusters: Iterable[Any]) -> ClusterIds:
    """Build the cluster ids of rows from `clusters`: the scene and creator of each row."""
    tying = ClusterIdBuilder()
    for scene, creator in clusters:
        tying.add(scene, creator)
    return tying.ties()


def count_kinds(numbers: npt.NDArray[Any]) -> int:
    """Return the number of distinct values in `numbers`, none below 0."""
    if len(numbers) == 0:
        return 0
    if int(numbers.max()) < 4 * len(numbers):
        return int(np.count_nonzero(np.bincount(numbers)))
    return len(np.unique(numbers))
