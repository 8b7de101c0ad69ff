"""A picture for a read-me: the rank of an entrant and its figure with the interval."""

from collections.abc import Sequence
from typing import Final

from unreel.arena.standings import LeaderboardRow
from unreel.core.estimate import Estimate
from unreel.core.plain import plain
from unreel.pages.page import render
from unreel.report.season.words import Side, figure_of, ranks_by

_LETTER: Final = 6.6
"""Pixels, of a font of 11: text that is narrower is stretched to fit."""
_MARGIN: Final = 8.0
_LONGEST: Final = 40


def badge(
    season: str, standing: LeaderboardRow, board: Sequence[LeaderboardRow], side: Side
) -> str:
    """SVG that draws text alone, whatever the season is called."""
    left = _cut(f"unreel {season}")
    right = _cut(_told(standing, board, side))
    widths = [len(text) * _LETTER + 2 * _MARGIN for text in (left, right)]
    return str(
        render(
            "unreel.report.season:badge.svg",
            left=left,
            right=right,
            left_width=widths[0],
            right_width=widths[1],
            margin=_MARGIN,
            is_first=standing.first_class and standing.rank is not None,
        )
    )


def _told(standing: LeaderboardRow, board: Sequence[LeaderboardRow], side: Side) -> str:
    figure = figure_of(ranks_by(side, board))
    known = standing.figures.get(figure.metric)
    number = "no figure"
    if isinstance(known, Estimate):
        value, low, high = (f"{n:z.{figure.places}f}" for n in (known.value, known.low, known.high))
        number = f"{value} {figure.unit} [{low}, {high}]".replace("  ", " ")
    if standing.rank is None:
        return f"{standing.kind}: {number}" if standing.kind != side else f"not ranked: {number}"
    n_ranked = sum(each.rank is not None for each in board)
    return f"#{standing.rank} of {n_ranked}: {number}"


def _cut(text: str) -> str:
    words = plain(text)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
