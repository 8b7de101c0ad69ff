"""Data of a season for its pages: leaderboards, answers, and properties of every clip."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.boards.ablations import AblationEffect
from unreel.arena.boards.leaderboard_types import LeaderboardRow, SeasonLeaderboard
from unreel.arena.boards.reviewer_bias import ReviewerBias
from unreel.arena.submission.season_log import SeasonLogEvent
from unreel.core.errors import InvalidValueError
from unreel.pages.player import PlayerSpec

REAL_TITLE: Final = "Real clips"
PAGES: Final = "entrants"
"""Folder of the pages of single entrants."""
_SPOKEN: Final = 40
"""Maximum number of letters of a name in its URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonClipDetails:
    """Properties of one clip of a season: how it was made, its cost and time, and its player."""

    facts: tuple[tuple[str, str], ...] = ()
    """Model, seed and parameters, as terms and texts."""
    cost_usd: Decimal | None = None
    took_us: int | None = None
    player: PlayerSpec | None = None
    """Player configuration; `None` if the clip may not be shown, or is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonPageData:
    """Data of the pages of a season: answers and leaderboards, one item per condition in the same order.

    A season of pairs has no `plays`, because it shows no single clips.
    """

    name: str
    facts: tuple[tuple[str, str], ...] = ()
    """Benchmark, digest, protocol and seed, which a rerun needs, as terms and texts."""
    plays: tuple[SeasonAnswerTable, ...]
    standings: tuple[SeasonLeaderboard, ...]
    clips: Mapping[str, SeasonClipDetails] = field(default_factory=dict)
    """Properties by clip name; other clips have only answers."""
    unmade: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Reason of each failed clip, by creator and scene."""
    words: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Reason that a reviewer gave, by condition, reviewer and clip."""
    attempts: Mapping[str, int] = field(default_factory=dict)
    """Number of submissions by the team of each leaderboard row, also withdrawn ones; empty without a log."""
    ablations: tuple[AblationEffect, ...] = ()
    leanings: tuple[ReviewerBias, ...] = ()
    entries: tuple[SeasonLogEvent, ...] = ()
    """Events of the season's log, oldest first; empty without a log."""
    notes: tuple[str, ...] = ()
    """Warnings about suspicious or weak results, as sentences."""
    plan: tuple[tuple[str, str], ...] = ()
    """Budget and question plan, as terms and texts."""
    retired: frozenset[str] = frozenset()
    """Names of leaderboard rows of removed entrants; the rows stay."""
    shows_clips: bool = True
    """Whether pages show single clips; false while some are hidden, and for pairs."""

    def __post_init__(self) -> None:
        played = [play.condition for play in self.plays]
        if played and played != [board.condition for board in self.standings]:
            msg = "a season needs standings for each of its plays, in their order. Rank each play once"
            raise InvalidValueError(msg)

    def entrants(self) -> dict[tuple[str, str], list[LeaderboardRow]]:
        """Return the leaderboard rows of every entrant, one for each condition, by side and name."""
        rows: dict[tuple[str, str], list[LeaderboardRow]] = {}
        for board in self.standings:
            for side, standings in (("reviewer", board.reviewers), ("creator", board.creators)):
                for standing in standings:
                    rows.setdefault((side, standing.name), []).append(standing)
        return rows


def get_leaderboard_side_rows(board: SeasonLeaderboard, side: str) -> tuple[LeaderboardRow, ...]:
    """Return the leaderboard rows of one side, reviewers or creators, in order."""
    return board.reviewers if side == "reviewer" else board.creators


def get_entrant_page_name(side: str, name: str) -> str:
    """Return the file name of an entrant's page without extension; it is the same in every season."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_SPOKEN].strip("-")
    digest = hashlib.sha256(f"{side}\0{name}".encode()).hexdigest()[:8]
    return "-".join(part for part in (side, slug, digest) if part)
