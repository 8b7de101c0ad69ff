"""The two boards of one condition: who stands where, how sure that is, and who lacks what."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from unreel.arena.standings import Standing, Standings
from unreel.core.estimate import Estimate
from unreel.protocols.figures import Figure
from unreel.report.boards.board import Panel
from unreel.report.boards.charts import Chart, Point, ranked
from unreel.report.boards.tables import (
    Cell,
    Column,
    Line,
    Notes,
    Table,
    exact_cell,
    figure_column,
    measured_cell,
)
from unreel.report.season.view import PAGES, address, side_of
from unreel.report.season.words import Side, figure_of, further, leading, ranks_by

_NAMED: Final = 3
"""Opponents that are named before the others are counted."""
_MOST_PAIRS: Final = 20
"""Entrants whose shares stand on the page; the file has all."""
_COIN: Final[Mapping[Side, str]] = {"reviewer": " and that are above the coin", "creator": ""}
_LEADS: Final[Mapping[Side, str]] = {
    "reviewer": "A floor knows nothing of the picture; whoever does not beat it has shown nothing.",
    "creator": "First is who was caught least.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One condition: its place among others, and what it is called."""

    id: str
    standings: Standings
    attempts: Mapping[str, int]
    retired: frozenset[str] = frozenset()
    shows_clips: bool = True


def board_panel(sheet: Sheet, side: Side) -> Panel:
    """One board: its chart, its table, and behind a heading who is above whom how often."""
    standings = side_of(sheet.standings, side)
    figure = figure_of(ranks_by(side, standings))
    entrants = [standing for standing in standings if standing.kind != "control"]
    controls = [standing for standing in standings if standing.kind == "control"]
    tables = [_table(sheet, side, entrants)]
    if controls:
        tables.append(_controls(controls))
    points = [
        Point(who=s.name, measured=s.figures[figure.metric], kind=s.kind)
        for s in standings
        if figure.metric in s.figures
    ]
    chart = Chart(
        id=f"{sheet.id}-{side}s",
        title=f"{figure.title} of each {side}",
        alt=_told(standings, figure),
        spec=ranked(
            points, title=_axis(figure), domain=_domain(figure, points), places=figure.places
        ),
    )
    return Panel(
        id=f"{sheet.id}-{side}s",
        heading=f"{side.capitalize()}s",
        lead=(
            f"Ranked by {figure.title.lower()}: {figure.meaning}. Ranks are of unrounded means; leading are "
            f"all that the first does not surely beat (paired differences by scene, Holm){_COIN[side]}. {_LEADS[side]}"
        ),
        charts=(chart,),
        tables=tuple(tables),
        extras=(*_pairs(entrants, side), *_more(entrants, side)),
        is_open=True,
    )


def name_cell(standing: Standing, side: Side, *, retired: Collection[str] = ()) -> Cell:
    """An entrant's name, marked by its kind and class, with a way to its own page."""
    badge = "taken out" if standing.name in retired else ""
    badge = badge or {"floor": "floor", "control": "control"}.get(standing.kind, "")
    if not badge and standing.first_class and standing.rank is not None:
        badge = "leading"
    why = f"not ranked: never met {named(standing.lacks)}" if standing.lacks else ""
    link = f"{PAGES}/{address(side, standing.name)}.html"
    return Cell(text=standing.name, badge=badge, link=link, doubt=why)


def _table(sheet: Sheet, side: Side, standings: Sequence[Standing]) -> Table:
    first = figure_of(ranks_by(side, standings))
    attempts = {s.name: sheet.attempts[s.name] for s in standings if s.name in sheet.attempts}
    figures = [figure_of(metric) for metric in leading(side, standings)]
    notes = Notes()
    columns = [Column(title="#"), Column(title=side.capitalize(), numbers=False)]
    columns += map(figure_column, figures)
    columns.append(Column(title="Above the next"))
    if attempts:
        columns.append(Column(title="Attempts"))
    lines = []
    for place, standing in enumerate(standings):
        rank = Cell() if standing.rank is None else exact_cell(standing.rank)
        cells = [rank, name_cell(standing, side, retired=sheet.retired)]
        cells += [
            measured_cell(standing.figures.get(f.metric), notes, places=f.places) for f in figures
        ]
        cells.append(_above_next(standing, standings[place + 1 :]))
        if attempts:
            cells.append(_attempts(attempts, standing))
        lines.append(Line(cells=tuple(cells), kind=standing.kind))
    return Table(
        caption=f"{side.capitalize()}s by {first.title.lower()}, {sheet.standings.condition}",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _controls(standings: Sequence[Standing]) -> Table:
    names = dict.fromkeys(name for standing in standings for name in standing.figures)
    figures = [figure_of(name) for name in names]
    notes = Notes()
    lines = []
    for standing in standings:
        known = (
            measured_cell(standing.figures.get(f.metric), notes, places=f.places) for f in figures
        )
        lines.append(Line(cells=(name_cell(standing, "creator"), *known), kind=standing.kind))
    return Table(
        caption="Controls, without a rank: real clips, as filmed or changed",
        columns=(Column(title="Control", numbers=False), *map(figure_column, figures)),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _attempts(attempts: Mapping[str, int], standing: Standing) -> Cell:
    made = attempts.get(standing.name)
    return Cell() if made is None else exact_cell(made)


def _above_next(standing: Standing, below: Sequence[Standing]) -> Cell:
    ranked_below = [each for each in below if each.rank is not None]
    if standing.rank is None or not ranked_below:
        return Cell()
    return share_cell(standing.above.get(ranked_below[0].name))


def share_cell(share: float | None) -> Cell:
    """A share of resamples as percent."""
    if share is None:
        return Cell()
    return Cell(text=f"{100 * share:.0f} %", number=round(100 * share, 2))


def _pairs(standings: Sequence[Standing], side: Side) -> Iterator[tuple[str, tuple[Table, ...]]]:
    placed = [standing for standing in standings if standing.rank is not None]
    shown = placed[:_MOST_PAIRS]
    if not any(standing.above for standing in shown):
        return
    columns = [Column(title=side.capitalize(), numbers=False)]
    columns += [Column(title=standing.name) for standing in shown]
    lines = [
        Line(cells=(name_cell(s, side), *(share_cell(s.above.get(other.name)) for other in shown)))
        for s in shown
    ]
    first = f"the first {len(shown)}" if len(shown) < len(placed) else "every two"
    caption = (
        f"Share of resamples in which the {side} of a row stands above that of a column: {first}"
    )
    table = Table(caption=caption, columns=tuple(columns), lines=tuple(lines))
    yield "Who is above whom, and how surely", (table,)


def _more(standings: Sequence[Standing], side: Side) -> Iterator[tuple[str, tuple[Table, ...]]]:
    figures = [figure_of(name) for name in further(side, standings)]
    if not figures:
        return
    notes = Notes()
    lines = []
    for standing in standings:
        known = (standing.figures.get(f.metric) for f in figures)
        cells = (
            measured_cell(m, notes, places=f.places) for m, f in zip(known, figures, strict=True)
        )
        lines.append(Line(cells=(name_cell(standing, side), *cells), kind=standing.kind))
    columns = (Column(title=side.capitalize(), numbers=False), *map(figure_column, figures))
    caption = f"Further figures of {side}s"
    table = Table(caption=caption, columns=columns, lines=tuple(lines), notes=notes.listed())
    yield "More figures", (table,)


def _told(standings: Sequence[Standing], figure: Figure) -> str:
    """The first, how sure it is of the second, and who leads with it."""
    placed = [standing for standing in standings if standing.rank is not None]
    if not placed:
        return "Nobody has a rank here."
    first, *others = placed
    told = [f"First: {first.name} with {_number(first, figure)}."]
    if others and others[0].name in first.above:
        share = 100 * first.above[others[0].name]
        told.append(f"It is above {others[0].name} in {share:.0f} % of resamples.")
    n_leading = sum(standing.first_class for standing in placed)
    if len(placed) > 1:
        told.append(f"Leading: {n_leading} of {len(placed)} with a rank.")
    return " ".join(told)


def _number(standing: Standing, figure: Figure) -> str:
    cell = measured_cell(standing.figures.get(figure.metric), Notes(), places=figure.places)
    return f"{cell.text} ({cell.doubt})" if cell.text else "no figure"


def _axis(figure: Figure) -> str:
    return f"{figure.title}, {figure.unit}" if figure.unit else figure.title


def _domain(figure: Figure, points: Sequence[Point]) -> tuple[float, float]:
    """The figure's range; where that has no end, as far as intervals go."""
    low, high = figure.range
    known = [point.measured for point in points if isinstance(point.measured, Estimate)]
    lows, highs = [e.low for e in known] or [0.0], [e.high for e in known] or [1.0]
    return (
        low if math.isfinite(low) else min(lows),
        high if math.isfinite(high) else max(highs),
    )


def named(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
