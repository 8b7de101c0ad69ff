"""Definitions of a season's metrics for its pages: names, order, and which one ranks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from unreel.arena.boards import leaderboard_metrics
from unreel.arena.boards.leaderboard_types import LeaderboardRow
from unreel.protocols.metric_definitions import Better, MetricDefinition

Side = Literal["reviewer", "creator"]
SIDES: Final[tuple[Side, ...]] = ("reviewer", "creator")
_LEADING: Final = (
    "accuracy",
    "caught",
    "false-alarms",
    "said-real",
    "fakeness",
    "called-generated",
)
"""Metrics in the main table besides those of the skill model; others are in a collapsed section."""
_BETTER: Final[dict[str, Better]] = {"high": "more", "low": "less", "neither": "neither"}
_UNITS: Final = {"percent": "%", "logit": "log-odds; 0 is even, 1 is odds of 2.7 to 1"}
_WAYS: Final = {"high": "higher", "low": "lower", "neither": "neither"}
_NO_END: Final = (-math.inf, math.inf)


def get_ranking_metric(side: Side, standings: Sequence[LeaderboardRow]) -> str:
    """Return the name of the metric that ranks the leaderboard; for pairs of clips, the first metric."""
    known = (
        leaderboard_metrics.REVIEWER_FIGURES
        if side == "reviewer"
        else leaderboard_metrics.CREATOR_FIGURES
    )
    decides = next(figure.name for figure in known.values() if figure.decides)
    measured = _list_metric_names(standings)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMetricDefinitions:
    """Definitions of the metrics on a page; table headings link to them by `id`."""

    id: str
    figures: tuple[PageMetricDefinition, ...]


def build_metric_definitions(names: Iterable[str]) -> PageMetricDefinitions:
    """Return the definitions of the metrics `names`, each once."""
    return PageMetricDefinitions(
        id="season", figures=tuple(map(_build_metric_entry, dict.fromkeys(names)))
    )


def _build_metric_entry(name: str) -> PageMetricDefinition:
    metric = leaderboard_metrics.get_leaderboard_metric(name)
    terms = [
        ("Meaning", metric.words),
        ("Unit", _UNITS[metric.unit]),
        ("Better", _WAYS[metric.better]),
    ]
    if metric.decides:
        terms.append(("Ranks", f"the leaderboard of {metric.board}"))
    return PageMetricDefinition(metric=name, title=metric.title, definition=tuple(terms))


def list_leading_metrics(side: Side, standings: Sequence[LeaderboardRow]) -> list[str]:
    """Return the names of the metrics in a leaderboard's table: the ranking one, then other main ones."""
    known = _list_metric_names(standings)
    first = get_ranking_metric(side, standings)
    chief = [name for name in known if name in _LEADING or _is_skill_metric(name)]
    return [first, *(name for name in chief if name != first)]


def list_other_metrics(side: Side, standings: Sequence[LeaderboardRow]) -> list[str]:
    """Return the names of the measured metrics that are not among `list_leading_metrics`."""
    leading = list_leading_metrics(side, standings)
    return [name for name in _list_metric_names(standings) if name not in leading]


def _is_skill_metric(name: str) -> bool:
    """Return whether the metric is from the skill model for all entrants, and higher is better."""
    metric = leaderboard_metrics.get_leaderboard_metric(name)
    return metric.unit == "logit" and metric.better == "high"


def _list_metric_names(standings: Sequence[LeaderboardRow]) -> list[str]:
    return list(dict.fromkeys(name for standing in standings for name in standing.figures))
