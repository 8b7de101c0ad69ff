"""Panels of a season: results from season to season, effects of single settings, and biases."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from unreel.arena.boards.ablations import EVERYBODY, AblationEffect
from unreel.arena.boards.leaderboard_types import LeaderboardRow
from unreel.arena.boards.reviewer_bias import ReviewerBias
from unreel.core.estimate import Measured, Unmeasured
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.charts import (
    FLOORS,
    SERIES,
    SHOWN,
    BoardChart,
    ChartPoint,
    build_stepped_chart,
)
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
)
from unreel.report.season.leaderboards import build_season_entrant_cell
from unreel.report.season.metric_names import Side, get_metric_definition, get_ranking_metric
from unreel.report.season.page_data import SeasonPageData, get_leaderboard_side_rows

_SMALLEST: Final = 0.001
_NO_LEAD: Final = "First minus second in percentage points, on the same clips."


def iter_ablation_panels(
    ablations: Sequence[AblationEffect], leanings: Sequence[ReviewerBias]
) -> Iterator[BoardPanel]:
    """Yield a panel for each setting whose effect was measured, and one for the bias towards real."""
    by_knob: defaultdict[str, list[AblationEffect]] = defaultdict(list)
    for ablation in ablations:
        by_knob[ablation.knob].append(ablation)
    for number, (knob, effects) in enumerate(by_knob.items()):
        together = [effect for effect in effects if effect.reviewer == EVERYBODY]
        alone = [effect for effect in effects if effect.reviewer != EVERYBODY]
        yield BoardPanel(
            id=f"ablations-{number}",
            heading=knob.capitalize(),
            lead=f"{_NO_LEAD} p-values are corrected for all differences on this page.",
            tables=(_build_difference_table(together, f"{knob}, all reviewers except baselines"),),
            extras=(("Each reviewer", (_build_difference_table(alone, f"{knob}, each reviewer"),)),)
            if alone
            else (),
            is_open=True,
        )
    if leanings:
        yield BoardPanel(
            id="ablations-leaning",
            heading="Bias towards real",
            lead=(
                "Share of real answers with both sides weighted equally, and the criterion: above 0, the reviewer "
                "calls a clip real when in doubt; below 0, generated."
            ),
            tables=(_build_bias_table(leanings),),
        )


def _build_difference_table(effects: Sequence[AblationEffect], caption: str) -> ReportTable:
    notes = TableFootnotes()
    lines = []
    for effect in effects:
        cells = [
            BoardTableCell(text=effect.reviewer),
            BoardTableCell(text=effect.first),
            BoardTableCell(text=effect.second),
        ]
        cells += [BoardTableCell(text=effect.figure), build_estimate_cell(effect.difference, notes)]
        cells += [
            _build_p_value_cell(effect.p_corrected),
            build_count_cell(effect.n_pairs),
            build_count_cell(effect.n_left_out),
        ]
        lines.append(BoardTableRow(cells=tuple(cells)))
    texts = ("Reviewer", "First", "Second", "Figure")
    numbers = ("First less second", "p, corrected", "Pairs", "Left out")
    return ReportTable(
        caption=f"Paired differences: {caption}",
        columns=(
            *(BoardTableColumn(title=title, numbers=False) for title in texts),
            *(BoardTableColumn(title=title) for title in numbers),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_p_value_cell(p: float | None) -> BoardTableCell:
    if p is None:
        return BoardTableCell()
    return BoardTableCell(text=f"{p:.3f}" if p >= _SMALLEST else f"< {_SMALLEST}", number=p)


def _build_bias_table(biases: Sequence[ReviewerBias]) -> ReportTable:
    notes = TableFootnotes()
    lines = []
    for bias in biases:
        cells = [BoardTableCell(text=bias.reviewer), BoardTableCell(text=bias.condition)]
        cells.append(build_estimate_cell(bias.said_real, notes))
        known = (bias.criterion, bias.sensitivity)
        cells += [build_estimate_cell(measured, notes, places=2) for measured in known]
        lines.append(BoardTableRow(cells=tuple(cells)))
    columns = [BoardTableColumn(title=title, numbers=False) for title in ("Reviewer", "Condition")]
    columns += [
        BoardTableColumn(title=title) for title in ("Said real, %", "Criterion c", "Sensitivity d'")
    ]
    return ReportTable(
        caption="Bias towards real of each reviewer",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )


_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,23}")
"""Pattern of names that may appear in a chart specification; others are numbered."""
_LEAST: Final = 2


def build_history_panel(seasons: Sequence[SeasonPageData], side: Side) -> BoardPanel | None:
    """Build the panel of the entrants' results over the seasons; `None` if there is one season."""
    if len(seasons) < _LEAST:
        return None
    figure = get_metric_definition(get_ranking_metric(side, _select_board_rows(seasons[-1], side)))
    steps = _build_axis_labels(seasons)
    rows = collect_rows_over_seasons(seasons, side)
    names = list(rows)[:SHOWN]
    points = [
        ChartPoint(who=name, group=step, measured=_get_metric_value(standing, figure.metric))
        for name in names
        for step, standing in zip(steps, rows[name], strict=True)
    ]
    chart = BoardChart(
        id=f"history-{side}s",
        title=f"{figure.title} of {side}s over the seasons",
        alt=f"Seasons in order: {', '.join(season.name for season in seasons)}.",
        spec=build_stepped_chart(
            points,
            _assign_colours(rows, names),
            steps=steps,
            title=f"{figure.title}, {figure.unit}",
        ),
    )
    return BoardPanel(
        id=f"history-{side}s",
        heading=f"{side.capitalize()}s over the seasons",
        lead=(
            f"{figure.title} under the first condition of each season. Clips, opponents and hold-outs change "
            "between seasons, so compare values within a season; an entrant that left keeps its row."
        ),
        charts=(chart,) if figure.unit == "%" else (),
        tables=(_build_history_table(seasons, side, rows),),
        is_open=True,
    )


def collect_rows_over_seasons(
    seasons: Sequence[SeasonPageData], side: Side
) -> dict[str, list[LeaderboardRow | None]]:
    """Return rows in every season (`None` if absent), entrants of the last season first, in its order."""
    boards = [
        {standing.name: standing for standing in _select_board_rows(season, side)}
        for season in seasons
    ]
    names = dict.fromkeys(itertools.chain.from_iterable(reversed(boards)))
    return {name: [board.get(name) for board in boards] for name in names}


def _select_board_rows(season: SeasonPageData, side: Side) -> tuple[LeaderboardRow, ...]:
    return get_leaderboard_side_rows(season.standings[0], side)


def _build_axis_labels(seasons: Sequence[SeasonPageData]) -> list[str]:
    """Return a unique axis label for each season."""
    names = [season.name for season in seasons]
    plain = all(map(_PLAIN.fullmatch, names)) and len(set(names)) == len(names)
    return names if plain else [f"season {number}" for number, _ in enumerate(names, start=1)]


def _get_metric_value(standing: LeaderboardRow | None, metric: str) -> Measured:
    unknown = Unmeasured("it does not have this metric")
    return (
        Unmeasured("it was absent") if standing is None else standing.figures.get(metric, unknown)
    )


def _assign_colours(
    rows: dict[str, list[LeaderboardRow | None]], names: Sequence[str]
) -> dict[str, str]:
    colours = {True: itertools.cycle(SERIES), False: itertools.cycle(FLOORS)}
    return {name: next(colours[_is_competitor(rows[name])]) for name in names}


def _is_competitor(standings: Sequence[LeaderboardRow | None]) -> bool:
    return any(s is not None and s.kind in {"reviewer", "creator"} for s in standings)


def _build_history_table(
    seasons: Sequence[SeasonPageData], side: Side, rows: dict[str, list[LeaderboardRow | None]]
) -> ReportTable:
    figure = get_metric_definition(get_ranking_metric(side, _select_board_rows(seasons[-1], side)))
    notes = TableFootnotes()
    lines = []
    for name, standings in rows.items():
        latest = standings[-1]
        last = next(standing for standing in reversed(standings) if standing is not None)
        head = (
            build_season_entrant_cell(last, side)
            if latest
            else BoardTableCell(text=name, badge="gone")
        )
        cells = (
            build_estimate_cell(
                _get_metric_value(standing, figure.metric), notes, places=figure.places
            )
            for standing in standings
        )
        lines.append(BoardTableRow(cells=(head, *cells), kind=last.kind))
    columns = [BoardTableColumn(title=side.capitalize(), numbers=False)]
    columns += [BoardTableColumn(title=season.name) for season in seasons]
    return ReportTable(
        caption=f"{figure.title} of each {side} in each season",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        figure=figure,
    )
