"""What a season comes to: the two boards, the matrix between them, and how sure each place is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from unreel.core.estimate import Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One entrant on its board. All shares are percent."""

    name: str
    kind: Literal["reviewer", "creator", "floor", "control"]
    figures: Mapping[str, Measured]
    """By the names of `arena.figures`: accuracy, balanced, all-clips, fakeness, said-real, ability, realism, ..."""
    rank: int | None = None
    """On unrounded means; `None` for floors, controls, and who lacks cells."""
    first_class: bool = False
    """Whether its interval overlaps the leader's."""
    lacks: tuple[str, ...] = ()
    """Opponents that it never met; whoever lacks some has no rank and changes nobody else's."""
    above: Mapping[str, float] = field(default_factory=dict)
    """Share of resamples in which it stands above each other entrant of the board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One reviewer against one creator."""

    reviewer: str
    creator: str
    caught: Measured
    """Percent of the creator's readable answers that say generated."""
    n_asked: int
    n_silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """One condition of a season."""

    condition: str
    reviewers: tuple[Standing, ...]
    """Ranked first, best first; then who lacks cells, then floors."""
    creators: tuple[Standing, ...]
    """Ranked first, least caught first; then controls."""
    cells: tuple[Cell, ...]
    n_scenes: int
    n_resamples: int
