"""Figures of a scorecard: percentages by clip, with their coverage."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.verdict import Unparsed
from unreel.protocols.formulas import PERCENT
from unreel.protocols.protocol import Row
from unreel.stats.bootstrap import Limits, Statistic, bootstrap, bootstrap_mean
from unreel.stats.proportion import share_of
from unreel.stats.sample import Array, Sample, as_columns, weighted_sum
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

    @property
    def is_empty(self) -> bool:
        """True when no row is part of this mean."""
        return all(value is None for value in self.values)


def percent(measured: Measured) -> Measured:
    """A share as a percentage."""
    return measured.scaled(PERCENT) if isinstance(measured, Estimate) else measured


def mean_percent(values: Sequence[float], *, clips: Sequence[str], seed: int) -> Measured:
    """Mean of `values` (0 to 1) in percent; rows of one clip are drawn together.

    Plain shares of independent clips get the mid-P interval, all else a bootstrap by clip.
    """
    if not values:
        return Unmeasured("no rows")
    if set(values) <= {0, 1} and len(set(clips)) == len(clips):
        return percent(share_of(int(sum(values)), len(values)))
    return percent(bootstrap_mean(values, seed=seed, clusters=clips, bounds=_BOUNDS))


def sum_percent(parts: Sequence[Part], *, clips: Sequence[str], seed: int) -> Measured:
    """Sum of several means in percent, each with its factor; `clips` names the clip of every row.

    Right or wrong answers about independent clips are shares, whose doubts add up; all else is drawn
    again by clip, all parts at once, so that parts that share clips may lean on each other.
    """
    if not parts:
        return Unmeasured("there is nothing to compare")
    for part in parts:
        if part.is_empty:
            return Unmeasured(f"no valid answer for {part.name}")
    if len(parts) == 1 and parts[0].factor == 1:
        held = [(v, c) for v, c in zip(parts[0].values, clips, strict=True) if v is not None]
        return mean_percent([v for v, _ in held], clips=[c for _, c in held], seed=seed)
    if _are_plain_shares(parts, clips):
        return percent(sum_shares(_strata(parts)))
    columns = [column for part in parts for column in _columns(part)]
    sample = Sample.of(columns, clips)
    factors = [part.factor for part in parts]
    limits = Limits(
        sum(min(0.0, factor) for factor in factors),
        sum(max(0.0, factor) for factor in factors),
        min(_n_clips(part, clips) for part in parts),
    )
    return percent(bootstrap(_sum_of_means(sample, factors), sample, seed=seed, limits=limits))


def _are_plain_shares(parts: Sequence[Part], clips: Sequence[str]) -> bool:
    """Whether every row is a clip of its own that is right or wrong, and the same in all its parts."""
    alone = len(set(clips)) == len(clips)
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


def _sum_of_means(sample: Sample, factors: Sequence[float]) -> Statistic:
    columns = iter(sample.columns)
    means = list(zip(factors, columns, columns, strict=True))

    def total(weights: Array) -> Array:
        result = weights[:, 0] * 0
        for factor, values, present in means:
            n = weighted_sum(weights, present)
            n[n == 0] = math.nan
            result += factor * weighted_sum(weights, values) / n
        return result

    return total


def _n_clips(part: Part, clips: Sequence[str]) -> int:
    return len({clip for clip, value in zip(clips, part.values, strict=True) if value is not None})


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
