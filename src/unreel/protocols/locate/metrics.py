"""Metrics of the protocol `locate`; the names of some end with the convention that defines them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from unreel.core.question import Instrument
from unreel.protocols.metric_definitions import (
    ANSWERED_REAL,
    FAKE_ACCURACY,
    PART_VARIANTS,
    REAL_ACCURACY,
    MetricDefinition,
    ProtocolMetrics,
)

INSTRUMENT = Instrument("locate", 1)
AVERAGED = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
"""Thresholds of tIoU over which recall, and ActivityNet's mAP, are averaged: 0.5, 0.55, ... 0.95."""
THRESHOLDS = (0.3, 0.35, 0.4, 0.45, *AVERAGED)
RECALLS = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentMatchingConvention:
    """A convention for matching segments, and its metrics of average precision and recall."""

    name: str
    precisions: Mapping[str, tuple[float, ...]]
    """tIoU thresholds over which average precision is averaged, by metric."""
    recalls: Mapping[str, int]
    """Number of answered segments per clip that recall considers, by metric."""


ACTIVITYNET = SegmentMatchingConvention(
    "activitynet",
    {
        "map-activitynet": AVERAGED,
        "map-0.3-activitynet": THRESHOLDS,
        **{f"ap-{t:g}-activitynet": (t,) for t in (0.3, 0.5, 0.7, 0.75, 0.9, 0.95)},
    },
    {f"ar-{n}-activitynet": n for n in (10, 20, 50, 100)},
)
AVDEEPFAKE1M = SegmentMatchingConvention(
    "avdeepfake1m",
    {f"ap-{t:g}-avdeepfake1m": (t,) for t in (0.5, 0.75, 0.9, 0.95)},
    {f"ar-{n}-avdeepfake1m": n for n in (5, 10, 20, 50, 100)},
)


_metric = partial(MetricDefinition, unreadable="worst")


def _define_precision_metric(
    name: str, thresholds: tuple[float, ...], rule: str
) -> MetricDefinition:
    at = f"tIoU {thresholds[0]:g}"
    many = len(thresholds) > 1
    return _metric(
        metric=name,
        title=f"{'mAP' if many else 'AP'} {thresholds[0]:g}{f' to {thresholds[-1]:g}' if many else ''} ({rule})",
        meaning=f"average precision of segments ranked by confidence, at {at}"
        + (f" to {thresholds[-1]:g} in steps of 0.05, averaged" if many else ""),
        group="precision",
        formula=f"100 * area below the interpolated precision-recall curve, convention {rule}",
    )


def _define_recall_metric(name: str, n: int, rule: str) -> MetricDefinition:
    per_clip = "per clip on average" if rule == "activitynet" else "of each clip"
    return _metric(
        metric=name,
        title=f"AR@{n} ({rule})",
        meaning=f"marked segments met by {n} segments {per_clip}, over tIoU 0.5 to 0.95",
        group="recall",
        formula=f"100 * mean over tIoU 0.5, 0.55, ... 0.95 of met / marked segments, convention {rule}",
    )


def _define_convention_metrics(
    convention: SegmentMatchingConvention,
) -> tuple[MetricDefinition, ...]:
    rule = convention.name
    return (
        *(_define_precision_metric(name, t, rule) for name, t in convention.precisions.items()),
        *(_define_recall_metric(name, n, rule) for name, n in convention.recalls.items()),
    )


METRICS = ProtocolMetrics(
    declared=(
        _metric(
            metric="segment-f1",
            title="Segment F1",
            meaning="harmonic mean of precision and recall of segments, paired from tIoU 0.5 on",
            group="time",
            formula="100 * 2 * pairs / (answered segments + marked segments)",
        ),
        replace(FAKE_ACCURACY, meaning="clips with a marked segment in which one was answered"),
        replace(REAL_ACCURACY, meaning="clean clips in which no segment was answered"),
        replace(ANSWERED_REAL, meaning="answers without a segment, of all answers: the bias"),
        *_define_convention_metrics(ACTIVITYNET),
        *_define_convention_metrics(AVDEEPFAKE1M),
        *(
            _metric(
                metric=f"recall-{threshold:g}",
                title=f"Recall at tIoU {threshold:g}",
                meaning=f"marked segments that an answered one meets with tIoU {threshold:g} or more",
                group="recall",
                formula="100 * met segments / marked segments",
            )
            for threshold in RECALLS
        ),
        _metric(
            metric="mean-tiou",
            title="Mean tIoU",
            meaning="overlap in time of each marked segment with the best answered one",
            group="time",
            formula="mean over marked segments of 100 * highest shared time / joint time; none is 0",
        ),
        _metric(
            metric="tube-viou",
            title="Tube vIoU",
            meaning="overlap in space and time of each marked tube with the best answered one",
            group="box",
            formula="mean over marked tubes of 100 * highest sum of box IoU over shared time / joint time",
        ),
        _metric(
            metric="pointing-hit",
            title="Pointing hits",
            meaning="marked tubes in which the centre of the nearest answered box is",
            group="box",
            formula="100 * centres inside the marked box, in the middle of the shared time / marked tubes",
        ),
        _metric(
            metric="category-f1",
            title="Category F1",
            meaning="harmonic mean of precision and recall of categories, over paired segments",
            group="category",
            formula="100 * 2 * equal categories of pairs / (answered + marked categories)",
        ),
        MetricDefinition(
            metric="onset-error",
            title="Onset error",
            meaning="distance of the starts, for marked segments that an answered one overlaps",
            group="time",
            better="less",
            unit="s",
            range=(0.0, float("inf")),
            places=2,
            formula="mean over overlapped marked segments of |start answered - start marked|",
        ),
        MetricDefinition(
            metric="false-alarms",
            title="False alarms per clean hour",
            meaning="segments answered in clean clips, for each hour of them",
            group="time",
            better="less",
            unit="/h",
            range=(0.0, float("inf")),
            places=2,
            formula="segments answered in clean clips / hours of clean clips",
        ),
    ),
    ranking="segment-f1",
    leading=(
        "segment-f1",
        "map-activitynet",
        "ar-10-activitynet",
        "mean-tiou",
        "tube-viou",
        "onset-error",
        "false-alarms",
    ),
    exported=("segment-f1", "fake-accuracy", "real-accuracy", "mean-tiou", "tube-viou"),
    class_metrics=("real-accuracy", "fake-accuracy", "answered-real"),
    by_creator=("fake-accuracy", "mean-tiou"),
    variants=PART_VARIANTS,
    by_part=("segment-f1", "mean-tiou", "fake-accuracy", "real-accuracy"),
)
