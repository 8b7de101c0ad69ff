"""Clips excluded from a benchmark: counted immediately, stored in files, reported in one order at the end."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from unreel.core.output_files import OutputDirectory
from unreel.curation.piece import ExcludedSegment
from unreel.curation.sorted_runs import SortedRuns, read_runs

_NOWHERE: Final = -1
"""Placeholder for a missing timestamp."""


@dataclass(frozen=True, slots=True)
class LeftOuts:
    """Exclusions of all steps: counts by step and reason, and the files with each of them."""

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(self.counts.values())

    def __add__(self, other: "LeftOuts") -> "LeftOuts":
        counts = Counter(self.counts)
        counts.update(other.counts)
        return LeftOuts(dict(counts), (*self.files, *other.files))

    @property
    def by_reason(self) -> Counter[str]:
        """Return the counts by reason over all steps."""
        tally: Counter[str] = Counter()
        for (_, reason), n in self.counts.items():
            tally[reason] += n
        return tally

    def read(self, folder: OutputDirectory) -> Iterator[ExcludedSegment]:
        """Yield all excluded segments in sorted order, by name first."""
        for name, step, reason, detail, location, at_us in read_runs(folder, self.files):
            instant = None if at_us == _NOWHERE else at_us
            yield ExcludedSegment(name, step, reason, detail, location, instant)


NONE_LEFT_OUT: Final = LeftOuts()


class LeavingOut:
    """Collector of the segments that one step excludes."""

    def __init__(self, folder: OutputDirectory, step: str) -> None:
        self._runs = SortedRuns(folder, f"{step}.out")
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, left: ExcludedSegment) -> None:
        """Add one excluded segment."""
        self._counts[left.step, left.reason] += 1
        at_us = _NOWHERE if left.at_us is None else left.at_us
        self._runs.add((left.name, left.step, left.reason, left.detail, left.location, at_us))

    def end(self) -> LeftOuts:
        """Return the counts and files of all excluded segments."""
        return LeftOuts(dict(self._counts), self._runs.end())
