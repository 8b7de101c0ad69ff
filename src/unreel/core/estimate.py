"""Estimates with their uncertainty, and clusters of dependent answers."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from unreel.core.errors import InvalidValueError, UnknownNameError
from unreel.core.question import Instrument
from unreel.core.safe_text import sanitise_line
from unreel.core.table_formats import build_html_table

PART_PREFIXES = ("difficulty=", "family=")
"""Beginnings of the names of a benchmark's parts, for which metrics are computed separately."""


class RowCluster(NamedTuple):
    """Scene and creator of a row; answers with the same scene or creator are dependent."""

    scene: str
    """Scene of the clip, or the clip itself if it has no scene."""
    creator: str = ""
    """Creator of the clip; "" for a real clip, or if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Value with its confidence interval and its number of rows."""

    value: float
    low: float
    high: float
    n: int
    n_clusters: int | None = None
    """Number of independent clusters (clips, scenes, creators) behind the interval; `None` if unknown."""
    level: float = 0.95
    """Nominal coverage: fraction of repetitions in which the interval should contain the true value."""

    def __post_init__(self) -> None:
        if self.n < 1 or not all(map(math.isfinite, (self.value, self.low, self.high))):
            raise InvalidValueError(
                f"estimate must have finite numbers and n >= 1, not {self.value} "
                f"[{self.low}, {self.high}] n={self.n}"
            )
        if not self.low <= self.value <= self.high:
            raise InvalidValueError(
                f"{self.value} is outside its interval [{self.low}, {self.high}]. Check the method"
            )

    def scaled(self, factor: float) -> "Estimate":
        """Return the estimate multiplied by `factor`, for example to convert to percent."""
        low, high = sorted((self.low * factor, self.high * factor))
        return replace(self, value=self.value * factor, low=low, high=high)

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] n={self.n}"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A missing number, with the reason. It is displayed as empty, never as 0."""

    why: str

    def __str__(self) -> str:
        return f"not measured: {self.why}"


Measured = Estimate | Unmeasured

ENOUGH_CLUSTERS = 20
"""Number of clusters from which intervals reach their nominal coverage: see docs/intervals.md."""


IntervalKind = Literal["share", "metric", "seconds", "strength"]
"""Kind of metric: `share` is a proportion, `metric` a bounded mean that may be very skewed, `seconds` a mean
without a bound, and `strength` a strength of the Bradley-Terry model."""


def describe_interval_coverage(values: Iterable[Measured], *, kind: IntervalKind = "share") -> str:
    """Return a sentence with the measured coverage of intervals of this kind (docs/intervals.md)."""
    if kind == "seconds":
        return (
            "Intervals of mean seconds are too short: with long tails they contain the true value "
            "87 times of 100 with 20 clips and 92 times with 50."
        )
    if kind == "strength":
        return "The coverage of intervals of strengths was not measured."
    skewed = ", those of very skewed means less often" if kind == "metric" else ""
    rests = [v.n_clusters for v in values if isinstance(v, Estimate) and v.n_clusters is not None]
    few = [n for n in rests if n < ENOUGH_CLUSTERS]
    if not few:
        return f"Intervals contain the true value 95 times of 100{skewed}."
    return (
        f"Intervals contain the true value 95 times of 100{skewed}, if they rest on {ENOUGH_CLUSTERS} "
        f"independent clips, scenes or creators or more; {len(few)} of {len(rests)} here rest on fewer, "
        f"the least on {min(few)}, and may contain it more or less often."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Number of answers that contain the value that a metric reads."""

    parsed: int
    asked: int

    def __str__(self) -> str:
        return f"{self.parsed}/{self.asked} parsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of a scorecard, with its value and coverage."""

    name: str
    value: Measured
    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """The metrics of one reviewer under one protocol and condition."""

    instrument: Instrument
    n_questions: int
    n_answered: int
    metrics: tuple[Metric, ...]
    failures: Mapping[str, int] = field(default_factory=dict)
    """Number of questions without an answer, by reason."""
    unparsed: Mapping[str, int] = field(default_factory=dict)
    """Number of answers, or parts of answers, that could not be parsed, by part and reason."""
    confusion: Mapping[str, int] = field(default_factory=dict)
    """Confusion matrix of the clips, for a protocol with labels."""
    answered_by: Mapping[str, int] = field(default_factory=dict)
    """Number of answers from another model than the requested one, by the model name in the response."""

    def __getitem__(self, name: str) -> Measured:
        """Return the value of the metric `name`; the error for an unknown name suggests the nearest names."""
        for metric in self.metrics:
            if metric.name == name:
                return metric.value
        raise UnknownNameError("metric", name, [metric.name for metric in self.metrics])

    def __str__(self) -> str:
        lost = [f"{what}: {n} {reason}" for what, reason, n in self._lost()]
        counts = [f"{what}: {n}" for what, n in self.confusion.items()]
        counts += [f"answered by another model: {n} {name}" for name, n in self.answered_by.items()]
        metrics = [f"{metric.name}: {metric.value}, {metric.coverage}" for metric in self.metrics]
        return "\n  ".join(map(sanitise_line, [self._title, *lost, *counts, *metrics]))

    def _repr_html_(self) -> str:
        rows = [
            (metric.name, *_format_measured_cells(metric.value), metric.coverage)
            for metric in self.metrics
        ]
        metrics = build_html_table(
            self._title, ("metric", "value", "interval", "n", "coverage"), rows
        )
        lost = [(what, n, reason) for what, reason, n in self._lost()]
        counts = build_html_table("Clips", (), self.confusion.items()) if self.confusion else ""
        if self.answered_by:
            counts += build_html_table("Answered by another model", (), self.answered_by.items())
        return metrics + counts + (build_html_table("Not scored", (), lost) if lost else "")

    @property
    def _title(self) -> str:
        return f"{self.instrument}: {self.n_answered} of {self.n_questions} questions answered"

    def _lost(self) -> Iterator[tuple[str, str, int]]:
        for what, counts in (("failed", self.failures), ("unreadable", self.unparsed)):
            for reason, n in counts.items():
                yield what, reason, n


def _format_measured_cells(value: Measured) -> tuple[str, str, str]:
    match value:
        case Estimate():
            return f"{value.value:.4g}", f"{value.low:.4g} to {value.high:.4g}", str(value.n)
        case Unmeasured():
            return "not measured", value.why, ""
