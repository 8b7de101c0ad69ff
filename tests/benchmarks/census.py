"""Counts of the rows of a benchmark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from unreel.benchmarks.entry import REASONS_SHOWN, Rejected, Row
from unreel.core.judgement import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCounts:
    """Counts of a benchmark's content."""

    entries: Mapping[tuple[str, Label], int]
    """Clips by split and side."""
    units: Mapping[tuple[str, Label], int]
    """Annotation rows by split and side."""
    n_rejected: int
    rejected: tuple[Rejected, ...]
    """The first rows that were rejected."""

    @property
    def n_entries(self) -> int:
        """All clips."""
        return sum(self.entries.values())

    @property
    def n_units(self) -> int:
        """All annotation rows."""
        return sum(self.units.values())


def take_census(rows: Iterable[Row]) -> BenchmarkCounts:
    """Count `rows` in one pass, keeping none but the first rejected ones."""
    entries: Counter[tuple[str, Label]] = Counter()
    units: Counter[tuple[str, Label]] = Counter()
    rejected: list[Rejected] = []
    n_rejected = 0
    for row in rows:
        if isinstance(row, Rejected):
            n_rejected += 1
            if len(rejected) < REASONS_SHOWN:
                rejected.append(row)
            continue
        entries[row.split, row.label] += 1
        units[row.split, row.label] += row.n_units
    return BenchmarkCounts(
        entries=dict(entries), units=dict(units), n_rejected=n_rejected, rejected=tuple(rejected)
    )
