"""Reward log as a series of steps: each step is summarised once, when a later one begins."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from unreel.rewards.guards.duplicates import count_duplicates
from unreel.rewards.guards.text import addresses_judge

LogRow = Mapping[str, Any]
"""One line of the log of `unreel reward serve`."""
FACTS: Final = {"motion": "motion", "saturation": "saturation", "sharpness": "sharpness"} | {
    "duration": "duration_s",
    "static": "static_fraction",
}
"""Measured facts of a clip by the name of their guard."""
BLOCK_ROWS: Final = 64
"""Rows of a step in a log whose rows name no step."""
_TAIL_BYTES: Final = 1 << 20
_LEAST_GROUP: Final = 2
_OPEN_STEPS: Final = 4
"""The newest step and those before it that may still get rows: a service writes its log after the reply."""


@dataclass(frozen=True, slots=True)
class FactSummary:
    """Count, mean and sum of squared deviations of one fact in one step."""

    n: int
    mean: float
    squares: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    """Numbers of one step that guards need."""

    step: int
    n_rows: int
    n_null: int
    n_paired: int
    """Rows with a trained and a held-out reward."""
    value: float | None
    """Mean trained reward of these rows."""
    held_out: float | None
    facts: Mapping[str, FactSummary] = field(default_factory=dict)
    n_read: int = 0
    """Rows whose text was read."""
    n_addressing: int = 0
    n_fingerprints: int = 0
    n_duplicates: int = 0
    n_groups: int = 0
    """Groups of at least two rewards."""
    n_identical: int = 0
    clean: tuple[float, ...] = ()
    """Rewards of canaries without a trace, in the order of the log."""
    injected: tuple[float, ...] = ()


def summarise_step(step: int, rows: Sequence[LogRow]) -> StepSummary:
    """Summarise the rows of one step; repeated requests for the same clip count once."""
    items = list(_iter_distinct(row for row in rows if not row.get("canary")))
    values = [_parse_finite_number(row.get("value")) for row in items]
    paired = [
        (value, held_out)
        for row, value in zip(items, values, strict=True)
        if value is not None and (held_out := _parse_finite_number(row.get("held_out"))) is not None
    ]
    groups: dict[Any, list[float]] = {}
    for row, value in zip(items, values, strict=True):
        if value is not None:
            groups.setdefault(row.get("group"), []).append(value)
    large = [group for group in groups.values() if len(group) >= _LEAST_GROUP]
    facts = [row.get("facts") or {} for row in items]
    texts = [text for own in facts if isinstance(text := own.get("text"), str)]
    prints = [own for each in facts if isinstance(own := each.get("fingerprint"), str)]
    return StepSummary(
        step=step,
        n_rows=len(items),
        n_null=values.count(None),
        n_paired=len(paired),
        value=float(np.mean([value for value, _ in paired])) if paired else None,
        held_out=float(np.mean([held_out for _, held_out in paired])) if paired else None,
        facts={name: own for name, key in FACTS.items() if (own := _summarise_fact(facts, key))},
        n_read=len(texts),
        n_addressing=sum(map(addresses_judge, texts)),
        n_fingerprints=len(prints),
        n_duplicates=count_duplicates(prints),
        n_groups=len(large),
        n_identical=sum(len(set(group)) == 1 for group in large),
        clean=_list_canary_values(rows, "clean"),
        injected=_list_canary_values(rows, "injected"),
    )


class StepCollector:
    """Collector of log rows that summarises them by step. The newest step is incomplete and left out.

    Args:
        keep_open: Summarise at the end only, for logs whose rows are not in the order of steps.
    """

    def __init__(self, *, keep_open: bool = False) -> None:
        self._keep_open = keep_open
        self.closed: list[StepSummary] = []
        self.n_late = 0
        """Rows of steps that were summarised before they arrived."""
        self._open: dict[int, list[LogRow]] = {}
        self._n_unnamed = 0

    def add(self, rows: Iterable[LogRow]) -> None:
        """Add rows in the order of the log."""
        for row in rows:
            step = row.get("step")
            if not isinstance(step, int):
                step, self._n_unnamed = self._n_unnamed // BLOCK_ROWS, self._n_unnamed + 1
            if self.closed and step <= self.closed[-1].step:
                self.n_late += 1
                continue
            self._open.setdefault(step, []).append(row)
            if len(self._open) > _OPEN_STEPS and not self._keep_open:
                self._close(min(self._open))

    @property
    def n_complete(self) -> int:
        """Return the number of steps but the newest."""
        return len(self.closed) + max(0, len(self._open) - 1)

    def finish(self) -> list[StepSummary]:
        """Return the summaries of all steps but the newest, which may be incomplete."""
        open_steps = sorted(self._open)[:-1]
        return [*self.closed, *(summarise_step(step, self._open[step]) for step in open_steps)]

    def _close(self, step: int) -> None:
        self.closed.append(summarise_step(step, self._open.pop(step)))


def read_log(path: Path, *, last_steps: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a log in order; with `last_steps`, those of at least that many steps at its end.

    Lines that are no JSON objects, such as one that a crash cut short, are skipped.
    """
    with path.open("rb") as file:
        if last_steps is not None:
            _seek_last_steps(file, path.stat().st_size, last_steps)
        for line in file:
            row = _parse_log_line(line)
            if row is not None:
                yield row


def _seek_last_steps(file: Any, size: int, last_steps: int) -> None:
    """Move to the start of a line behind which at least `last_steps` steps begin, or to the start of the file."""
    tail = _TAIL_BYTES
    while tail < size:
        file.seek(size - tail)
        file.readline()
        start = file.tell()
        steps = Counter(row.get("step") for row in map(_parse_log_line, file) if row is not None)
        n_steps = len(steps) - (None in steps) + steps[None] // BLOCK_ROWS
        if n_steps > last_steps + 1:  # the first of them is cut
            file.seek(start)
            return
        tail *= 2
    file.seek(0)


def _parse_log_line(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _iter_distinct(rows: Iterable[LogRow]) -> Iterator[LogRow]:
    seen = set()
    for row in rows:
        content = row.get("content")
        if not (row.get("cached") and content in seen):
            yield row
        seen.add(content)


def _list_canary_values(rows: Sequence[LogRow], kind: str) -> tuple[float, ...]:
    values = (_parse_finite_number(row.get("value")) for row in rows if row.get("canary") == kind)
    return tuple(value for value in values if value is not None)


def _summarise_fact(facts: Sequence[Mapping[str, Any]], key: str) -> FactSummary | None:
    values = [value for own in facts if (value := _parse_finite_number(own.get(key))) is not None]
    if not values:
        return None
    return FactSummary(len(values), float(np.mean(values)), float(np.var(values) * len(values)))


def _parse_finite_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
