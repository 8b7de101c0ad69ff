"""Metrics of the protocol `trace`: labels, explanations, boxes and onsets."""

from dataclasses import replace
from functools import partial

from unreel.core.question import Instrument
from unreel.protocols.metric_definitions import (
    ANSWERED_REAL,
    F1,
    FAKE_ACCURACY,
    HABIT,
    PART_VARIANTS,
    REAL_ACCURACY,
    MetricDefinition,
    ProtocolMetrics,
)

INSTRUMENT = Instrument("trace", 1)
WHOLE_FRAME = 0.95
"""Minimum area of a box, as a fraction of the frame, that counts as the whole frame."""
_metric = partial(MetricDefinition, unreadable="worst")
METRICS = ProtocolMetrics(
    declared=(
        _metric(
            metric="overall",
            title="Overall",
            meaning="mean of accuracy, explanation, box IoU and 100 less time distance",
            group="overall",
            formula="(accuracy + explanation + box IoU + 100 - time distance) / 4",
        ),
        _metric(
            metric="accuracy",
            title="Accuracy",
            meaning="right labels among all answers; one that cannot be read is wrong",
            group="classification",
            formula="100 * right labels / annotation rows",
        ),
        replace(F1, unreadable="worst"),
        replace(FAKE_ACCURACY, unreadable="worst"),
        replace(REAL_ACCURACY, unreadable="worst"),
        _metric(
            metric="explanation",
            title="Explanation",
            meaning="judge's score of the reason given, 0, 50 or 100",
            group="explanation",
            formula="mean over generated rows of the judge's 0, 50 or 100; no reason given is 0",
        ),
        _metric(
            metric="box-iou",
            title="Box IoU",
            meaning="overlap of the box with the marked one",
            group="box",
            formula="mean over generated rows of 100 * shared area / joint area; no box is 0",
        ),
        _metric(
            metric="box-distance",
            title="Box distance",
            meaning="distance of the boxes' centres, of the diagonal",
            group="box",
            better="less",
            formula="mean over generated rows of 100 * distance of the centres / sqrt(2), in parts of the frame",
        ),
        _metric(
            metric="time-distance",
            title="Time distance",
            meaning="distance of the starts, of the clip's length",
            group="time",
            better="less",
            formula="mean over generated rows of 100 * |start answered - start marked| / length, at most 100",
        ),
        ANSWERED_REAL,
        MetricDefinition(
            metric="whole-frame-boxes",
            title="Whole-frame boxes",
            meaning="boxes that cover 95 % of the frame or more",
            group=HABIT,
            better="neither",
            formula="100 * boxes of 95 % of the frame or more / boxes",
        ),
    ),
    ranking="overall",
    ranking_unjudged="accuracy",
    leading=(
        "overall",
        "accuracy",
        "fake-accuracy",
        "real-accuracy",
        "explanation",
        "box-iou",
        "box-distance",
        "time-distance",
    ),
    exported=(
        "accuracy",
        "f1",
        "fake-accuracy",
        "real-accuracy",
        "box-iou",
        "box-distance",
        "time-distance",
    ),
    steps=("accuracy", "explanation", "box-iou", "time-distance"),
    class_metrics=("real-accuracy", "fake-accuracy", "answered-real"),
    by_creator=("fake-accuracy", "box-iou", "time-distance"),
    by_category=("fake-accuracy", "explanation", "box-iou", "time-distance"),
    variants=(
        *PART_VARIANTS,
        ("-per-video", "the mean of a clip's annotation rows first, then of clips"),
        (
            "-best-of",
            "against the one trace of the clip that the answer meets best, by IoU, then by time",
        ),
    ),
    by_part=("accuracy", "f1", "fake-accuracy", "real-accuracy", "box-iou", "time-distance"),
)
