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
    """Metrics by the names in `leaderboard_metrics`: accuracy, balanced, said-real, ability, fakeness, realism, ..."""
    rank: int | None = None
    """Rank by unrounded means; `None` for baselines, controls, and entrants with missing cells."""
    first_class: bool = False
    """Whether the entrant leads: the first one does not significantly beat it (paired differences,
    Holm), and a reviewer also beats the coin. A board with one entrant has no leader.
    """
    lacks: tuple[str, ...] = ()
    """Opponents without complete answers. A reviewer with missing opponents has no rank and
    does not affect other ranks; a creator is ranked by the complete reviewers.
    """
    above: Mapping[str, float] = field(default_factory=dict)
    """Fraction of resamples in which the entrant is above each other complete entrant of the board."""
    surely_above: tuple[str, ...] = ()
    """Entrants that this one significantly beats, corrected for all pairs of the board (Holm)."""


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
