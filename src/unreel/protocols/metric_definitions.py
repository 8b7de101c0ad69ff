"""Definitions of metrics: display name, meaning, unit, range and polarity."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Better = Literal["more", "less", "neither"]
Unreadable = Literal["left out", "worst"]
"""What becomes of an answer in which the part that is measured cannot be read. One that failed is always
left out."""

ALL_CLIPS: Final = "-all-clips"
"""Ends the name of a metric in which unreadable answers and failures count as wrong."""
HABIT: Final = "habit"
"""Group of metrics of the answers' distribution: neither more nor less is better."""
_POLARITY: Final[dict[Better, str]] = {
    "more": "more is better",
    "less": "less is better",
    "neither": "neither more nor less is better",
}
_MISSING: Final[dict[Unreadable, str]] = {
    "left out": "failed questions and unreadable answers are excluded and counted",
    "worst": "failed questions are excluded and counted; an unreadable answer counts as the worst",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """Definition of one metric: its name, meaning, unit, range and polarity."""

    metric: str
    """Its name on a scorecard."""
    title: str
    meaning: str
    group: str
    """The part of an answer that it measures."""
    better: Better = "more"
    unit: str = "%"
    range: tuple[float, float] = (0.0, 100.0)
    """Smallest and largest possible value."""
    places: int = 1
    formula: str = ""
    """Formula, as text for a terminal."""
    unreadable: Unreadable = "left out"

    @property
    def definition(self) -> tuple[tuple[str, str], ...]:
        """Return the definition of a metric as pairs of a term and its description, for display."""
        unit = f" {self.unit}" if self.unit else ""
        low, high = self.range
        range_text = f"{low:g} or more{unit}" if math.isinf(high) else f"{low:g} to {high:g}{unit}"
        return (
            ("Meaning", self.meaning),
            ("Formula", self.formula),
            ("Unit", self.unit or "none"),
            ("Range", range_text),
            ("Polarity", _POLARITY[self.better]),
            ("Missing answers", _MISSING[self.unreadable]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolMetrics:
    """Metrics of a protocol, and the tables and pages that show each of them."""

    declared: tuple[MetricDefinition, ...]
    leading: tuple[str, ...]
    """Columns of its leaderboard."""
    ranking: str
    """The metric that ranks its leaderboard."""
    ranking_unjudged: str | None = None
    """The same without scored explanations, for a protocol whose ranking needs a judge."""
    exported: tuple[str, ...]
    """What a task of another kit reports; there is no judge of explanations there."""
    steps: tuple[str, ...] = ()
    """From its easiest question to its hardest, where it asks several."""
    sides: tuple[str, ...] = ()
    """The accuracies of its two sides, and the habit that pulls them apart."""
    per_creator: str | None = None
    """Metrics of its scorecard for each creator, as `METRIC: CREATOR`."""
    by_creator: tuple[str, ...] = ()
    """Metrics that are also computed for the clips of each creator."""
    by_category: tuple[str, ...] = ()
    """Metrics that are also computed for each kind of trace."""
    variants: tuple[tuple[str, str], ...] = ()
    """Endings of a metric's name on the scorecard, and what such a metric counts otherwise."""
    by_part: tuple[str, ...] = ()
    """Metrics for each part that the benchmark names, as `METRIC: difficulty=hard`."""

    def ranks_by(self, *, judged: bool) -> str:
        """Return the metric that ranks a leaderboard; it may be another one if no judge scored (`judged`)."""
        return self.ranking if judged or self.ranking_unjudged is None else self.ranking_unjudged

    def __getitem__(self, metric: str) -> MetricDefinition:
        return next(figure for figure in self.declared if figure.metric == metric)

    def __contains__(self, metric: str) -> bool:
        return any(figure.metric == metric for figure in self.declared)

    def __iter__(self) -> Iterator[MetricDefinition]:
        return iter(self.declared)


FAKE_ACCURACY: Final = MetricDefinition(
    metric="fake-accuracy",
    title="Generated caught",
    meaning="generated clips that were called generated",
    group="classification",
    formula="100 * generated clips called generated / generated clips",
)
REAL_ACCURACY: Final = MetricDefinition(
    metric="real-accuracy",
    title="Real trusted",
    meaning="real clips that were called real",
    group="classification",
    formula="100 * real clips called real / real clips",
)
ANSWERED_REAL: Final = MetricDefinition(
    metric="answered-real",
    title="Answered real",
    meaning="answers that say real: the habit, whatever is shown",
    group=HABIT,
    better="neither",
    formula="100 * answers that say real / answers",
)
FALSE_ALARMS: Final = {"tpr-at-fpr-5": 0.05, "tpr-at-fpr-1": 0.01}
"""Figures of the generated clips caught, by the share of real ones that may be called generated."""
PART_VARIANTS: Final = (
    (
        ": difficulty=D",
        "of the clips whose difficulty the benchmark calls D, for some of the figures",
    ),
)
"""Endings of the metrics in `by_part`."""
F1: Final = MetricDefinition(
    metric="f1",
    title="F1",
    meaning="harmonic mean of precision and recall in calling clips generated",
    group="classification",
    formula="100 * 2 * caught / (2 * caught + real ones called generated + generated ones not called so)",
)


def build_detection_metric_definitions(group: str, ranks: str) -> tuple[MetricDefinition, ...]:
    """Return the definitions of AUC and TPR; `ranks` is a text such as "scores higher than"."""
    return (
        MetricDefinition(
            metric="auc",
            title="AUC",
            meaning=f"chance that a generated clip {ranks} a real one, a tie being half",
            group=group,
            unit="",
            range=(0.0, 1.0),
            places=3,
            formula="(pairs in order + pairs tied / 2) / pairs of a generated and a real clip",
        ),
        *(
            MetricDefinition(
                metric=metric,
                title=f"TPR at {100 * rate:g} % FPR",
                meaning=f"generated clips caught while at most {100 * rate:g} % of real ones are taken for such",
                group=group,
                formula="100 * generated clips beyond the threshold / generated clips; what ties with it is not "
                f"beyond; needs {1 / rate:.0f} real clips",
            )
            for metric, rate in FALSE_ALARMS.items()
        ),
    )
