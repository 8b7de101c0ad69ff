"""Definitions of metrics: display name, meaning, unit, range and polarity."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Better = Literal["more", "less", "neither"]
Unreadable = Literal["left out", "worst"]
"""Treatment of an answer whose measured part cannot be read; failed questions are always excluded."""

ALL_CLIPS = "-all-clips"
"""Suffix of the names of metrics in which unreadable answers and failures count as wrong."""
ALL_PAIRS = "-all-pairs"
"""The same suffix, for metrics of pairs."""
CountedQuestions = Literal["readable", "answered", "all"]
"""Questions that a metric is over: those with a readable answer, with any answer, or all that were asked."""
HABIT = "habit"
"""Group of metrics of the answers' distribution: neither more nor less is better."""
_POLARITY: dict[Better, str] = {
    "more": "more is better",
    "less": "less is better",
    "neither": "neither more nor less is better",
}
_MISSING: dict[Unreadable, str] = {
    "left out": "failed questions and unreadable answers are excluded and counted",
    "worst": "failed questions are excluded and counted; an unreadable answer counts as the worst",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """Definition of one metric: name, meaning, unit, range and polarity."""

    metric: str
    title: str
    meaning: str
    group: str
    """Part of an answer that the metric measures."""
    better: Better = "more"
    unit: str = "%"
    range: tuple[float, float] = (0.0, 100.0)
    """Smallest and largest possible value."""
    places: int = 1
    formula: str = ""
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
    ranking: str
    ranking_unjudged: str | None = None
    """Metric that ranks a leaderboard without scored explanations; `None` if `ranking` needs no judge."""
    exported: tuple[str, ...]
    """Metrics of exported tasks for other evaluation kits, which have no judge of explanations."""
    steps: tuple[str, ...] = ()
    """Metrics of the parts of its question, from the easiest to the hardest; empty if there is one part."""
    class_metrics: tuple[str, ...] = ()
    """Accuracies of the two possible truths, and the metric of the habit that shifts one against the other."""
    per_creator: str | None = None
    by_creator: tuple[str, ...] = ()
    by_category: tuple[str, ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    """Endings of metric names on the scorecard, each with a description of the difference."""
    by_part: tuple[str, ...] = ()
    """Metrics that are also computed for each part of the benchmark, as `METRIC: difficulty=hard`."""

    def ranks_by(self, *, judged: bool) -> str:
        """Return the metric that ranks a leaderboard; it may be another one if no judge scored (`judged`)."""
        return self.ranking if judged or self.ranking_unjudged is None else self.ranking_unjudged

    def counts(self, metric: str) -> CountedQuestions:
        """Return the questions that the metric of a scorecard, or a variant of it, is over."""
        plain = metric.partition(": ")[0]
        if plain.endswith((ALL_CLIPS, ALL_PAIRS)):
            return "all"
        for definition in self.declared:
            if plain == definition.metric or plain.startswith(f"{definition.metric}-"):
                return "answered" if definition.unreadable == "worst" else "readable"
        return "readable"

    def __getitem__(self, metric: str) -> MetricDefinition:
        return next(definition for definition in self.declared if definition.metric == metric)

    def __contains__(self, metric: str) -> bool:
        return any(definition.metric == metric for definition in self.declared)

    def __iter__(self) -> Iterator[MetricDefinition]:
        return iter(self.declared)


FAKE_ACCURACY = MetricDefinition(
    metric="fake-accuracy",
    title="Generated caught",
    meaning="generated clips that were called generated",
    group="classification",
    formula="100 * generated clips called generated / generated clips",
)
REAL_ACCURACY = MetricDefinition(
    metric="real-accuracy",
    title="Real trusted",
    meaning="real clips that were called real",
    group="classification",
    formula="100 * real clips called real / real clips",
)
ANSWERED_REAL = MetricDefinition(
    metric="answered-real",
    title="Answered real",
    meaning="answers with the label real, of all answers: the bias",
    group=HABIT,
    better="neither",
    formula="100 * answers with the label real / answers",
)
FALSE_ALARMS = {"tpr-at-fpr-5": 0.05, "tpr-at-fpr-1": 0.01}
"""Maximum false positive rate of each metric that is a true positive rate."""
PART_VARIANTS = (
    (": difficulty=D", "of the clips with the difficulty D in the benchmark, for some metrics"),
)
"""Entry of `variants` for the metrics in `by_part`."""
F1 = MetricDefinition(
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
                meaning=f"generated clips caught while at most {100 * rate:g} % of real ones are called generated",
                group=group,
                formula="100 * generated clips beyond the threshold / generated clips; what ties with it is not "
                f"beyond; needs {1 / rate:.0f} real clips",
            )
            for metric, rate in FALSE_ALARMS.items()
        ),
    )
