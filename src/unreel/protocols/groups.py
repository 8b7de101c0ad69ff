"""The same figures for parts of a run: by category, by creator, by whatever the rows tell."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from unreel.core.estimate import Scorecard
from unreel.protocols.protocol import Protocol, Row

UNCATEGORISED = "uncategorised"
"""The group of traces whose annotators named no category."""


def score_groups(
    instrument: Protocol[Any, Any],
    rows: Sequence[Row[Any, Any]],
    *,
    groups_of: Callable[[Row[Any, Any]], Iterable[str]],
    seed: int,
) -> dict[str, Scorecard]:
    """A scorecard for each group, by name; a row may belong to several groups, or to none."""
    groups: dict[str, list[Row[Any, Any]]] = {}
    for row in rows:
        for name in groups_of(row):
            groups.setdefault(name, []).append(row)
    return {name: instrument.score(groups[name], seed=seed) for name in sorted(groups)}


def trace_categories(row: Row[Any, Any]) -> tuple[str, ...]:
    """The categories of an annotation row of `trace`; none for a clip without a trace."""
    trace = row.truth.trace
    if trace is None:
        return ()
    return tuple(sorted(category.value for category in trace.categories)) or (UNCATEGORISED,)
