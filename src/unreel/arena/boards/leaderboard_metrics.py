"""Metrics of both leaderboards: name, description, and whether high or low is better."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

from unreel.core.errors import UnknownNameError
from unreel.core.estimate import Estimate, Measured, Unmeasured

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
    """One metric of a leaderboard: its name, title, description and direction."""

    name: str
    title: str
    words: str
    """Description of the metric in one sentence, for readers of the board."""
    board: Literal["reviewers", "creators"]
    better: Literal["high", "low", "neither"]
    unit: Literal["percent", "logit"] = "percent"
    decides: bool = False
    """Whether the board is ranked by this metric."""


def _select_leaderboard_metrics(
    board: Literal["reviewers", "creators"], *metrics: LeaderboardMetric
) -> Mapping[str, LeaderboardMetric]:
    return {metric.name: metric for metric in metrics if metric.board == board}


_ALL = (
    LeaderboardMetric(
        name="accuracy",
        title="Accuracy",
        words="Readable answers that are right, real clips pooled with one creator's at a time; mean over creators.",
        board="reviewers",
        better="high",
        decides=True,
    ),
    LeaderboardMetric(
        name="accuracy-all",
        title="Accuracy, all clips",
        words="The same over all queried clips: no readable answer counts as wrong.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="balanced",
        title="Balanced",
        words="Half for real clips and half for generated ones, whatever their numbers; mean over creators.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="balanced-all",
        title="Balanced, all clips",
        words="The same over all queried clips: no readable answer counts as wrong.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="plain",
        title="Plain",
        words="Readable answers that are right, of all clips in one pool.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="plain-all",
        title="Plain, all clips",
        words="Correctly judged clips, of all queried clips.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="caught",
        title="Caught",
        words="Generated clips with a readable answer that are called generated; mean over creators.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="false-alarms",
        title="False alarms",
        words="Real clips with a readable answer that are called generated.",
        board="reviewers",
        better="low",
    ),
    LeaderboardMetric(
        name="control-false-alarms",
        title="Control false alarms",
        words="Changed real clips (controls) with a readable answer that are called generated; mean over controls.",
        board="reviewers",
        better="low",
    ),
    LeaderboardMetric(
        name="said-real",
        title="Said real",
        words="Clips called real, of all real and generated clips with a readable answer: the bias towards real.",
        board="reviewers",
        better="neither",
    ),
    LeaderboardMetric(
        name="answered",
        title="Answered",
        words="Questions with a readable answer.",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="ability",
        title="Ability",
        words="Discrimination between real clips and those of a creator of mean realism, in log-odds (skill model).",
        board="reviewers",
        better="high",
        unit="logit",
    ),
    LeaderboardMetric(
        name="bias",
        title="Bias",
        words="Log-odds with which it calls a real clip generated (skill model); below 0, it is biased towards real.",
        board="reviewers",
        better="neither",
        unit="logit",
    ),
    LeaderboardMetric(
        name="pair-accuracy",
        title="Finds the real one",
        words="Pairs of a real and a generated clip in which it takes the real one for real (preference play).",
        board="reviewers",
        better="high",
    ),
    LeaderboardMetric(
        name="took-first",
        title="Took the first",
        words="Pairs in which it takes the clip shown first for real: far from 50, the order biases it (preference play).",
        board="reviewers",
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
        better="high",
        unit="logit",
    ),
    LeaderboardMetric(
        name="strength",
        title="Strength",
        words="Log-odds by which its clip is taken for the real one of two (preference play, Bradley and Terry).",
        board="creators",
        better="high",
        unit="logit",
    ),
    LeaderboardMetric(
        name="taken-for-real",
        title="Taken for real",
        words="Pairs in which its clip is taken for the real one (preference play).",
        board="creators",
        better="high",
    ),
    LeaderboardMetric(
        name="called-generated",
        title="Called generated",
        words="Readable answers that wrongly call this control generated; mean over reviewers.",
        board="creators",
        better="low",
    ),
)

REVIEWER_FIGURES = _select_leaderboard_metrics("reviewers", *_ALL)
CREATOR_FIGURES = _select_leaderboard_metrics("creators", *_ALL)


def get_leaderboard_metric(name: str) -> LeaderboardMetric:
    """Return the metric called `name`; raise `UnknownNameError`, with the nearest name, if unknown."""
    known = {**REVIEWER_FIGURES, **CREATOR_FIGURES}
    if name not in known:
        raise UnknownNameError("figure", name, sorted(known))
    return known[name]
