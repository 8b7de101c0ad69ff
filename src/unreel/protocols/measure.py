"""Figures of a scorecard: percentages by clip, with their coverage."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.verdict import Unparsed
from unreel.protocols.formulas import PERCENT
from unreel.protocols.protocol import ScoredQuestion
from unreel.stats.bootstrap import StatisticLimits, bootstrap, bootstrap_mean
from unreel.stats.cluster_ids import NOBODY
from unreel.stats.proportion import WeightedShare, estimate_proportion, sum_shares
from unreel.stats.resampling import Statistic, are_independent
from unreel.stats.sample import (
    Array,
    BoolArray,
    ClusterIds,
    Clusters,
    RowCodes,
    RowSample,
    weighted_sum,
)

AnyArray = npt.NDArray[Any]
_BOUNDS: Final = (0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedMean:
    """One mean among several that a figure adds up: `factor` times the mean of its values, from 0 to 1."""

    name: str
    """What it is the mean of, for the reason why a figure is unmeasured."""
    factor: float
    values: Array
    """One per row; undefined unless `held`."""
    held: BoolArray
    """Which rows are part of this mean."""
    creator: str = ""
    """The creator whose figure it is, where a figure is the mean over creators: with the creator's clips,
    its parts are drawn or left out."""

    @classmethod
    def of(
        cls, name: str, factor: float, values: Sequence[float | None], creator: str = ""
    ) -> "WeightedMean":
        """Build the mean over the rows whose value is not `None`."""
        column = np.array(values, dtype=np.float64)
        held = ~np.isnan(column)
        return cls(name, factor, np.where(held, column, 0.0), held, creator)

    @property
    def is_empty(self) -> bool:
        """Return whether this mean has no rows."""
        return not self.held.any()

    def at(self, chosen: BoolArray) -> "WeightedMean":
        """Return the same mean, restricted to the chosen rows."""
        return replace(self, values=self.values[chosen], held=self.held[chosen])


def percent(measured: Measured) -> Measured:
    """Convert a share to a percentage."""
    return measured.scaled(PERCENT) if isinstance(measured, Estimate) else measured


def mean_percent(
    values: Sequence[float] | Array | BoolArray, *, clips: Clusters, seed: int
) -> Measured:
    """Compute the mean of `values` (0 to 1) in percent, with a confidence interval.

    Rows of one clip or one cluster are resampled together. Plain shares of independent clips get
    the mid-P interval; all other values get a bootstrap by clip.
    """
    column = np.asarray(values, dtype=np.float64)
    if not len(column):
        return Unmeasured("no rows")
    ties = ClusterIds.of(clips, len(column))
    if _is_plain(column) and are_independent(ties, len(column)):
        return percent(estimate_proportion(int(column.sum()), len(column)))
    return percent(bootstrap_mean(column, seed=seed, clusters=ties, bounds=_BOUNDS))


def sum_percent(parts: Sequence[WeightedMean], *, clips: Clusters, seed: int) -> Measured:
    """Sum of several means in percent, each with its factor; `clips` names the clip of every row.

    Right or wrong answers about independent clips are shares, whose doubts add up; all else is drawn
    again by clip, all parts at once, so that parts that share clips may lean on each other.
    """
    if not parts:
        return Unmeasured("there is nothing to compare")
    for part in parts:
        if part.is_empty:
            return Unmeasured(f"no valid answer for {part.name}")
    ties = ClusterIds.of(clips, len(parts[0].values))
    # Who made the clips of no part is nothing to these means.
    held = reduce(np.logical_or, (part.held for part in parts))
    if not held.all():
        parts, ties = [part.at(held) for part in parts], ties.only(held)
    if len(parts) == 1 and parts[0].factor == 1:
        return mean_percent(parts[0].values, clips=ties, seed=seed)
    if _are_independent_shares(parts, ties):
        return percent(sum_shares(_group_into_strata(parts)))
    there = {ties.names[number] for number in np.unique(ties.creator) if number != NOBODY}
    creators = sorted({part.creator for part in parts} & there)
    sample = RowSample.of(_iter_part_columns(parts, ties, creators), ties)
    limits = StatisticLimits(
        sum(min(0.0, part.factor) for part in parts),
        sum(max(0.0, part.factor) for part in parts),
        min(ties.only(part.held).n_scenes for part in parts),
    )
    statistic = _sum_of_means(sample, parts, creators)
    return percent(bootstrap(statistic, sample, seed=seed, limits=limits))


def _is_plain(values: Array) -> bool:
    """Return whether each value is 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def _are_independent_shares(parts: Sequence[WeightedMean], ties: ClusterIds) -> bool:
    """Return whether every row is an independent clip that is right or wrong, equal in all its parts."""
    if not are_independent(ties, len(ties.scene)):
        return False
    right = np.zeros(len(ties.scene), np.bool_)
    wrong = right.copy()
    for part in parts:
        if not _is_plain(part.values[part.held]):
            return False
        right |= part.held & (part.values == 1)
        wrong |= part.held & (part.values == 0)
    return not (right & wrong).any()


def _group_into_strata(parts: Sequence[WeightedMean]) -> list[WeightedShare]:
    """Group the rows by the parts that contain them; return one independent weighted share per group.

    The sum of the shares equals the sum of the parts.
    """
    sizes = [int(part.held.sum()) for part in parts]
    codes = RowCodes.of(part.held for part in parts)
    right = np.zeros(len(codes.code), np.bool_)
    for part in parts:
        right |= part.held & (part.values == 1)
    rights = np.bincount(codes.code, weights=right)
    members = np.stack(codes.distinct, axis=1)
    return [
        WeightedShare(
            weight=int(n)
            * sum(parts[i].factor / sizes[i] for i in np.flatnonzero(members[kind]).tolist()),
            successes=int(rights[kind]),
            n=int(n),
        )
        for kind, n in ((kind, codes.counts[kind]) for kind in np.argsort(codes.first))
    ]


def _iter_part_columns(
    parts: Sequence[WeightedMean], ties: ClusterIds, creators: Sequence[str]
) -> Iterator[AnyArray]:
    """Return for each part the values (0 if missing), a mask of present values, and the creator of the row."""
    for part in parts:
        yield np.where(part.held, part.values, 0.0)
        yield part.held
    for name in creators:
        yield ties.creator == ties.names.index(name)


def _sum_of_means(
    sample: RowSample, parts: Sequence[WeightedMean], creators: Sequence[str]
) -> Statistic:
    """Return a statistic that computes the sum of `parts`.

    If a creator in `creators` has no row in a resample, the weight of its parts goes to the parts
    of the other creators.
    """
    columns = iter(sample.columns)
    # Without the values of the rows, which would be held as long as the figure.
    means = [(part.factor, part.creator, next(columns), next(columns)) for part in parts]
    own = dict(zip(creators, columns, strict=True))

    def total(weights: Array) -> Array:
        held = {name: weighted_sum(weights, column) > 0 for name, column in own.items()}
        n_held = np.sum(list(held.values()), axis=0, dtype=np.float64)
        n_held = np.where(n_held == 0, math.nan, n_held)
        result = weights[:, 0] * 0
        for factor, creator, values, present in means:
            n = weighted_sum(weights, present)
            n[n == 0] = math.nan
            mean = factor * weighted_sum(weights, values) / n
            if creator in held:
                mean = np.where(held[creator], mean * len(held), 0) / n_held
            result += mean
        return result

    return total


def count_failures(rows: Iterable[ScoredQuestion[Any, Any]]) -> Mapping[str, int]:
    """Count the rows without an answer, by failure reason."""
    outcomes = (row.outcome for row in rows)
    return _sort_by_name(Counter(o.reason.value for o in outcomes if isinstance(o, Failure)))


def count_unparsed(parts: Iterable[tuple[str, object]]) -> Mapping[str, int]:
    """Count the parts that could not be parsed, by `part: reason`."""
    return _sort_by_name(
        Counter(
            f"{name}: {part.reason.value}" for name, part in parts if isinstance(part, Unparsed)
        )
    )


def _sort_by_name(counts: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(counts.items()))
