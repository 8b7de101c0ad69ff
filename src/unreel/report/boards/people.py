"""People beside models: the rows that a campaign wrote with its benchmark, never ranked among reviewers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from unreel.benchmarks.people import AGAINST, HumanRow, read_people
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Estimate
from unreel.protocols.figures import Figure
from unreel.report.boards.charts import Point
from unreel.report.boards.tables import Cell, Line, Notes, exact_cell, measured_cell
from unreel.report.entrants import Entrant

KIND: Final = "people"


@dataclass(frozen=True, slots=True)
class Beside:
    """People's rows for one board, and a sentence about them."""

    rows: tuple[HumanRow, ...] = ()
    told: str = ""


NOBODY: Final = Beside()


def people_beside(entrant: Entrant) -> Beside:
    """Return the human scores on the benchmark of `entrant`, by the same protocol."""
    try:
        people = read_people(Path(entrant.benchmark))
    except UnreadableSourceError as error:
        return Beside(told=f"People's rows are not shown: {error}")
    if people is None:
        return NOBODY
    asked = entrant.instrument.instrument
    rows = tuple(
        r for r in people.rows if (r.protocol, r.version) == (asked.protocol, asked.version)
    )
    if not rows:
        return NOBODY
    if people.fingerprint and entrant.fingerprint not in {"", people.fingerprint}:
        told = "People's rows are not shown: they are about another version of this benchmark."
        return Beside(told=told)
    n_annotators = sum(row.kind == "annotator" for row in rows)
    told = (
        f"{n_annotators} people judged these clips in the campaign {people.campaign}. They saw whole "
        "clips, each some of them, so that their rows stand below and have no rank."
    )
    return Beside(rows=rows, told=told)


def people_points(rows: Sequence[HumanRow], figure: Figure) -> list[Point]:
    """People on the chart of a figure: those who have it, all together first."""
    return [
        Point(who=_name(row), measured=row[figure.metric], kind=KIND)
        for row in _in_order(rows, figure)
        if isinstance(row[figure.metric], Estimate)
    ]


def people_lines(
    rows: Sequence[HumanRow], ranking: Figure, figures: Sequence[Figure], notes: Notes
) -> list[Line]:
    """People's lines of the leaderboard: no place, a name, `figures`, and how many they judged."""
    lines = []
    for row in _in_order(rows, ranking):
        name = Cell(text=_name(row), badge=KIND, doubt=f"against {AGAINST[row.against]}")
        values = (measured_cell(row[f.metric], notes, places=f.places) for f in figures)
        judged = replace(exact_cell(row.n_judged), doubt="judged")
        lines.append(Line(cells=(Cell(), name, *values, judged), kind=KIND))
    return lines


def _in_order(rows: Sequence[HumanRow], figure: Figure) -> list[HumanRow]:
    """All together first, then the best of those who have the figure, then the others by name."""

    def height(row: HumanRow) -> tuple[bool, float, str]:
        measured = row[figure.metric]
        value = measured.value if isinstance(measured, Estimate) else float("-inf")
        return row.kind != "majority", -value, row.name

    return sorted(rows, key=height)


def _name(row: HumanRow) -> str:
    return f"people: {row.name}"
