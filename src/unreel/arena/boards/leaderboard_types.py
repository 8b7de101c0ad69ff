"""Types of a season's results: both leaderboards, and the matrix of reviewers by creators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from unreel.core.estimate import Measured, Unmeasured

_NO_CREATOR: Final = Unmeasured("a control is no creator")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One entrant on its leaderboard. All rates are in percent."""

    name: str
    kind: Literal["reviewer", "creator", "floor", "control"]
    figures: Mapping[str, Measured]
    """By the names of `arena.figures`: accuracy, balanced, all-clips, fakeness, said-real, ability, realism, ..."""
    rank: int | None = None
    """By unrounded means; `None` for baselines, controls, and entrants with missing cells."""
    first_class: bool = False
    """Whether it is leading: the first does not beat it (paired differences, Holm), and as a
    reviewer it beats the coin. A board of one has no leader.
    """
    lacks: tuple[str, ...] = ()
    """Opponents that it did not meet completely. A reviewer with missing opponents has no rank and
    does not affect other ranks; a creator is ranked by the complete reviewers.
    """
    above: Mapping[str, float] = field(default_factory=dict)
    """Fraction of resamples in which it is above each other complete entrant of the board."""
    surely_above: tuple[str, ...] = ()
    """Entrants that it beats after correction for all pairs of the board (Holm)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerCreatorCell:
    """Rates of one reviewer on the clips of one creator or control."""

    reviewer: str
    creator: str
    caught: Measured
    """Percent of the creator's readable answers that say generated."""
    accuracy: Measured = _NO_CREATOR
    """Percent of readable answers that are right, real clips pooled with the creator's."""
    balanced: Measured = _NO_CREATOR
    """The mean of both sides."""
    n_asked: int
    n_silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonLeaderboard:
    """Both leaderboards of a season under one condition."""

    condition: str
    reviewers: tuple[LeaderboardRow, ...]
    """Ranked ones first, best first; then those with missing cells, then baselines."""
    creators: tuple[LeaderboardRow, ...]
    """Ranked first, least caught first; then controls."""
    cells: tuple[ReviewerCreatorCell, ...]
    """Creators, then controls, for each reviewer in turn; those that were never asked are excluded."""
    n_scenes: int
    n_resamples: int
    sway: Mapping[str, Measured] = field(default_factory=dict)
    """Log-odds of "generated" that one standard deviation of each nuisance adds; empty where none was asked for."""
