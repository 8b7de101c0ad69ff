"""Metrics of both leaderboards: name, description, and whether high or low is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from unreel.core.errors import UnknownNameError

REAL_CLIPS: Final = "real clips"
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


_ALL: Final = (
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

REVIEWER_FIGURES: Final = _select_leaderboard_metrics("reviewers", *_ALL)
CREATOR_FIGURES: Final = _select_leaderboard_metrics("creators", *_ALL)


def get_leaderboard_metric(name: str) -> LeaderboardMetric:
    """Return the metric called `name`; raise `UnknownNameError`, with the nearest name, if unknown."""
    known = {**REVIEWER_FIGURES, **CREATOR_FIGURES}
    if name not in known:
        kind = "figure"
        raise UnknownNameError(kind, name, sorted(known))
    return known[name]
