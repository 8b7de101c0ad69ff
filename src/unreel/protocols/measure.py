"""Figures of a scorecard: percentages by clip, with their coverage."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from unreel.core.cluster import Cluster
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.verdict import Unparsed
from unreel.protocols.formulas import PERCENT
from unreel.protocols.protocol import Row
from unreel.stats.bootstrap import Limits, bootstrap, bootstrap_mean
from unreel.stats.proportion import share_of
from unreel.stats.resampling import Statistic, are_independent
from unreel.stats.sample import Array, Clusters, Sample, Ties, as_columns, weighted_sum
from unreel.stats.shares import WeightedShare, sum_shares

_BOUNDS: Final = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Part:
    """One mean among several that a figure adds up: `factor` times the mean of its values.

    `values` has one entry per row, from 0 to 1, and `None` where the row is no part of this mean.
    """

    name: str
    """What it is the mean of, for the reason why a figure is unmeasured."""
    factor: float
    values: Sequence[float | None]
    creator: str = ""
    """The creator whose figure it is, where a figure is the mean over creators: with the creator's clips,
    its parts are drawn or left out."""

    @property
    def is_empty(self) -> bool:
        """True when no row is part of this mean."""
        return all(value is None for value in self.values)


def percent(measured: Measured) -> Measured:
    """A share as a percentage."""
    return measured.scaled(PERCENT) if isinstance(measured, Estimate) else measured


def mean_percent(values: Sequence[float], *, clips: Clusters, seed: int) -> Measured:
    """Mean of `values` (0 to 1) in percent; rows of one clip, or of one cluster, are drawn together.

    Plain shares of independent clips get the mid-P interval, all else a bootstrap by clip.
    """
    if not values:
        return Unmeasured("no rows")
    if set(values) <= {0, 1} and are_independent(clips, len(values)):
        return percent(share_of(int(sum(values)), len(values)))
    return percent(bootstrap_mean(values, seed=seed, clusters=clips, bounds=_BOUNDS))


def sum_percent(parts: Sequence[Part], *, clips: Sequence[str | Cluster], seed: int) -> Measured:
    """Sum of several means in percent, each with its factor; `clips` names the clip of every row.

    Right or wrong answers about independent clips are shares, whose doubts add up; all else is drawn
    again by clip, all parts at once, so that parts that share clips may lean on each other.
    """
    if not parts:
        return Unmeasured("there is nothing to compare")
    for part in parts:
        if part.is_empty:
            return Unmeasured(f"no valid answer for {part.name}")
    parts, clips = _held(parts, clips)
    ties = Ties.of(clips, len(clips))
    if len(parts) == 1 and parts[0].factor == 1:
        values = [value for value in parts[0].values if value is not None]
        return mean_percent(values, clips=ties, seed=seed)
    if _are_plain_shares(parts, ties):
        return percent(sum_shares(_strata(parts)))
    makers = [cluster.creator if isinstance(cluster, Cluster) else "" for cluster in clips]
    creators = sorted({part.creator for part in parts} & {*makers} - {""})
    columns = [column for part in parts for column in _columns(part)]
    columns += [np.array([float(maker == name) for maker in makers]) for name in creators]
    sample = Sample.of(columns, ties)
    limits = Limits(
        sum(min(0.0, part.factor) for part in parts),
        sum(max(0.0, part.factor) for part in parts),
        min(_ties_of(part, ties).n_scenes for part in parts),
    )
    statistic = _sum_of_means(sample, parts, creators)
    return percent(bootstrap(statistic, sample, seed=seed, limits=limits))


def _held(
    parts: Sequence[Part], clips: Sequence[str | Cluster]
) -> tuple[list[Part], list[str | Cluster]]:
    """The rows that belong to any part: who made the other clips is nothing to these means."""
    values = zip(*(part.values for part in parts), strict=True)
    places = [i for i, row in enumerate(values) if any(value is not None for value in row)]
    held = [replace(part, values=[part.values[i] for i in places]) for part in parts]
    return held, [clips[i] for i in places]


def _are_plain_shares(parts: Sequence[Part], ties: Ties) -> bool:
    """Whether every row is a clip of its own that is right or wrong, and the same in all its parts."""
    alone = are_independent(ties, len(parts[0].values))
    return (
        alone
        and all(set(part.values) <= {0, 1, None} for part in parts)
        and all(
            len({value for value in row if value is not None}) <= 1
            for row in zip(*(part.values for part in parts), strict=True)
        )
    )


def _strata(parts: Sequence[Part]) -> list[WeightedShare]:
    """The rows by the parts that they belong to: independent shares whose sum is that of the parts."""
    sizes = [sum(value is not None for value in part.values) for part in parts]
    strata: dict[tuple[int, ...], list[float]] = {}
    for row in zip(*(part.values for part in parts), strict=True):
        member_of = tuple(i for i, value in enumerate(row) if value is not None)
        if member_of:
            strata.setdefault(member_of, []).append(row[member_of[0]])
    return [
        WeightedShare(
            weight=len(rights) * sum(parts[i].factor / sizes[i] for i in member_of),
            successes=int(sum(rights)),
            n=len(rights),
        )
        for member_of, rights in strata.items()
    ]


def _columns(part: Part) -> tuple[Array, ...]:
    """The values, 0 where there is none, and 1 where there is one."""
    present = [float(value is not None) for value in part.values]
    return as_columns([value or 0.0 for value in part.values], present)


def _sum_of_means(sample: Sample, parts: Sequence[Part], creators: Sequence[str]) -> Statistic:
    """The sum of `parts`, where those of `creators` without any row count for the others."""
    columns = iter(sample.columns)
    means = [(part, next(columns), next(columns)) for part in parts]
    own = dict(zip(creators, columns, strict=True))

    def total(weights: Array) -> Array:
        held = {name: weighted_sum(weights, column) > 0 for name, column in own.items()}
        n_held = np.sum(list(held.values()), axis=0, dtype=np.float64)
        n_held = np.where(n_held == 0, math.nan, n_held)
        result = weights[:, 0] * 0
        for part, values, present in means:
            n = weighted_sum(weights, present)
            n[n == 0] = math.nan
            mean = part.factor * weighted_sum(weights, values) / n
            if part.creator in held:
                mean = np.where(held[part.creator], mean * len(held), 0) / n_held
            result += mean
        return result

    return total


def _ties_of(part: Part, ties: Ties) -> Ties:
    return ties.only(np.array([value is not None for value in part.values]))


def count_failures(rows: Iterable[Row[Any, Any]]) -> Mapping[str, int]:
    """Rows without an answer, by reason."""
    outcomes = (row.outcome for row in rows)
    return _sorted(Counter(o.reason.value for o in outcomes if isinstance(o, Failure)))


def count_unparsed(parts: Iterable[tuple[str, object]]) -> Mapping[str, int]:
    """Parts that could not be read, as `part: reason`."""
    return _sorted(
        Counter(
            f"{name}: {part.reason.value}" for name, part in parts if isinstance(part, Unparsed)
        )
    )


def _sorted(counts: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(counts.items()))
