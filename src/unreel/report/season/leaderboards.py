"""Leaderboards of a season under one condition: ranks, their uncertainty, missing results."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.arena.answers.answer_table import SeasonAnswerTable
from unreel.arena.boards.leaderboard_types import LeaderboardRow, SeasonLeaderboard
from unreel.arena.fairness.team_attempts import is_leaderboard_row_of_entry
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder
from unreel.arena.season_ranking import (
    PreferenceRatesWithAnswers,
    iter_pair_answers_and_leaderboards,
    iter_season_leaderboards,
)
from unreel.core.estimate import Estimate
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.charts import BoardChart, ChartPoint, build_ranked_chart
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_metric_column,
)
from unreel.report.season.metric_names import (
    Side,
    get_metric_definition,
    get_ranking_metric,
    list_leading_metrics,
    list_other_metrics,
)
from unreel.report.season.page_data import (
    PAGES,
    SeasonPageData,
    get_entrant_page_name,
    get_leaderboard_side_rows,
)


def read_season_leaderboards(folder: SeasonFolder, *, resamples: int) -> SeasonPageData:
    """Read a season with its leaderboards only, which the history of a later season needs."""
    entrants = folder.require_played()
    if entrants.is_about_pairs:
        boards = tuple(
            _build_pair_leaderboard(ranked) for ranked in iter_pair_answers_and_leaderboards(folder)
        )
        return SeasonPageData(name=entrants.season, plays=(), standings=boards)
    conditions = list(iter_season_leaderboards(folder, resamples=resamples))
    return SeasonPageData(
        name=entrants.season,
        plays=tuple(board.play for board in conditions),
        standings=tuple(board.standings for board in conditions),
        retired=_list_retired_rows(entrants, conditions[0].play),
    )


def _build_pair_leaderboard(ranked: PreferenceRatesWithAnswers) -> SeasonLeaderboard:
    return SeasonLeaderboard(
        condition=ranked.play.condition,
        reviewers=ranked.preferences.reviewers,
        creators=ranked.preferences.creators,
        cells=(),
        n_scenes=len(ranked.play.scenes),
        n_resamples=0,
    )


def _list_retired_rows(entrants: SeasonEntrants, play: SeasonAnswerTable) -> frozenset[str]:
    """Return the names of the leaderboard rows of retired reviewers and creators."""
    titles = entrants.shown(entrants.reviewers)
    reviewers = {titles[reviewer.name] for reviewer in entrants.reviewers if reviewer.retired}
    gone = entrants.retired_creators
    rows = (*play.lineup.creators, *play.lineup.controls)
    return frozenset(
        {
            *reviewers,
            *(r for r in rows if any(is_leaderboard_row_of_entry(r, entry) for entry in gone)),
        }
    )


_NAMED: Final = 3
"""Maximum number of named opponents in a text; the others are counted."""
_MOST_PAIRS: Final = 20
"""Maximum number of entrants that are compared on the page; the file has all."""
_COIN: Final[Mapping[Side, str]] = {"reviewer": " and that are above the coin", "creator": ""}
_LEADS: Final[Mapping[Side, str]] = {
    "reviewer": "A baseline ignores the picture; a reviewer that does not beat it shows no skill.",
    "creator": "The least detected creator is first.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonConditionBoard:
    """Leaderboard of a season under one condition, with the number of attempts of each entrant."""

    id: str
    standings: SeasonLeaderboard
    attempts: Mapping[str, int]
    retired: frozenset[str] = frozenset()
    shows_clips: bool = True


def build_season_board_panel(sheet: SeasonConditionBoard, side: Side) -> BoardPanel:
    """Build the panel of one leaderboard: chart, ranking table, and comparisons of each pair."""
    standings = get_leaderboard_side_rows(sheet.standings, side)
    figure = get_metric_definition(get_ranking_metric(side, standings))
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
        spec=build_ranked_chart(
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
            f"Ranked by {figure.title.lower()}: {figure.meaning}. Ranks are of unrounded means; leading are all "
            f"entrants that the first does not significantly beat (paired differences by scene, Holm){_COIN[side]}. {_LEADS[side]}"
        ),
        charts=(chart,),
        tables=tuple(tables),
        extras=(*_iter_pairwise_tables(entrants, side), *_iter_metric_tables(entrants, side)),
        is_open=True,
    )


def build_season_entrant_cell(
    standing: LeaderboardRow, side: Side, *, retired: Collection[str] = ()
) -> BoardTableCell:
    """Return a cell with the entrant's name, a badge for its kind and class, and a link to its page."""
    badge = "removed" if standing.name in retired else ""
    badge = badge or {"floor": "baseline", "control": "control"}.get(standing.kind, "")
    if not badge and standing.first_class and standing.rank is not None:
        badge = "leading"
    doubt = f"not ranked: missing {shorten_name_list(standing.lacks)}" if standing.lacks else ""
    link = f"{PAGES}/{get_entrant_page_name(side, standing.name)}.html"
    return BoardTableCell(text=standing.name, badge=badge, link=link, doubt=doubt)


def _build_ranking_table(
    sheet: SeasonConditionBoard, side: Side, standings: Sequence[LeaderboardRow]
) -> ReportTable:
    first = get_metric_definition(get_ranking_metric(side, standings))
    attempts = {s.name: sheet.attempts[s.name] for s in standings if s.name in sheet.attempts}
    figures = [get_metric_definition(metric) for metric in list_leading_metrics(side, standings)]
    notes = TableFootnotes()
    columns = [
        BoardTableColumn(title="#"),
        BoardTableColumn(title=side.capitalize(), numbers=False),
    ]
    columns += map(build_metric_column, figures)
    columns.append(BoardTableColumn(title="Above the next"))
    if attempts:
        columns.append(BoardTableColumn(title="Attempts"))
    lines = []
    for index, standing in enumerate(standings):
        rank = BoardTableCell() if standing.rank is None else build_count_cell(standing.rank)
        cells = [rank, build_season_entrant_cell(standing, side, retired=sheet.retired)]
        cells += [
            build_estimate_cell(standing.figures.get(f.metric), notes, places=f.places)
            for f in figures
        ]
        cells.append(_build_lead_cell(standing, standings[index + 1 :]))
        if attempts:
            cells.append(_build_attempts_cell(attempts, standing))
        lines.append(BoardTableRow(cells=tuple(cells), kind=standing.kind))
    return ReportTable(
        caption=f"{side.capitalize()}s by {first.title.lower()}, {sheet.standings.condition}",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_control_table(standings: Sequence[LeaderboardRow]) -> ReportTable:
    names = dict.fromkeys(name for standing in standings for name in standing.figures)
    figures = [get_metric_definition(name) for name in names]
    notes = TableFootnotes()
    lines = []
    for standing in standings:
        known = (
            build_estimate_cell(standing.figures.get(f.metric), notes, places=f.places)
            for f in figures
        )
        lines.append(
            BoardTableRow(
                cells=(build_season_entrant_cell(standing, "creator"), *known), kind=standing.kind
            )
        )
    return ReportTable(
        caption="Controls, without a rank: real clips, as filmed or changed",
        columns=(
            BoardTableColumn(title="Control", numbers=False),
            *map(build_metric_column, figures),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_attempts_cell(attempts: Mapping[str, int], standing: LeaderboardRow) -> BoardTableCell:
    n_attempts = attempts.get(standing.name)
    return BoardTableCell() if n_attempts is None else build_count_cell(n_attempts)


def _build_lead_cell(standing: LeaderboardRow, below: Sequence[LeaderboardRow]) -> BoardTableCell:
    ranked_below = [row for row in below if row.rank is not None]
    if standing.rank is None or not ranked_below:
        return BoardTableCell()
    return build_percent_cell(standing.above.get(ranked_below[0].name))


def build_percent_cell(fraction: float | None) -> BoardTableCell:
    """Return a table cell with a fraction of bootstrap resamples in percent; empty for `None`."""
    if fraction is None:
        return BoardTableCell()
    return BoardTableCell(text=f"{100 * fraction:.0f} %", number=round(100 * fraction, 2))


def _iter_pairwise_tables(
    standings: Sequence[LeaderboardRow], side: Side
) -> Iterator[tuple[str, tuple[ReportTable, ...]]]:
    ranked = [standing for standing in standings if standing.rank is not None]
    compared = ranked[:_MOST_PAIRS]
    if not any(standing.above for standing in compared):
        return
    columns = [BoardTableColumn(title=side.capitalize(), numbers=False)]
    columns += [BoardTableColumn(title=standing.name) for standing in compared]
    lines = [
        BoardTableRow(
            cells=(
                build_season_entrant_cell(s, side),
                *(build_percent_cell(s.above.get(column.name)) for column in compared),
            )
        )
        for s in compared
    ]
    first = f"the first {len(compared)}" if len(compared) < len(ranked) else "all"
    caption = f"Share of resamples in which the {side} of a row is above that of a column: {first}"
    table = ReportTable(caption=caption, columns=tuple(columns), lines=tuple(lines))
    yield "Pairwise comparisons", (table,)


def _iter_metric_tables(
    standings: Sequence[LeaderboardRow], side: Side
) -> Iterator[tuple[str, tuple[ReportTable, ...]]]:
    figures = [get_metric_definition(name) for name in list_other_metrics(side, standings)]
    if not figures:
        return
    notes = TableFootnotes()
    lines = []
    for standing in standings:
        known = (standing.figures.get(f.metric) for f in figures)
        cells = (
            build_estimate_cell(m, notes, places=f.places)
            for m, f in zip(known, figures, strict=True)
        )
        lines.append(
            BoardTableRow(
                cells=(build_season_entrant_cell(standing, side), *cells), kind=standing.kind
            )
        )
    columns = (
        BoardTableColumn(title=side.capitalize(), numbers=False),
        *map(build_metric_column, figures),
    )
    caption = f"Further metrics of {side}s"
    table = ReportTable(caption=caption, columns=columns, lines=tuple(lines), notes=notes.listed())
    yield "More metrics", (table,)


def _format_leader_summary(standings: Sequence[LeaderboardRow], figure: MetricDefinition) -> str:
    """Return sentences about the first entrant, its lead over the second, and the number leading."""
    ranked = [standing for standing in standings if standing.rank is not None]
    if not ranked:
        return "No entrant has a rank."
    first, *rest = ranked
    sentences = [f"First: {first.name} with {_format_metric_value(first, figure)}."]
    if rest and rest[0].name in first.above:
        percent = 100 * first.above[rest[0].name]
        sentences.append(f"It is above {rest[0].name} in {percent:.0f} % of resamples.")
    n_leading = sum(standing.first_class for standing in ranked)
    if len(ranked) > 1:
        sentences.append(f"Leading: {n_leading} of {len(ranked)} ranked entrants.")
    return " ".join(sentences)


def _format_metric_value(standing: LeaderboardRow, figure: MetricDefinition) -> str:
    cell = build_estimate_cell(
        standing.figures.get(figure.metric), TableFootnotes(), places=figure.places
    )
    return f"{cell.text} ({cell.doubt})" if cell.text else "no value"


def _format_axis_title(figure: MetricDefinition) -> str:
    return f"{figure.title}, {figure.unit}" if figure.unit else figure.title


def _compute_axis_domain(
    figure: MetricDefinition, points: Sequence[ChartPoint]
) -> tuple[float, float]:
    """Return the metric's range; infinite ends become the outermost interval ends, or 0 and 1."""
    low, high = figure.range
    known = [point.measured for point in points if isinstance(point.measured, Estimate)]
    lows, highs = [e.low for e in known] or [0.0], [e.high for e in known] or [1.0]
    return (
        low if math.isfinite(low) else min(lows),
        high if math.isfinite(high) else max(highs),
    )


def shorten_name_list(names: Sequence[str]) -> str:
    """Return the first three names and the number of further names."""
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest
