"""Bias of a reviewer towards "real", separate from its sensitivity."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from unreel.arena.answers.play import (
    SAID_REAL,
    AnswerTable,
    build_answer_grid,
    select_generated_clips,
    select_real_clips,
)
from unreel.arena.boards.comparison import jackknife_difference, jackknife_proportion, sum_by_scene
from unreel.core.estimate import Measured
from unreel.protocols.formulas import PERCENT
from unreel.stats.sample import Array

_HALF: Final = 0.5
"""Added to each count of a side (Hautus 1995), so that a reviewer that never errs has a finite distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerBias:
    """Bias and sensitivity of one reviewer under one condition."""

    condition: str
    reviewer: str
    said_real: Measured
    """Percent of its answers, each side counting half: 50 leans to neither side."""
    sensitivity: Measured
    """d': how far apart real and generated clips lie for it, in standard deviations; 0 is guessing."""
    criterion: Measured
    """c: above 0 it calls a clip real when in doubt, below 0 generated."""


def measure_reviewer_biases(play: AnswerTable) -> tuple[ReviewerBias, ...]:
    """Return the bias of every reviewer, including baselines; controls are excluded."""
    grid = build_answer_grid(play)
    made, filmed = select_generated_clips(play.lineup), select_real_clips(play.lineup)
    found = []
    for name, line in zip(play.reviewers, grid, strict=True):
        read = (line >= 0) & (made | filmed)
        says_real = line[read] == SAID_REAL
        sides = made[read], filmed[read]
        columns = [column.astype(np.float64) for s in sides for column in (says_real & s, s)]
        sums = sum_by_scene(play.lineup.scene[read].astype(np.int64), *columns)
        n = int(read.sum())
        found.append(
            ReviewerBias(
                condition=play.condition,
                reviewer=name,
                said_real=jackknife_proportion(_compute_balanced_share, sums, n=n),
                sensitivity=jackknife_difference(_compute_sensitivity, sums, n=n).value,
                criterion=jackknife_difference(_compute_criterion, sums, n=n).value,
            )
        )
    return tuple(found)


def _compute_balanced_share(sums: Array) -> Array:
    shares: Array = PERCENT * (sums[:, 0] / sums[:, 1] + sums[:, 2] / sums[:, 3]) / 2
    return shares


def _compute_sensitivity(sums: Array) -> Array:
    missed, passed = _compute_normal_quantiles(sums)
    return passed - missed


def _compute_criterion(sums: Array) -> Array:
    missed, passed = _compute_normal_quantiles(sums)
    middle: Array = (missed + passed) / 2
    return middle


def _compute_normal_quantiles(sums: Array) -> tuple[Array, Array]:
    """Compute normal quantiles of the rates at which generated and real clips were called real."""
    from scipy.special import ndtri

    counted = np.where(sums[:, 1::2] > 0, sums[:, 1::2], np.nan)
    shares = (sums[:, 0::2] + _HALF) / (counted + 2 * _HALF)
    missed, passed = ndtri(shares).T
    return missed, passed
