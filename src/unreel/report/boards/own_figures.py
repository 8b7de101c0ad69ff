"""Metrics that a report computes in addition to a protocol's scorecard."""

import math
from dataclasses import replace
from typing import Final

from unreel.protocols.figures import HABIT, MetricDefinition

_NO_END: Final = (0.0, math.inf)
DIFFERENCE: Final = MetricDefinition(
    metric="paired-difference",
    title="Difference",
    meaning="difference of the first and the second",
    group="difference",
    better="neither",
    range=(-100.0, 100.0),
    formula="metric of the first - metric of the second, on the questions that both answered",
)
READABLE: Final = MetricDefinition(
    metric="readable",
    title="Readable",
    meaning="answers whose label or score could be read",
    group="coverage",
    unit="",
    range=_NO_END,
    places=0,
    formula="count, next to the number of questions",
)
SCORE_GIVEN: Final = MetricDefinition(
    metric="score",
    title="Score given",
    meaning="mean, 1 to 5",
    group="score",
    better="neither",
    unit="",
    range=(1.0, 5.0),
    places=2,
    formula="sum of the scores given / scores",
)
CALLED_REAL: Final = MetricDefinition(
    metric="called-real",
    title="Called real",
    meaning="fraction of these clips that is generated, %",
    group="calibration",
    better="less",
    formula="100 * generated clips called real / clips called real",
)
CALLED_GENERATED: Final = replace(
    CALLED_REAL,
    metric="called-generated",
    title="Called generated",
    better="more",
    formula="100 * generated clips called generated / clips called generated",
)
ECE: Final = MetricDefinition(
    metric="label-ece",
    title="ECE",
    meaning="expected calibration error, 0 to 1",
    group="calibration",
    better="less",
    unit="",
    range=(0.0, 1.0),
    places=3,
    formula="sum over both labels of share of the clips called so * |1 or 0 for the label - share generated|",
)
BRIER: Final = MetricDefinition(
    metric="label-brier",
    title="Brier",
    meaning="mean squared error, 0 to 1",
    group="calibration",
    better="less",
    unit="",
    range=(0.0, 1.0),
    places=3,
    formula="mean of (1 or 0 for the label - 1 or 0 for the truth) squared: the share of wrong labels",
)
LENIENCY: Final = MetricDefinition(
    metric="leniency",
    title="Leniency",
    meaning="mean of its score less people's",
    group=HABIT,
    better="neither",
    unit="",
    range=(-4.0, 4.0),
    places=2,
    formula="mean of (score given - people's score)",
)
GAVE: Final = MetricDefinition(
    metric="people-by-score",
    title="Gave",
    meaning="people's mean score of the clips that were given this one",
    group="calibration",
    better="neither",
    unit="",
    range=(1.0, 5.0),
    places=2,
    formula="mean of people's scores over the clips given that score",
)
TOKENS_EACH: Final = MetricDefinition(
    metric="tokens-each",
    title="Tokens each",
    meaning="mean of an answer's tokens, in and out",
    group="cost",
    better="less",
    unit="tokens",
    range=_NO_END,
    places=0,
    formula="sum of input and output tokens / answers that report both",
)
USD_EACH: Final = MetricDefinition(
    metric="usd-each",
    title="USD each",
    meaning="mean cost of an answer",
    group="cost",
    better="less",
    unit="USD",
    range=_NO_END,
    places=5,
    formula="sum of costs / answers whose price is known",
)
SECONDS: Final = MetricDefinition(
    metric="seconds",
    title="Seconds",
    meaning="mean time from question to answer",
    group="cost",
    better="less",
    unit="s",
    range=_NO_END,
    places=2,
    formula="sum of latencies / answers that report theirs",
)
OWN: Final = (
    DIFFERENCE,
    READABLE,
    SCORE_GIVEN,
    CALLED_REAL,
    CALLED_GENERATED,
    ECE,
    BRIER,
    LENIENCY,
    GAVE,
    TOKENS_EACH,
    USD_EACH,
    SECONDS,
)
