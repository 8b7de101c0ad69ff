"""Streaming counters of an eval, so that a benchmark is read once."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.questions import PlannedQuestion, UnreadableClip
from unreel.benchmarks.statistics import BenchmarkStats
from unreel.core.clip import Clip
from unreel.engine.run import PrefetchedIterator
from unreel.evaluation.review_stage import answer_row


class EntryStream:
    """Entries of a run on their way to the survey.

    Args:
        entries: Iterated once.
        keeps: Whether they stay in memory, for a fitted baseline.
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
