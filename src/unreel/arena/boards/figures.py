"""Metrics of both boards: name, description, and whether high or low is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from unreel.core.errors import UnknownNameError

REAL_CLIPS: Final = "real clips"
"""Among the opponents that a reviewer lacks: it was not asked about all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardColumn:
    """One metric of a leaderboard: its name, title, description and direction."""

    name: str
    title: str
    words: str
    """One sentence for people who read the board."""
    board: Literal["reviewers", "creators"]
    better: Literal["high", "low", "neither"]
    unit: Literal["percent", "logit"] = "percent"
    decides: bool = False
    """Whether the board is ranked by it."""


def _select_leaderboard_columns(
    board: Literal["reviewers", "creators"], *figures: LeaderboardColumn
) -> Mapping[str, LeaderboardColumn]:
    return {figure.name: figure for figure in figures if figure.board == board}


_ALL: Final = (
    LeaderboardColumn(
        name="accuracy",
        title="Accuracy",
        words="Readable answers that are right, real clips pooled with one creator's at a time; mean over creators.",
        board="reviewers",
        better="high",
        decides=True,
    ),
    LeaderboardColumn(
        name="accuracy-all",
        title="Accuracy, all clips",
        words="The same over all clips that were asked about: no readable answer counts as wrong.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="balanced",
        title="Balanced",
        words="Half for real clips and half for generated ones, whatever their numbers; mean over creators.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="balanced-all",
        title="Balanced, all clips",
        words="The same over all clips that were asked about: no readable answer counts as wrong.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="plain",
        title="Plain",
        words="Readable answers that are right, of all clips in one pool.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="plain-all",
        title="Plain, all clips",
        words="Clips that were judged rightly, of all that were asked about.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="caught",
        title="Caught",
        words="Readable answers about generated clips that say generated; mean over creators.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="false-alarms",
        title="False alarms",
        words="Readable answers about real clips that say generated.",
        board="reviewers",
        better="low",
    ),
    LeaderboardColumn(
        name="control-false-alarms",
        title="Control false alarms",
        words="Readable answers about changed real clips (controls) that say generated; mean over controls.",
        board="reviewers",
        better="low",
    ),
    LeaderboardColumn(
        name="said-real",
        title="Said real",
        words="Readable answers that say real, of all about real and generated clips: the lean towards real.",
        board="reviewers",
        better="neither",
    ),
    LeaderboardColumn(
        name="answered",
        title="Answered",
        words="Questions with a readable answer.",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="ability",
        title="Ability",
        words="Discrimination between real clips and those of a creator of mean realism, in log-odds (skill model).",
        board="reviewers",
        better="high",
        unit="logit",
    ),
    LeaderboardColumn(
        name="bias",
        title="Bias",
        words="Log-odds with which it calls a real clip generated (skill model); below 0 it leans towards real.",
        board="reviewers",
        better="neither",
        unit="logit",
    ),
    LeaderboardColumn(
        name="pair-accuracy",
        title="Finds the real one",
        words="Pairs of a real and a generated clip in which it takes the real one for real (preference play).",
        board="reviewers",
        better="high",
    ),
    LeaderboardColumn(
        name="took-first",
        title="Took the first",
        words="Pairs in which it takes the clip shown first for real: far from 50 it leans by order (preference play).",
        board="reviewers",
        better="neither",
    ),
    LeaderboardColumn(
        name="fakeness",
        title="Fakeness",
        words="Readable answers that call its clips generated; mean over reviewers.",
        board="creators",
        better="low",
        decides=True,
    ),
    LeaderboardColumn(
        name="fakeness-all",
        title="Fakeness, all clips",
        words="The same over all questions put: no readable answer counts as not caught.",
        board="creators",
        better="low",
    ),
    LeaderboardColumn(
        name="fakeness-pooled",
        title="Fakeness, pooled",
        words="Readable answers that call its clips generated, of all reviewers in one pool.",
        board="creators",
        better="low",
    ),
    LeaderboardColumn(
        name="realism",
        title="Realism",
        words="Log-odds by which its clips are harder to catch than those of a mean creator (skill model).",
        board="creators",
        better="high",
        unit="logit",
    ),
    LeaderboardColumn(
        name="strength",
        title="Strength",
        words="Log-odds by which its clip is taken for the real one of two (preference play, Bradley and Terry).",
        board="creators",
        better="high",
        unit="logit",
    ),
    LeaderboardColumn(
        name="taken-for-real",
        title="Taken for real",
        words="Pairs in which its clip is taken for the real one (preference play).",
        board="creators",
        better="high",
    ),
    LeaderboardColumn(
        name="called-generated",
        title="Called generated",
        words="Readable answers that wrongly call this control generated; mean over reviewers.",
        board="creators",
        better="low",
    ),
)

REVIEWER_FIGURES: Final = _select_leaderboard_columns("reviewers", *_ALL)
CREATOR_FIGURES: Final = _select_leaderboard_columns("creators", *_ALL)


def get_leaderboard_column(name: str) -> LeaderboardColumn:
    """Return the leaderboard metric called `name`.

    Raises:
        UnknownNameError: No metric has that name; the message suggests the nearest one.
    """
    known = {**REVIEWER_FIGURES, **CREATOR_FIGURES}
    if name not in known:
        kind = "figure"
        raise UnknownNameError(kind, name, sorted(known))
    return known[name]
