"""The two boards of one condition: ranks, their uncertainty, and missing cells."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.arena.answers.play import AnswerTable
from unreel.arena.boards.standings import LeaderboardRow, SeasonLeaderboard
from unreel.arena.fairness.attempts import is_row_of
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.arena.season_ranking import RankedPairs, rank_pairs, rank_season
from unreel.core.estimate import Estimate
from unreel.protocols.figures import MetricDefinition
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.charts import BoardChart, ChartPoint, ranked_chart
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableCell,
    TableColumn,
    TableLine,
    exact_cell,
    figure_column,
    measured_cell,
)
from unreel.report.season.metric_names import (
    Side,
    figure_of,
    list_leading_metrics,
    list_other_metrics,
    ranks_by,
)
from unreel.report.season.view import PAGES, SeasonView, get_page_name, select_side


def read_boards(folder: SeasonFolder, *, resamples: int) -> SeasonView:
    """Read a season with its boards only, as the history of a later season needs it."""
    entrants = folder.require_played()
    if entrants.is_about_pairs:
        boards = tuple(_build_pair_leaderboard(ranked) for ranked in rank_pairs(folder))
        return SeasonView(name=entrants.season, plays=(), standings=boards)
    found = list(rank_season(folder, resamples=resamples))
    return SeasonView(
        name=entrants.season,
        plays=tuple(each.play for each in found),
        standings=tuple(each.standings for each in found),
        retired=_list_retired_rows(entrants, found[0].play),
    )


def _build_pair_leaderboard(ranked: RankedPairs) -> SeasonLeaderboard:
    return SeasonLeaderboard(
        condition=ranked.play.condition,
        reviewers=ranked.preferences.reviewers,
        creators=ranked.preferences.creators,
        cells=(),
        n_scenes=len(ranked.play.scenes),
        n_resamples=0,
    )


def _list_retired_rows(entrants: SeasonEntrants, play: AnswerTable) -> frozenset[str]:
    """Return the rows of retired reviewers and creators."""
    shown = entrants.shown(entrants.reviewers)
    reviewers = {shown[reviewer.name] for reviewer in entrants.reviewers if reviewer.retired}
    gone = entrants.retired_creators
    rows = (*play.lineup.creators, *play.lineup.controls)
    return frozenset({*reviewers, *(r for r in rows if any(is_row_of(r, each) for each in gone))})


_NAMED: Final = 3
"""Opponents that are named before the others are counted."""
_MOST_PAIRS: Final = 20
"""Entrants whose shares stand on the page; the file has all."""
_COIN: Final[Mapping[Side, str]] = {"reviewer": " and that are above the coin", "creator": ""}
_LEADS: Final[Mapping[Side, str]] = {
    "reviewer": "A baseline does not look at the picture; a reviewer that does not beat it has shown nothing.",
    "creator": "The least detected creator is first.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSheet:
    """One condition of a season: its id, leaderboard and attempts."""

    id: str
    standings: SeasonLeaderboard
    attempts: Mapping[str, int]
    retired: frozenset[str] = frozenset()
    shows_clips: bool = True


def board_panel(sheet: ConditionSheet, side: Side) -> BoardPanel:
    """Build the panel of one board: chart, table, and how often each entrant ranks above another."""
    standings = select_side(sheet.standings, side)
    figure = figure_of(ranks_by(side, standings))
    entrants = [standing for standing in standings if standing.kind != "control"]
    controls = [standing for standing in standings if standing.kind == "control"]
    tables = [_build_ranking_table(sheet, side, entrants)]
    if controls:
        tables.append(_build_control_table(controls))
    points = [
        ChartPoint(who=s.name, measured=s.figures[figure.metric], kind=s.kind)
        for s in standings
        if figure.metric in s.figures
    ]
    chart = BoardChart(
        id=f"{sheet.id}-{side}s",
        title=f"{figure.title} of each {side}",
        alt=_format_leader_summary(standings, figure),
        spec=ranked_chart(
            points,
            title=_format_axis_title(figure),
            domain=_compute_axis_domain(figure, points),
            places=figure.places,
        ),
    )
    return BoardPanel(
        id=f"{sheet.id}-{side}s",
        heading=f"{side.capitalize()}s",
        lead=(
            f"Ranked by {figure.title.lower()}: {figure.meaning}. Ranks are of unrounded means; leading are "
            f"all that the first does not surely beat (paired differences by scene, Holm){_COIN[side]}. {_LEADS[side]}"
        ),
        charts=(chart,),
        tables=tuple(tables),
        extras=(*_iter_pairwise_tables(entrants, side), *_iter_metric_tables(entrants, side)),
        is_open=True,
    )


def name_cell(standing: LeaderboardRow, side: Side, *, retired: Collection[str] = ()) -> TableCell:
    """Return a cell with the entrant's name, a badge for its kind and class, and a link to its page."""
    badge = "taken out" if standing.name in retired else ""
    badge = badge or {"floor": "baseline", "control": "control"}.get(standing.kind, "")
    if not badge and standing.first_class and standing.rank is not None:
        badge = "leading"
    why = f"not ranked: never met {format_names(standing.lacks)}" if standing.lacks else ""
    link = f"{PAGES}/{get_page_name(side, standing.name)}.html"
    return TableCell(text=standing.name, badge=badge, link=link, doubt=why)


def _build_ranking_table(
    sheet: ConditionSheet, side: Side, standings: Sequence[LeaderboardRow]
) -> BoardTable:
    first = figure_of(ranks_by(side, standings))
    attempts = {s.name: sheet.attempts[s.name] for s in standings if s.name in sheet.attempts}
    figures = [figure_of(metric) for metric in list_leading_metrics(side, standings)]
    notes = FootnoteMarks()
    columns = [TableColumn(title="#"), TableColumn(title=side.capitalize(), numbers=False)]
    columns += map(figure_column, figures)
    columns.append(TableColumn(title="Above the next"))
    if attempts:
        columns.append(TableColumn(title="Attempts"))
    lines = []
    for place, standing in enumerate(standings):
        rank = TableCell() if standing.rank is None else exact_cell(standing.rank)
        cells = [rank, name_cell(standing, side, retired=sheet.retired)]
        cells += [
            measured_cell(standing.figures.get(f.metric), notes, places=f.places) for f in figures
        ]
        cells.append(_build_lead_cell(standing, standings[place + 1 :]))
        if attempts:
            cells.append(_build_attempts_cell(attempts, standing))
        lines.append(TableLine(cells=tuple(cells), kind=standing.kind))
    return BoardTable(
        caption=f"{side.capitalize()}s by {first.title.lower()}, {sheet.standings.condition}",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_control_table(standings: Sequence[LeaderboardRow]) -> BoardTable:
    names = dict.fromkeys(name for standing in standings for name in standing.figures)
    figures = [figure_of(name) for name in names]
    notes = FootnoteMarks()
    lines = []
    for standing in standings:
        known = (
            measured_cell(standing.figures.get(f.metric), notes, places=f.places) for f in figures
        )
        lines.append(TableLine(cells=(name_cell(standing, "creator"), *known), kind=standing.kind))
    return BoardTable(
        caption="Controls, without a rank: real clips, as filmed or changed",
        columns=(TableColumn(title="Control", numbers=False), *map(figure_column, figures)),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_attempts_cell(attempts: Mapping[str, int], standing: LeaderboardRow) -> TableCell:
    made = attempts.get(standing.name)
    return TableCell() if made is None else exact_cell(made)


def _build_lead_cell(standing: LeaderboardRow, below: Sequence[LeaderboardRow]) -> TableCell:
    ranked_below = [each for each in below if each.rank is not None]
    if standing.rank is None or not ranked_below:
        return TableCell()
    return share_cell(standing.above.get(ranked_below[0].name))


def share_cell(share: float | None) -> TableCell:
    """Return a cell with a share of bootstrap resamples in percent; an empty cell for `None`."""
    if share is None:
        return TableCell()
    return TableCell(text=f"{100 * share:.0f} %", number=round(100 * share, 2))


def _iter_pairwise_tables(
    standings: Sequence[LeaderboardRow], side: Side
) -> Iterator[tuple[str, tuple[BoardTable, ...]]]:
    placed = [standing for standing in standings if standing.rank is not None]
    shown = placed[:_MOST_PAIRS]
    if not any(standing.above for standing in shown):
        return
    columns = [TableColumn(title=side.capitalize(), numbers=False)]
    columns += [TableColumn(title=standing.name) for standing in shown]
    lines = [
        TableLine(
            cells=(name_cell(s, side), *(share_cell(s.above.get(other.name)) for other in shown))
        )
        for s in shown
    ]
    first = f"the first {len(shown)}" if len(shown) < len(placed) else "every two"
    caption = f"Share of resamples in which the {side} of a row is above that of a column: {first}"
    table = BoardTable(caption=caption, columns=tuple(columns), lines=tuple(lines))
    yield "Who is above whom, and how surely", (table,)


def _iter_metric_tables(
    standings: Sequence[LeaderboardRow], side: Side
) -> Iterator[tuple[str, tuple[BoardTable, ...]]]:
    figures = [figure_of(name) for name in list_other_metrics(side, standings)]
    if not figures:
        return
    notes = FootnoteMarks()
    lines = []
    for standing in standings:
        known = (standing.figures.get(f.metric) for f in figures)
        cells = (
            measured_cell(m, notes, places=f.places) for m, f in zip(known, figures, strict=True)
        )
        lines.append(TableLine(cells=(name_cell(standing, side), *cells), kind=standing.kind))
    columns = (TableColumn(title=side.capitalize(), numbers=False), *map(figure_column, figures))
    caption = f"Further metrics of {side}s"
    table = BoardTable(caption=caption, columns=columns, lines=tuple(lines), notes=notes.listed())
    yield "More metrics", (table,)


def _format_leader_summary(standings: Sequence[LeaderboardRow], figure: MetricDefinition) -> str:
    """Return a text: the first entrant, how often it is above the second, and how many are leading."""
    placed = [standing for standing in standings if standing.rank is not None]
    if not placed:
        return "Nobody has a rank here."
    first, *others = placed
    told = [f"First: {first.name} with {_format_metric_value(first, figure)}."]
    if others and others[0].name in first.above:
        share = 100 * first.above[others[0].name]
        told.append(f"It is above {others[0].name} in {share:.0f} % of resamples.")
    n_leading = sum(standing.first_class for standing in placed)
    if len(placed) > 1:
        told.append(f"Leading: {n_leading} of {len(placed)} with a rank.")
    return " ".join(told)


def _format_metric_value(standing: LeaderboardRow, figure: MetricDefinition) -> str:
    cell = measured_cell(standing.figures.get(figure.metric), FootnoteMarks(), places=figure.places)
    return f"{cell.text} ({cell.doubt})" if cell.text else "no figure"


def _format_axis_title(figure: MetricDefinition) -> str:
    return f"{figure.title}, {figure.unit}" if figure.unit else figure.title


def _compute_axis_domain(
    figure: MetricDefinition, points: Sequence[ChartPoint]
) -> tuple[float, float]:
    """Return the metric's range; an infinite end is replaced with the outermost interval end.

    Without any interval, an infinite end becomes 0 (low) or 1 (high).
    """
    low, high = figure.range
    known = [point.measured for point in points if isinstance(point.measured, Estimate)]
    lows, highs = [e.low for e in known] or [0.0], [e.high for e in known] or [1.0]
    return (
        low if math.isfinite(low) else min(lows),
        high if math.isfinite(high) else max(highs),
    )


def format_names(names: Sequence[str]) -> str:
    """Return the first three names and the number of further names."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
