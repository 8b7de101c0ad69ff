"""Metrics for groups of scored rows: by category, creator, difficulty or another property."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from unreel.core.estimate import PART_PREFIXES, Scorecard, Unmeasured
from unreel.core.judgement import Rating
from unreel.protocols.metric_definitions import ProtocolMetrics
from unreel.protocols.protocol import Protocol, ProtocolScorer, ScoredQuestion

T = TypeVar("T")
V = TypeVar("V")

_MAX_PARTS = 20
"""Maximum number of parts; metrics are not computed for the parts of a benchmark with more."""
_NO_ANSWER = Unmeasured("no question was answered")
UNCATEGORISED = "uncategorised"
"""Group of traces whose annotators named no category."""


def compute_group_scorecards(
    instrument: Protocol[Any, Any],
    rows: Sequence[ScoredQuestion[Any, Any]],
    *,
    groups_of: Callable[[ScoredQuestion[Any, Any]], Iterable[str]],
    seed: int,
) -> dict[str, Scorecard]:
    """Compute a scorecard by group name; `groups_of` returns a row's groups, several or none."""
    groups: dict[str, list[ScoredQuestion[Any, Any]]] = {}
    for row in rows:
        for name in groups_of(row):
            groups.setdefault(name, []).append(row)
    return {name: instrument.score(groups[name], seed=seed) for name in sorted(groups)}


def add_benchmark_part_metrics(
    figures: ProtocolMetrics,
) -> Callable[[ProtocolScorer[T, V]], ProtocolScorer[T, V]]:
    """Return a scorer's decorator that adds `figures.by_part` for each difficulty and error family."""

    def decorate(score: ProtocolScorer[T, V]) -> ProtocolScorer[T, V]:
        @wraps(score)
        def whole_and_parts(rows: Sequence[ScoredQuestion[T, V]], *, seed: int) -> Scorecard:
            card = score(rows, seed=seed)
            if not card.n_answered:
                metrics = (replace(metric, value=_NO_ANSWER) for metric in card.metrics)
                return replace(card, metrics=tuple(metrics))
            parts: dict[str, array[int]] = {}
            for i, row in enumerate(rows):
                family = row.truth.family if isinstance(row.truth, Rating) else None
                for kind, name in zip(PART_PREFIXES, (row.difficulty, family), strict=True):
                    if name:
                        parts.setdefault(f"{kind}{name}", array("q")).append(i)
                if len(parts) > _MAX_PARTS:
                    return card
            part_metrics = [
                replace(metric, name=f"{metric.name}: {part}")
                for part in sorted(parts)
                for metric in score(SelectedRows(rows, parts[part]), seed=seed).metrics
                if metric.name in figures.by_part
            ]
            return replace(card, metrics=(*card.metrics, *part_metrics))

        return whole_and_parts

    return decorate


class SelectedRows(Sequence[ScoredQuestion[T, V]]):
    """Sequence of some rows of another sequence, selected by index, without copying the rows."""

    def __init__(self, rows: Sequence[ScoredQuestion[T, V]], indexes: npt.ArrayLike) -> None:
        self._rows, self._indexes = rows, np.asarray(indexes, np.int64)

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, index: int) -> ScoredQuestion[T, V]: ...

    @overload
    def __getitem__(self, key: slice) -> "SelectedRows[T, V]": ...

    def __getitem__(self, key: int | slice) -> "ScoredQuestion[T, V] | SelectedRows[T, V]":
        if isinstance(key, slice):
            return SelectedRows(self._rows, self._indexes[key])
        return self._rows[int(self._indexes[key])]

    def __iter__(self) -> Iterator[ScoredQuestion[T, V]]:
        if np.array_equal(self._indexes, np.arange(len(self._rows))):
            return iter(self._rows)  # sequential access is faster for columns
        return map(self._rows.__getitem__, self._indexes.tolist())


def get_trace_categories(row: ScoredQuestion[Any, Any]) -> tuple[str, ...]:
    """Return the categories of an annotation row of `trace`; empty for a clip without a trace."""
    trace = row.truth.trace
    if trace is None:
        return ()
    return tuple(sorted(category.value for category in trace.categories)) or (UNCATEGORISED,)
