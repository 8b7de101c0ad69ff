"""Metrics of the protocol `reality`: accuracies on real clips and per creator, detection rates."""

from dataclasses import replace

from unreel.core.question import Instrument
from unreel.protocols.metric_definitions import (
    ALL_CLIPS,
    ANSWERED_REAL,
    F1,
    FAKE_ACCURACY,
    PART_VARIANTS,
    REAL_ACCURACY,
    MetricDefinition,
    ProtocolMetrics,
    build_detection_metric_definitions,
)

INSTRUMENT = Instrument("reality", 2)
METRICS = ProtocolMetrics(
    declared=(
        MetricDefinition(
            metric="balanced",
            title="Balanced accuracy",
            meaning="mean of both sides' accuracy, then of creators",
            group="classification",
            formula="mean over creators X of 50 * (right on real clips / real clips + right on X's / X's clips)",
        ),
        MetricDefinition(
            metric="pooled",
            title="Pooled accuracy per creator",
            meaning="right among the real clips and one creator's, then the mean over creators",
            group="classification",
            formula="mean over creators X of 100 * right / (real clips + X's clips)",
        ),
        MetricDefinition(
            metric="accuracy",
            title="Accuracy",
            meaning="right among valid answers, every clip alike",
            group="classification",
            formula="100 * right answers / valid answers",
        ),
        F1,
        FAKE_ACCURACY,
        REAL_ACCURACY,
        ANSWERED_REAL,
        replace(
            FAKE_ACCURACY,
            metric="caught",
            meaning="clips of one creator that were called generated",
            formula="100 * its clips called generated / its clips",
        ),
        *build_detection_metric_definitions(
            "confidence", "gets a higher probability of being generated than"
        ),
        MetricDefinition(
            metric="brier",
            title="Brier score",
            meaning="mean squared distance of the reported probability from 0 (real) or 1 (generated)",
            group="confidence",
            formula="mean of (P(generated) - truth)^2; P is the confidence, or 1 less it if the label is real",
            better="less",
            unit="",
            range=(0.0, 1.0),
            places=3,
        ),
        MetricDefinition(
            metric="ece",
            title="Calibration error",
            meaning="mean distance of the reported probability from the fraction that was generated",
            group="confidence",
            formula="mean over ten bins of equal mass of |mean P(generated) - share generated|, by clips",
            better="less",
            unit="",
            range=(0.0, 1.0),
            places=3,
        ),
    ),
    ranking="balanced",
    leading=("balanced", "pooled", "accuracy", "f1", "fake-accuracy", "real-accuracy"),
    exported=(
        "pooled",
        "balanced",
        "accuracy",
        "f1",
        "real-accuracy",
        "fake-accuracy",
        "answered-real",
    ),
    class_metrics=("real-accuracy", "fake-accuracy", "answered-real"),
    per_creator="caught",
    variants=(
        *PART_VARIANTS,
        (": X", "of creator X alone; for a mean over creators, of X against all real clips"),
        (": X/SETTING", "the same for the clips that X made in one setting"),
        (ALL_CLIPS, "over every queried clip: one that failed or cannot be read is wrong"),
    ),
    by_part=("accuracy", "balanced", "f1", "fake-accuracy", "real-accuracy"),
)
