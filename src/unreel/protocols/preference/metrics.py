"""Metrics of the protocol `preference`: accuracy over both presentation orders, and position bias."""

from unreel.core.question import Instrument
from unreel.protocols.metric_definitions import (
    ALL_PAIRS,
    HABIT,
    PART_VARIANTS,
    MetricDefinition,
    ProtocolMetrics,
)

INSTRUMENT = Instrument("preference", 1)
METRICS = ProtocolMetrics(
    declared=(
        MetricDefinition(
            metric="accuracy",
            title="Accuracy",
            meaning="mean of both orders' accuracy, so that neither order counts more",
            group="classification",
            formula="(real shown first + real shown second) / 2",
        ),
        MetricDefinition(
            metric="pooled",
            title="Pooled accuracy",
            meaning="right among valid answers, all pairs in one pool",
            group="classification",
            formula="100 * right / pairs",
        ),
        MetricDefinition(
            metric="real-first-accuracy",
            title="Real shown first",
            meaning="right when the real clip came first",
            group="classification",
            formula="100 * right / pairs with the real clip first",
        ),
        MetricDefinition(
            metric="real-second-accuracy",
            title="Real shown second",
            meaning="right when the real clip came second",
            group="classification",
            formula="100 * right / pairs with the real clip second",
        ),
        MetricDefinition(
            metric="position-bias",
            title="Position bias",
            meaning="above 0, the clip shown first is called real more often",
            group=HABIT,
            better="neither",
            range=(-50.0, 50.0),
            formula="(real shown first - real shown second) / 2",
        ),
    ),
    ranking="accuracy",
    leading=("accuracy", "pooled", "real-first-accuracy", "real-second-accuracy"),
    exported=("accuracy", "pooled", "position-bias"),
    class_metrics=("real-first-accuracy", "real-second-accuracy", "position-bias"),
    by_creator=("pooled",),
    variants=(
        *PART_VARIANTS,
        (ALL_PAIRS, "over every queried pair: one that failed or cannot be read is wrong"),
    ),
    by_part=("accuracy",),
)
