"""Data of a season for its pages: leaderboards, answers, and properties of every clip."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.boards import leaderboard_metrics
from unreel.arena.boards.ablations import AblationEffect, ReviewerBias
from unreel.arena.boards.leaderboard_metrics import LeaderboardRow, SeasonLeaderboard
from unreel.core.errors import InvalidValueError
from unreel.pages.player import PlayerSpec
from unreel.protocols.metric_definitions import Better, MetricDefinition

Side = Literal["reviewer", "creator"]
ENTRANT_KINDS: tuple[Side, ...] = ("reviewer", "creator")
_LEADING = ("accuracy", "caught", "false-alarms", "said-real", "fakeness", "called-generated")
"""Metrics in the main table besides those of the skill model; others are in a collapsed section."""
_BETTER: dict[str, Better] = {"high": "more", "low": "less", "neither": "neither"}
_UNITS = {"percent": "%", "logit": "log-odds; 0 is even, 1 is odds of 2.7 to 1"}
_WAYS = {"high": "higher", "low": "lower", "neither": "neither"}
_NO_END = (-math.inf, math.inf)


def get_ranking_metric(side: Side, rows: Sequence[LeaderboardRow]) -> str:
    """Return the name of the metric that ranks the leaderboard; for pairs of clips, the first metric."""
    known = (
        leaderboard_metrics.REVIEWER_METRICS
        if side == "reviewer"
        else leaderboard_metrics.CREATOR_METRICS
    )
    decides = next(metric.name for metric in known.values() if metric.decides)
    measured = _list_metric_names(rows)
    return decides if decides in measured or not measured else measured[0]


def get_metric_definition(name: str) -> MetricDefinition:
    """Return the definition of the metric `name`, for tables and charts."""
    metric = leaderboard_metrics.get_leaderboard_metric(name)
    is_percent = metric.unit == "percent"
    meaning = metric.words.rstrip(".")
    return MetricDefinition(
        metric=metric.name,
        title=metric.title,
        meaning=meaning[:1].lower() + meaning[1:],
        group="arena",
        better=_BETTER[metric.better],
        unit="%" if is_percent else "",
        range=(0.0, 100.0) if is_percent else _NO_END,
        places=1 if is_percent else 2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMetricDefinition:
    """Definition of one metric, as a page lists it."""

    metric: str
    title: str
    definition: tuple[tuple[str, str], ...]


def build_metric_definitions(names: Iterable[str]) -> tuple[PageMetricDefinition, ...]:
    """Return the definitions of the metrics `names`, each once."""
    definitions = []
    for name in dict.fromkeys(names):
        metric = leaderboard_metrics.get_leaderboard_metric(name)
        terms = [
            ("Meaning", metric.words),
            ("Unit", _UNITS[metric.unit]),
            ("Better", _WAYS[metric.better]),
        ]
        if metric.decides:
            terms.append(("Ranks", f"the leaderboard of {metric.board}"))
        definitions.append(
            PageMetricDefinition(metric=name, title=metric.title, definition=tuple(terms))
        )
    return tuple(definitions)


def list_leading_metrics(side: Side, rows: Sequence[LeaderboardRow]) -> list[str]:
    """Return the names of the metrics in a leaderboard's table: the ranking one, then other main ones."""
    known = _list_metric_names(rows)
    first = get_ranking_metric(side, rows)
    leading = [first]
    for name in known:
        metric = leaderboard_metrics.get_leaderboard_metric(name)
        is_skill = metric.unit == "logit" and metric.better == "high"
        if name != first and (name in _LEADING or is_skill):
            leading.append(name)
    return leading


def list_other_metrics(side: Side, rows: Sequence[LeaderboardRow]) -> list[str]:
    """Return the names of the measured metrics that are not among `list_leading_metrics`."""
    leading = list_leading_metrics(side, rows)
    return [name for name in _list_metric_names(rows) if name not in leading]


def _list_metric_names(rows: Sequence[LeaderboardRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.figures))


REAL_TITLE = "Real clips"
PAGES = "entrants"
"""Folder of the pages of single entrants."""
_SPOKEN = 40
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

    A season of pairs has no `answer_tables`, because it shows no single clips.
    """

    name: str
    facts: tuple[tuple[str, str], ...] = ()
    """Benchmark, digest, protocol and seed, which a rerun needs, as terms and texts."""
    answer_tables: tuple[SeasonAnswerTable, ...]
    leaderboards: tuple[SeasonLeaderboard, ...]
    clips: Mapping[str, SeasonClipDetails] = field(default_factory=dict)
    """Properties by clip name; other clips have only answers."""
    creation_failures: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Reason of each failed clip, by creator and scene."""
    words: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """Reason that a reviewer gave, by condition, reviewer and clip."""
    ablations: tuple[AblationEffect, ...] = ()
    leanings: tuple[ReviewerBias, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about entrants that took no part or were removed."""
    plan: tuple[tuple[str, str], ...] = ()
    """Budget and question plan, as terms and texts."""
    retired: frozenset[str] = frozenset()
    """Names of leaderboard rows of removed entrants; the rows stay."""
    shows_clips: bool = True
    """Whether pages show single clips; false for pairs."""

    def __post_init__(self) -> None:
        played = [answers.condition for answers in self.answer_tables]
        if played and played != [board.condition for board in self.leaderboards]:
            raise InvalidValueError(
                "a season must have one leaderboard for each answer table, in the same order"
            )

    def entrants(self) -> dict[tuple[str, str], list[LeaderboardRow]]:
        """Return the leaderboard rows of every entrant, one for each condition, by side and name."""
        rows: dict[tuple[str, str], list[LeaderboardRow]] = {}
        for board in self.leaderboards:
            for side, leaderboards in (("reviewer", board.reviewers), ("creator", board.creators)):
                for row in leaderboards:
                    rows.setdefault((side, row.name), []).append(row)
        return rows


def get_leaderboard_side_rows(
    leaderboard: SeasonLeaderboard, side: str
) -> tuple[LeaderboardRow, ...]:
    """Return the leaderboard rows of one side, reviewers or creators, in order."""
    return leaderboard.reviewers if side == "reviewer" else leaderboard.creators


def get_entrant_page_name(side: str, name: str) -> str:
    """Return the file name of an entrant's page without extension; it is the same in every season."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_SPOKEN].strip("-")
    digest = hashlib.sha256(f"{side}\0{name}".encode()).hexdigest()[:8]
    return "-".join(part for part in (side, slug, digest) if part)
