"""Streaming counters of an eval, so that a benchmark is read once."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.planning import PlannedQuestion, UnreadableClip
from unreel.benchmarks.reading import BenchmarkStats
from unreel.core.clip import Clip
from unreel.engine.stage import Row
from unreel.evaluation.asking import answer_row

if TYPE_CHECKING:
    from unreel.engine.table import LanceTable

T = TypeVar("T")
_AHEAD: Final = 4096
_LOOK: Final = 2048


class PrefetchedIterator(Generic[T]):
    """A stream whose first items are read at once; it is gone through once, as it came."""

    def __init__(self, items: Iterable[T]) -> None:
        self._source = iter(items)
        self.first = list(itertools.islice(self._source, _AHEAD))
        self.is_whole = len(self.first) < _AHEAD
        """Whether the first items are all."""

    def __iter__(self) -> Iterator[T]:
        return itertools.chain(self.first, self._source)


class EntryStream:
    """The entries of an eval on their way to the survey.

    Args:
        entries: are gone through once.
        keeps: whether they stay in memory, for a floor that learns from them.
    """

    def __init__(self, entries: Iterable[Entry], *, keeps: bool) -> None:
        self.ahead = PrefetchedIterator(entries)
        self.n_entries = 0
        self.has_cleaned = any(entry.cleaned for entry in self.ahead.first)
        """Whether one of those that went by, or are looked at, has a copy without its watermark."""
        self.kept: list[Entry] = []
        self._keeps = keeps

    def __iter__(self) -> Iterator[Entry]:
        for entry in self.ahead:
            self.n_entries += 1
            self.has_cleaned |= bool(entry.cleaned)
            if self._keeps:
                self.kept.append(entry)
            yield entry


def count_due(rows: Iterable[Row], table: "LanceTable", *, retry: Collection[str]) -> int:
    """Return the number of `rows` without a stored row, or with one that failed for a reason in `retry`."""
    return sum(1 for _ in find_due(rows, table, retry=retry))


def find_due(rows: Iterable[Row], table: "LanceTable", *, retry: Collection[str]) -> Iterator[Row]:
    """Those of `rows` that the table has no row for, or one that failed for a reason in `retry`."""
    source = iter(rows)
    while chunk := {row["key"]: row for row in itertools.islice(source, _LOOK)}:
        held = table.held(list(chunk))
        for key, row in chunk.items():
            if key not in held or held[key].is_due(row, retry):
                yield row


class SkippedCounts:
    """Counts of skipped questions, collected while streaming."""

    def __init__(self) -> None:
        self.unreadable: Counter[str] = Counter()
        self.first_unreadable = ""
        self.reading = BenchmarkStats()

    def sift(
        self, plan: Iterable[PlannedQuestion[Clip] | UnreadableClip | Rejected], reviewer: str
    ) -> Iterator[dict[str, Any]]:
        for planned in plan:
            if isinstance(planned, PlannedQuestion):
                yield answer_row(planned, reviewer)
            else:
                self.leave(planned)

    def leave(self, planned: UnreadableClip | Rejected) -> None:
        match planned:
            case UnreadableClip():
                self.unreadable[planned.failure.reason.value] += 1
                self.first_unreadable = (
                    self.first_unreadable or f"{planned.name}: {planned.failure}"
                )
            case Rejected():
                self.reading.reject(planned)
