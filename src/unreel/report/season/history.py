"""Results of entrants from season to season, in the given order."""

import itertools
import re
from collections.abc import Sequence
from typing import Final

from unreel.arena.boards.standings import LeaderboardRow
from unreel.core.estimate import Measured, Unmeasured
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.charts import FLOORS, SERIES, SHOWN, BoardChart, ChartPoint, stepped_chart
from unreel.report.boards.tables import (
    BoardTable,
    FootnoteMarks,
    TableCell,
    TableColumn,
    TableLine,
    measured_cell,
)
from unreel.report.season.boards import name_cell
from unreel.report.season.metric_names import Side, figure_of, ranks_by
from unreel.report.season.view import SeasonView, select_side

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,23}")
"""Names that may stand in a chart's own language; the others are numbered."""
_LEAST: Final = 2


def history_panel(seasons: Sequence[SeasonView], side: Side) -> BoardPanel | None:
    """Build a panel with one line for each entrant over the seasons; `None` for one season."""
    if len(seasons) < _LEAST:
        return None
    figure = figure_of(ranks_by(side, _select_board_rows(seasons[-1], side)))
    steps = _build_axis_labels(seasons)
    told = track(seasons, side)
    shown = list(told)[:SHOWN]
    points = [
        ChartPoint(who=name, group=step, measured=_get_metric_value(standing, figure.metric))
        for name in shown
        for step, standing in zip(steps, told[name], strict=True)
    ]
    chart = BoardChart(
        id=f"history-{side}s",
        title=f"{figure.title} of {side}s over the seasons",
        alt=f"Seasons in order: {', '.join(season.name for season in seasons)}.",
        spec=stepped_chart(
            points,
            _assign_colours(told, shown),
            steps=steps,
            title=f"{figure.title}, {figure.unit}",
        ),
    )
    return BoardPanel(
        id=f"history-{side}s",
        heading=f"{side.capitalize()}s over the seasons",
        lead=(
            f"{figure.title} under the first condition of each season. Clips, opponents and hold-outs change "
            "between seasons, so compare within one; an entrant that left keeps its row."
        ),
        charts=(chart,) if figure.unit == "%" else (),
        tables=(_build_history_table(seasons, side, told),),
        is_open=True,
    )


def track(seasons: Sequence[SeasonView], side: Side) -> dict[str, list[LeaderboardRow | None]]:
    """Return each entrant's row in every season; `None` for a season without the entrant.

    Entrants of the last season come first, in the order of that season.
    """
    boards = [
        {standing.name: standing for standing in _select_board_rows(season, side)}
        for season in seasons
    ]
    names = dict.fromkeys(itertools.chain.from_iterable(reversed(boards)))
    return {name: [board.get(name) for board in boards] for name in names}


def _select_board_rows(season: SeasonView, side: Side) -> tuple[LeaderboardRow, ...]:
    return select_side(season.standings[0], side)


def _build_axis_labels(seasons: Sequence[SeasonView]) -> list[str]:
    """Return a unique axis label for each season."""
    names = [season.name for season in seasons]
    plain = all(map(_PLAIN.fullmatch, names)) and len(set(names)) == len(names)
    return names if plain else [f"season {number}" for number, _ in enumerate(names, start=1)]


def _get_metric_value(standing: LeaderboardRow | None, metric: str) -> Measured:
    unknown = Unmeasured("it has no such metric")
    return (
        Unmeasured("it did not play") if standing is None else standing.figures.get(metric, unknown)
    )


def _assign_colours(
    told: dict[str, list[LeaderboardRow | None]], shown: Sequence[str]
) -> dict[str, str]:
    colours = {True: itertools.cycle(SERIES), False: itertools.cycle(FLOORS)}
    return {name: next(colours[_is_competitor(told[name])]) for name in shown}


def _is_competitor(standings: Sequence[LeaderboardRow | None]) -> bool:
    return any(s is not None and s.kind in {"reviewer", "creator"} for s in standings)


def _build_history_table(
    seasons: Sequence[SeasonView], side: Side, told: dict[str, list[LeaderboardRow | None]]
) -> BoardTable:
    figure = figure_of(ranks_by(side, _select_board_rows(seasons[-1], side)))
    notes = FootnoteMarks()
    lines = []
    for name, standings in told.items():
        latest = standings[-1]
        last = next(standing for standing in reversed(standings) if standing is not None)
        head = name_cell(last, side) if latest else TableCell(text=name, badge="gone")
        cells = (
            measured_cell(_get_metric_value(standing, figure.metric), notes, places=figure.places)
            for standing in standings
        )
        lines.append(TableLine(cells=(head, *cells), kind=last.kind))
    columns = [TableColumn(title=side.capitalize(), numbers=False)]
    columns += [TableColumn(title=season.name) for season in seasons]
    return BoardTable(
        caption=f"{figure.title} of each {side} in each season",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        figure=figure,
    )
