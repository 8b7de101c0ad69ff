"""Bias of a reviewer towards "real", separate from its sensitivity."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.arena.answers.answer_table import (
    SAID_REAL,
    SeasonAnswerTable,
    build_answer_grid,
    get_generated_clip_mask,
    get_real_clip_mask,
)
from unreel.arena.boards.entrant_comparison import (
    estimate_by_scene_jackknife,
    estimate_percentage_by_jackknife,
    sum_by_scene,
)
from unreel.core.estimate import Measured
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.row_sample import Array

_HALF: Final = 0.5
"""Correction of each count (Hautus 1995), so that a reviewer without errors has a finite sensitivity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerBias:
    """Bias and sensitivity of one reviewer under one condition."""

    condition: str
    reviewer: str
    said_real: Measured
    """Percentage of answers "real", mean over real and generated clips; 50 is unbiased."""
    sensitivity: Measured
    """Sensitivity d': distance between real and generated clips in standard deviations; 0 is guessing."""
    criterion: Measured
    """Criterion c: above 0 the reviewer calls doubtful clips real, below 0 generated."""


def measure_reviewer_biases(play: SeasonAnswerTable) -> tuple[ReviewerBias, ...]:
    """Return the bias towards "real" of every reviewer, including baselines; controls are excluded."""
    grid = build_answer_grid(play)
    generated, filmed = get_generated_clip_mask(play.lineup), get_real_clip_mask(play.lineup)
    biases = []
    for name, line in zip(play.reviewers, grid, strict=True):
        read = (line >= 0) & (generated | filmed)
        says_real = line[read] == SAID_REAL
        sides = generated[read], filmed[read]
        columns = [column.astype(np.float64) for s in sides for column in (says_real & s, s)]
        sums = sum_by_scene(play.lineup.scene[read].astype(np.int64), *columns)
        n = int(read.sum())
        biases.append(
            ReviewerBias(
                condition=play.condition,
                reviewer=name,
                said_real=estimate_percentage_by_jackknife(_compute_balanced_real_rate, sums, n=n),
                sensitivity=estimate_by_scene_jackknife(_compute_sensitivity, sums, n=n).value,
                criterion=estimate_by_scene_jackknife(_compute_response_criterion, sums, n=n).value,
            )
        )
    return tuple(biases)


def _compute_balanced_real_rate(sums: Array) -> Array:
    shares: Array = PERCENT * (sums[:, 0] / sums[:, 1] + sums[:, 2] / sums[:, 3]) / 2
    return shares


def _compute_sensitivity(sums: Array) -> Array:
    missed, passed = _compute_normal_quantiles(sums)
    return passed - missed


def _compute_response_criterion(sums: Array) -> Array:
    missed, passed = _compute_normal_quantiles(sums)
    middle: Array = (missed + passed) / 2
    return middle


def _compute_normal_quantiles(sums: Array) -> tuple[Array, Array]:
    """Compute the normal quantiles of the rates at which generated and real clips are called real."""
    from scipy.special import ndtri

    totals = np.where(sums[:, 1::2] > 0, sums[:, 1::2], np.nan)
    shares = (sums[:, 0::2] + _HALF) / (totals + 2 * _HALF)
    missed, passed = ndtri(shares).T
    return missed, passed
