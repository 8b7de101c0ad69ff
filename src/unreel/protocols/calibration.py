"""Calibration of a reviewer: labels against the truth, realism scores against people's."""

from collections.abc import Sequence
from typing import Any

from unreel.core.clip import Generated
from unreel.core.estimate import Measured, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.realism.scorer import RealismRow
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.stats.bootstrap import bootstrap_mean
from unreel.stats.detection_metrics import CalibrationMetrics, measure_probability_calibration

_SCALE = (1.0, 5.0)


def measure_label_calibration(
    rows: Sequence[ScoredQuestion[Any, Any]], *, seed: int
) -> CalibrationMetrics:
    """Measure the calibration of `trace` or `reality` labels, read as probabilities of 0 or 1.

    A reported confidence is ignored, so there are at most two bins: the clips called real and the
    clips called generated. A clip counts once, regardless of the number of its annotation rows.
    """
    clips = {str(row.subject): row for row in rows if isinstance(_find_answered_label(row), Label)}
    return measure_probability_calibration(
        [float(is_generated_truth(row.truth)) for row in clips.values()],
        [float(_find_answered_label(row) is Label.GENERATED) for row in clips.values()],
        seed=seed,
        clusters=[row.cluster for row in clips.values()],
    )


def compute_realism_calibration(
    rows: Sequence[RealismRow], *, seed: int
) -> tuple[Measured, dict[int, Measured]]:
    """Compute the leniency, and people's mean score for each score that the reviewer gave.

    The leniency is the mean difference of the reviewer's and people's scores; above 0, the reviewer
    finds clips more realistic. Only readable answers count.
    """
    scores = [
        (row.cluster, row.outcome.score, row.truth.score)
        for row in rows
        if not isinstance(row.outcome, Failure) and isinstance(row.outcome.score, int)
    ]
    if not scores:
        return Unmeasured("no score could be read"), {}
    gaps = [score - people for _, score, people in scores]
    clips = [clip for clip, _, _ in scores]
    max_gap = _SCALE[1] - _SCALE[0]
    leniency = bootstrap_mean(gaps, seed=seed, clusters=clips, bounds=(-max_gap, max_gap))
    people_by_score: dict[int, Measured] = {}
    for score in sorted({score for _, score, _ in scores}):
        ratings = [(clip, people) for clip, other, people in scores if other == score]
        people_by_score[score] = bootstrap_mean(
            [value for _, value in ratings],
            seed=seed,
            clusters=[clip for clip, _ in ratings],
            bounds=_SCALE,
        )
    return leniency, people_by_score


def _find_answered_label(row: ScoredQuestion[Any, Any]) -> object:
    return None if isinstance(row.outcome, Failure) else row.outcome.label


def is_generated_truth(truth: object) -> bool:
    """Return whether the ground truth of `trace` or `reality` is a generated clip."""
    if isinstance(truth, TraceTruth):
        return truth.label is Label.GENERATED
    return isinstance(truth, Generated)
