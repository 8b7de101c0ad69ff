"""Metrics of the protocol `realism`: agreement of scores and reasons with people's."""

from functools import partial

from unreel.core.question import Instrument
from unreel.protocols.metric_definitions import (
    PART_VARIANTS,
    MetricDefinition,
    ProtocolMetrics,
    build_detection_metric_definitions,
)

INSTRUMENT = Instrument("realism", 2)
_correlation = partial(MetricDefinition, unit="", range=(-1.0, 1.0), places=3)
METRICS = ProtocolMetrics(
    declared=(
        _correlation(
            metric="plcc",
            title="PLCC",
            meaning="linear correlation with people's scores",
            group="score",
            formula="Pearson's r of the scores given and people's",
        ),
        _correlation(
            metric="srocc",
            title="SROCC",
            meaning="rank correlation with people's scores",
            group="score",
            formula="Pearson's r of the ranks of both; equal scores share their mean rank",
        ),
        MetricDefinition(
            metric="pcr",
            title="PCR",
            meaning="pairs of clips put in the same order as by people",
            group="score",
            formula="pairs in the same order / pairs that people order; a tie is not the same order",
            unit="",
            range=(0.0, 1.0),
            places=3,
        ),
        *build_detection_metric_definitions("score", "is scored less realistic than"),
        _correlation(
            metric="sts",
            title="STS",
            meaning="similarity of the reasons to people's",
            group="reasons",
            formula="mean cosine of the sentence embeddings of both reasons",
        ),
        MetricDefinition(
            metric="family",
            title="Error family",
            meaning="readable families of errors that are those people saw",
            group="family",
            formula="100 * families named as people do / families named, of clips for which people named one",
        ),
    ),
    ranking="srocc",
    leading=("srocc", "plcc", "pcr", "sts"),
    exported=("plcc", "srocc", "pcr"),
    variants=(
        *PART_VARIANTS,
        (
            ": family=F",
            "of the clips whose errors annotators assigned to the family F, for some metrics",
        ),
        ("-impute-3", "an unreadable score counts as 3; failures are excluded"),
    ),
    by_part=("srocc", "plcc", "pcr"),
)
