"""What `trace` measures: labels, explanations, boxes and starts, each step harder than the one before."""

from typing import Final

from unreel.core.question import Instrument
from unreel.protocols.figures import (
    ANSWERED_REAL,
    FAKE_ACCURACY,
    HABIT,
    REAL_ACCURACY,
    Figure,
    Figures,
)

INSTRUMENT: Final = Instrument("trace", 1)
WHOLE_FRAME: Final = 0.95
"""A box of at least this share of the frame names the whole frame."""
FIGURES: Final = Figures(
    declared=(
        Figure(
            metric="overall",
            title="Overall",
            meaning="mean of accuracy, explanation, box IoU and 100 less time distance",
            group="overall",
        ),
        Figure(
            metric="accuracy",
            title="Accuracy",
            meaning="right labels among all answers; one that cannot be read is wrong",
            group="classification",
            unreadable="worst",
        ),
        FAKE_ACCURACY,
        REAL_ACCURACY,
        Figure(
            metric="explanation",
            title="Explanation",
            meaning="judge's score of the reason given, 0, 50 or 100",
            group="explanation",
        ),
        Figure(
            metric="box-iou",
            title="Box IoU",
            meaning="overlap of the box with the marked one",
            group="box",
        ),
        Figure(
            metric="box-distance",
            title="Box distance",
            meaning="distance of the boxes' centres, of the diagonal",
            group="box",
            better="less",
        ),
        Figure(
            metric="time-distance",
            title="Time distance",
            meaning="distance of the starts, of the clip's length",
            group="time",
            better="less",
        ),
        ANSWERED_REAL,
        Figure(
            metric="whole-frame-boxes",
            title="Whole-frame boxes",
            meaning="boxes that cover 95 % of the frame or more",
            group=HABIT,
            better="neither",
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
        "fake-accuracy",
        "real-accuracy",
        "box-iou",
        "box-distance",
        "time-distance",
    ),
    steps=("accuracy", "explanation", "box-iou", "time-distance"),
    sides=("real-accuracy", "fake-accuracy", "answered-real"),
    by_creator=("fake-accuracy", "box-iou", "time-distance"),
    by_category=("fake-accuracy", "explanation", "box-iou", "time-distance"),
)
