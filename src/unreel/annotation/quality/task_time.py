"""Time on task: implausibly fast answers, and answers after a break."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from unreel.annotation.campaign import AnnotationTask

FAR: Final = 3.5
"""Robust standard deviations of the logarithm from which a time is out of the ordinary (Iglewicz and Hoaglin 1993)."""
_NORMAL: Final = 1.4826
"""Standard deviation of a normal curve in parts of its median distance from the median."""
_LEAST_SPREAD: Final = 0.1
"""Of the logarithm: times that hardly differ make no outlier of the next."""
FEW: Final = 10


class TimedJudgement(Protocol):
    """A judgement with its time on task."""

    @property
    def annotator(self) -> str:
        """Name of the person."""
        ...

    @property
    def task(self) -> AnnotationTask:
        """Return the task."""
        ...

    @property
    def lead_us(self) -> int | None:
        """Return the viewing time; `None` if unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorSpeed:
    """Time per task of one person."""

    n: int
    median_us: int
    fast: tuple[str, ...]
    """Tasks answered much faster than this person's others, by id."""
    slow: tuple[str, ...]
    unseen: tuple[str, ...]
    """Tasks answered in less time than half of the clip takes to play."""


def find_pace(judgements: Sequence[TimedJudgement]) -> Mapping[str, AnnotatorSpeed]:
    """Return the speed of annotators with known times; outliers need at least ten times."""
    times: dict[str, list[tuple[str, int, int]]] = {}
    for each in judgements:
        if each.lead_us is not None and each.lead_us > 0:
            lasts = sum(copy.duration_us for copy in each.task.copies)
            times.setdefault(each.annotator, []).append((each.task.id, each.lead_us, lasts))
    return {who: _measure_annotator_speed(sorted(rows)) for who, rows in sorted(times.items())}


def _measure_annotator_speed(rows: Sequence[tuple[str, int, int]]) -> AnnotatorSpeed:
    logs = np.log([lead for _, lead, _ in rows])
    middle = float(np.median(logs))
    spread = max(_LEAST_SPREAD, _NORMAL * float(np.median(np.abs(logs - middle))))
    apart = (logs - middle) / spread if len(rows) >= FEW else np.zeros(len(rows))
    return AnnotatorSpeed(
        n=len(rows),
        median_us=int(np.median([lead for _, lead, _ in rows])),
        fast=tuple(id_ for (id_, _, _), far in zip(rows, apart, strict=True) if far < -FAR),
        slow=tuple(id_ for (id_, _, _), far in zip(rows, apart, strict=True) if far > FAR),
        unseen=tuple(id_ for id_, lead, lasts in rows if 2 * lead < lasts),
    )
