"""Metrics and rows of the leaderboards, and differences between every two entrants."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.protocols.paper_formulas import PERCENT
from unreel.stats.jackknife_values import MAX_GROUPS, JackknifeValues
from unreel.stats.paired_differences import (
    DifferenceTestResult,
    adjust_p_values_by_holm,
    compute_difference_interval,
)
from unreel.stats.row_sample import Array, BoolArray, IntArray

_NO_CREATOR = Unmeasured("a control is no creator")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One entrant on its leaderboard. All rates are in percent."""

    name: str
    kind: Literal["reviewer", "creator", "floor", "control"]
    figures: Mapping[str, Measured]
    """Metrics by the names in `leaderboard_metrics`: accuracy, balanced, said-real, ability, fakeness, realism, ..."""
    rank: int | None = None
    """Rank by unrounded means; `None` for baselines, controls, and entrants with missing cells."""
    first_class: bool = False
    """Whether the entrant leads: the first one does not significantly beat it (paired differences,
    Holm), a reviewer beats the coin, and the interval of its balanced accuracy or of its right pairs
    is above 50 percent, corrected for the number of reviewers. A board with one entrant has no leader.
    """
    lacks: tuple[str, ...] = ()
    """Opponents without complete answers. A reviewer with missing opponents has no rank and
    does not affect other ranks; a creator is ranked by the complete reviewers.
    """
    above: Mapping[str, float] = field(default_factory=dict)
    """Fraction of resamples in which the entrant is above each other complete entrant of the board."""
    surely_above: tuple[str, ...] = ()
    """Entrants that this one significantly beats, corrected for all pairs of the board (Holm)."""


_CHANCE_PERCENT = 50.0
"""Balanced accuracy, or share of right pairs, of coins and of constant answers."""


def is_above_chance(percent: Measured, *, n_reviewers: int) -> bool:
    """Return whether the whole interval, widened for `n_reviewers` (Bonferroni), is above 50 percent."""
    if not isinstance(percent, Estimate):
        return False
    wider = NormalDist().inv_cdf(0.025 / n_reviewers) / NormalDist().inv_cdf(0.025)
    return percent.value - wider * (percent.value - percent.low) > _CHANCE_PERCENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerCreatorCell:
    """Rates of one reviewer on the clips of one creator or control."""

    reviewer: str
    creator: str
    caught: Measured
    """Percentage of "generated" among the readable answers about the creator's clips."""
    accuracy: Measured = _NO_CREATOR
    """Percentage of right answers among the readable ones, real clips pooled with the creator's."""
    balanced: Measured = _NO_CREATOR
    """Mean of the accuracies on real clips and on the creator's clips, in percent."""
    n_asked: int
    n_silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonLeaderboard:
    """Both leaderboards of a season under one condition."""

    condition: str
    reviewers: tuple[LeaderboardRow, ...]
    """Rows of reviewers: ranked ones, best first; then those with missing cells, then baselines."""
    creators: tuple[LeaderboardRow, ...]
    """Rows of creators: ranked ones, least caught first; then unranked ones, then controls."""
    cells: tuple[ReviewerCreatorCell, ...]
    """Cells by reviewer, creators before controls; combinations without a question are omitted."""
    n_scenes: int
    n_resamples: int
    sway: Mapping[str, Measured] = field(default_factory=dict)
    """Effect of one standard deviation of each nuisance on the log-odds of "generated"; empty without nuisances."""


REAL_CLIPS = "real clips"
"""Name of the real clips on leaderboards, for example in `LeaderboardRow.lacks`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardMetric:
    """One metric of a leaderboard: name, title, description and direction."""

    name: str
    title: str
    words: str
    """Description of the metric in one sentence, for readers of the board."""
    board: Literal["reviewers", "creators"] = "reviewers"
    better: Literal["high", "low", "neither"] = "high"
    unit: Literal["percent", "logit"] = "percent"
    decides: bool = False
    """Whether the board is ranked by this metric."""


_ALL = (
    LeaderboardMetric(
        name="accuracy",
        title="Accuracy",
        words="Readable answers that are right, real clips pooled with one creator's at a time; mean over creators.",
        decides=True,
    ),
    LeaderboardMetric(
        name="accuracy-all",
        title="Accuracy, all clips",
        words="The same over all queried clips: no readable answer counts as wrong.",
    ),
    LeaderboardMetric(
        name="balanced",
        title="Balanced",
        words="Half for real clips and half for generated ones, whatever their numbers; mean over creators.",
    ),
    LeaderboardMetric(
        name="balanced-all",
        title="Balanced, all clips",
        words="The same over all queried clips: no readable answer counts as wrong.",
    ),
    LeaderboardMetric(
        name="plain",
        title="Plain",
        words="Readable answers that are right, of all clips in one pool.",
    ),
    LeaderboardMetric(
        name="plain-all",
        title="Plain, all clips",
        words="Correctly judged clips, of all queried clips.",
    ),
    LeaderboardMetric(
        name="caught",
        title="Caught",
        words="Generated clips with a readable answer that are called generated; mean over creators.",
    ),
    LeaderboardMetric(
        name="false-alarms",
        title="False alarms",
        words="Real clips with a readable answer that are called generated.",
        better="low",
    ),
    LeaderboardMetric(
        name="control-false-alarms",
        title="Control false alarms",
        words="Changed real clips (controls) with a readable answer that are called generated; mean over controls.",
        better="low",
    ),
    LeaderboardMetric(
        name="said-real",
        title="Said real",
        words="Clips called real, of all real and generated clips with a readable answer: the bias towards real.",
        better="neither",
    ),
    LeaderboardMetric(name="answered", title="Answered", words="Questions with a readable answer."),
    LeaderboardMetric(
        name="ability",
        title="Ability",
        words="Discrimination between real clips and those of a creator of mean realism, in log-odds (skill model).",
        unit="logit",
    ),
    LeaderboardMetric(
        name="bias",
        title="Bias",
        words="Log-odds with which it calls a real clip generated (skill model); below 0, it is biased towards real.",
        better="neither",
        unit="logit",
    ),
    LeaderboardMetric(
        name="pair-accuracy",
        title="Finds the real one",
        words="Pairs of a real and a generated clip in which it takes the real one for real (preference play).",
    ),
    LeaderboardMetric(
        name="took-first",
        title="Took the first",
        words="Pairs in which it takes the clip shown first for real: far from 50, the order biases it (preference play).",
        better="neither",
    ),
    LeaderboardMetric(
        name="fakeness",
        title="Fakeness",
        words="Readable answers that call its clips generated; mean over reviewers.",
        board="creators",
        better="low",
        decides=True,
    ),
    LeaderboardMetric(
        name="fakeness-all",
        title="Fakeness, all clips",
        words="The same over all questions: no readable answer counts as not caught.",
        board="creators",
        better="low",
    ),
    LeaderboardMetric(
        name="fakeness-pooled",
        title="Fakeness, pooled",
        words="Readable answers that call its clips generated, of all reviewers in one pool.",
        board="creators",
        better="low",
    ),
    LeaderboardMetric(
        name="realism",
        title="Realism",
        words="Log-odds by which its clips are harder to catch than those of a mean creator (skill model).",
        board="creators",
        unit="logit",
    ),
    LeaderboardMetric(
        name="strength",
        title="Strength",
        words="Log-odds by which its clip is taken for the real one of two (preference play, Bradley and Terry).",
        board="creators",
        unit="logit",
    ),
    LeaderboardMetric(
        name="taken-for-real",
        title="Taken for real",
        words="Pairs in which its clip is taken for the real one (preference play).",
        board="creators",
    ),
    LeaderboardMetric(
        name="called-generated",
        title="Called generated",
        words="Readable answers that wrongly call this control generated; mean over reviewers.",
        board="creators",
        better="low",
    ),
)

REVIEWER_METRICS = {metric.name: metric for metric in _ALL if metric.board == "reviewers"}
CREATOR_METRICS = {metric.name: metric for metric in _ALL if metric.board == "creators"}


def get_leaderboard_metric(name: str) -> LeaderboardMetric:
    """Return the metric called `name`; raise `UnknownNameError`, with the nearest name, if unknown."""
    known = {**REVIEWER_METRICS, **CREATOR_METRICS}
    if name not in known:
        raise UnknownNameError("figure", name, sorted(known))
    return known[name]


MetricFunction = Callable[[Array], Array]
"""Function from sums, one set per row, to values; NaN if undefined."""
_EVEN = PERCENT / 2


def sum_by_scene(scene: IntArray, *columns: Array) -> Array:
    """Sum each of the equally long `columns` within each scene; return one row per scene with data."""
    _, group = np.unique(scene, return_inverse=True)
    sums = [np.bincount(group, weights=column) for column in columns]
    return np.stack(sums, axis=1) if len(scene) else np.zeros((0, len(columns)))


def estimate_by_scene_jackknife(
    function: MetricFunction, sums: Array, *, n: int, reach: float = math.inf
) -> tuple[Measured, float | None]:
    """Compute `function` over all scenes, with a jackknife interval and the p-value of its difference from 0.

    `sums` has one row per scene, `n` is the number of answers behind the sums, and `reach` is the
    largest possible absolute value.
    """
    if not n:
        return Unmeasured("nothing was answered on both sides"), None
    total = sums.sum(axis=0, keepdims=True)
    groups = np.arange(len(sums)) % MAX_GROUPS
    left = np.zeros((min(len(sums), MAX_GROUPS), sums.shape[1]))
    np.add.at(left, groups, sums)
    with np.errstate(divide="ignore", invalid="ignore"):  # empty sums
        value = float(function(total)[0])
        without = function(total - left)
    if not math.isfinite(value):
        return Unmeasured("needs answers about real and about generated clips"), None
    interval = compute_difference_interval(
        value, JackknifeValues(without), n=n, few=len(sums), reach=reach
    )
    if isinstance(interval, DifferenceTestResult):
        return interval.estimate, interval.p
    return interval, None


def estimate_percentage_by_jackknife(function: MetricFunction, sums: Array, *, n: int) -> Measured:
    """Compute `function` over all scenes as by `estimate_by_scene_jackknife`, within 0 to 100."""
    result, _ = estimate_by_scene_jackknife(
        lambda rows: function(rows) - _EVEN, sums, n=n, reach=_EVEN
    )
    if isinstance(result, Unmeasured):
        return result
    value, low, high = (end + _EVEN for end in (result.value, result.low, result.high))
    return replace(result, value=value, low=low, high=high)


def apply_holm_correction(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values with Holm's correction for multiple tests; a `None` stays and is not counted."""
    corrected = iter(adjust_p_values_by_holm([p for p in p_values if p is not None]))
    return [None if p is None else next(corrected) for p in p_values]


SURE = 0.05
"""Family-wise error rate of the claims."""
_TIE_DIGITS = 9
"""Number of decimal places at which means are compared: smaller differences are rounding errors."""


def rank_means(values: Sequence[float], *, better: Literal["high", "low"]) -> list[int]:
    """Return the rank of each mean, from 1; equal means share the better rank."""
    sign = -1 if better == "high" else 1
    keys = [round(sign * value, _TIE_DIGITS) for value in values]
    return [1 + sum(other < key for other in keys) for key in keys]


def compare_entrants(
    values: Array, *, better: Literal["high", "low"], n_scenes: int
) -> tuple[Array, BoolArray]:
    """Compare every two entrants of a leaderboard (rows and columns) on the same bootstrap resamples.

    `values` has one column per entrant: row 0 has the observed values, each further row a resample.
    The results are the fraction of resamples in which the row is above the column (a tie counts one
    half), and whether the row is significantly above the column, corrected for all pairs (Holm).
    """
    sign = 1.0 if better == "high" else -1.0
    observed, draws = sign * values[0], sign * values[1:]
    size = len(observed)
    above = np.full((size, size), 0.5)
    for i in range(size):
        gap = draws[:, [i]] - draws
        known = np.isfinite(gap)
        wins = np.where(known, (gap > 0) + 0.5 * (gap == 0), 0.0).sum(axis=0)
        above[i] = np.where(known.any(axis=0), wins / np.maximum(known.sum(axis=0), 1), 0.5)
    is_surely_above = np.zeros((size, size), dtype=np.bool_)
    if size > 1:
        chance = _compute_p_values(observed, draws, n_scenes=n_scenes)
        first, second = np.triu_indices(size, 1)
        corrected = np.array(adjust_p_values_by_holm(chance[first, second].tolist()))
        for i, j in zip(first[corrected <= SURE], second[corrected <= SURE], strict=True):
            winner, loser = (i, j) if observed[i] > observed[j] else (j, i)
            is_surely_above[winner, loser] = True
    return above, is_surely_above


def find_leading_entrants(
    values: Array, *, better: Literal["high", "low"], n_scenes: int, best: int | None = None
) -> BoolArray:
    """Return a mask of the entrants that the best one does not significantly beat.

    The differences between the best and each other entrant are tested on the same resamples and
    corrected by Holm. With one entrant there is no leader. `values` are those of
    `compare_entrants`. `best` is the index of the first entrant, if another metric decides it.
    """
    size = values.shape[1]
    if size <= 1:
        return np.zeros(size, dtype=np.bool_)
    sign = 1.0 if better == "high" else -1.0
    best = int(np.argmax(sign * values[0])) if best is None else best
    gap = sign * (values[0, best] - values[0])
    chance = _compute_p_values(sign * values[0], sign * values[1:], n_scenes=n_scenes)[best]
    others = np.delete(np.arange(size), best)
    leading = np.ones(size, dtype=np.bool_)
    beaten = np.array(adjust_p_values_by_holm(chance[others].tolist())) <= SURE
    leading[others] = ~(beaten & (gap[others] > 0))
    return leading


def _compute_p_values(observed: Array, draws: Array, *, n_scenes: int) -> Array:
    """Return p-values between every two entrants by Student's t, with bootstrap standard errors."""
    from scipy.special import stdtr

    if n_scenes <= 1 or not len(draws):
        return np.ones((len(observed), len(observed)))
    off = np.where(np.isfinite(draws), draws - observed, 0.0)
    off = off - off.mean(axis=0)
    together = off.T @ off / len(off) * n_scenes / (n_scenes - 1)
    variance = np.diagonal(together)
    spread = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * together, 0.0))
    gap = observed[:, None] - observed[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap == 0, 0.0, np.abs(gap) / spread)
    chance = 2 * stdtr(n_scenes - 1, -np.nan_to_num(t, posinf=np.inf))
    # No p-value is below that of a sign test in which all scenes agree.
    raised: Array = np.maximum(chance, 2.0 ** (1 - n_scenes))
    return raised
