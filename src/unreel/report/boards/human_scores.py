"""Scores of people on a board, from a file that a campaign wrote with its benchmark; unranked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from unreel.benchmarks.human_scores import AGAINST, AnnotatorScoreRow, read_human_scores
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Estimate
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.charts import ChartPoint
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableRow,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
)
from unreel.report.entrants import ReportEntrant

KIND: Final = "people"


@dataclass(frozen=True, slots=True)
class HumanLeaderboardRows:
    """Scores of people for one board, and a sentence about them or about why they are missing."""

    rows: tuple[AnnotatorScoreRow, ...] = ()
    told: str = ""


NOBODY: Final = HumanLeaderboardRows()


def find_human_leaderboard_rows(entrant: ReportEntrant) -> HumanLeaderboardRows:
    """Find the scores of people on the benchmark and for the protocol of `entrant`."""
    try:
        people = read_human_scores(Path(entrant.benchmark))
    except UnreadableSourceError as error:
        return HumanLeaderboardRows(told=f"People's rows are not shown: {error}")
    if people is None:
        return NOBODY
    protocol = entrant.instrument.instrument
    rows = tuple(
        r for r in people.rows if (r.protocol, r.version) == (protocol.protocol, protocol.version)
    )
    if not rows:
        return NOBODY
    if people.fingerprint and entrant.fingerprint not in {"", people.fingerprint}:
        note = "People's rows are not shown: they belong to another version of this benchmark."
        return HumanLeaderboardRows(told=note)
    n_annotators = sum(row.kind == "annotator" for row in rows)
    note = (
        f"{n_annotators} people judged these clips in the campaign {people.campaign}. Each "
        "watched some of the clips in full, so their rows are below and have no rank."
    )
    return HumanLeaderboardRows(rows=rows, told=note)


def build_human_points(
    rows: Sequence[AnnotatorScoreRow], figure: MetricDefinition
) -> list[ChartPoint]:
    """Return the chart points of the people who have the metric, with the majority first."""
    return [
        ChartPoint(who=_format_human_row_name(row), measured=row[figure.metric], kind=KIND)
        for row in _sort_by_score(rows, figure)
        if isinstance(row[figure.metric], Estimate)
    ]


def build_human_table_lines(
    rows: Sequence[AnnotatorScoreRow],
    ranking: MetricDefinition,
    figures: Sequence[MetricDefinition],
    notes: TableFootnotes,
) -> list[BoardTableRow]:
    """Return the leaderboard rows of people: no rank, a name, `figures`, and the number of judgements."""
    lines = []
    for row in _sort_by_score(rows, ranking):
        name = BoardTableCell(
            text=_format_human_row_name(row), badge=KIND, doubt=f"against {AGAINST[row.against]}"
        )
        values = (build_estimate_cell(row[f.metric], notes, places=f.places) for f in figures)
        n_judged = replace(build_count_cell(row.n_judged), doubt="judged")
        lines.append(BoardTableRow(cells=(BoardTableCell(), name, *values, n_judged), kind=KIND))
    return lines


def _sort_by_score(
    rows: Sequence[AnnotatorScoreRow], figure: MetricDefinition
) -> list[AnnotatorScoreRow]:
    """Sort rows: the majority first, then people with the metric, best first, then others by name."""

    def get_key(row: AnnotatorScoreRow) -> tuple[bool, float, str]:
        measured = row[figure.metric]
        value = measured.value if isinstance(measured, Estimate) else float("-inf")
        return row.kind != "majority", -value, row.name

    return sorted(rows, key=get_key)


def _format_human_row_name(row: AnnotatorScoreRow) -> str:
    return f"people: {row.name}"
