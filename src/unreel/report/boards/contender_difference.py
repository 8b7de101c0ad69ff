"""Difference of the ranking metric between two contenders, as a number and as a sentence.

Only the clips that both contenders answered are compared.
"""

from dataclasses import dataclass
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import ENOUGH_CLUSTERS, Estimate, Measured, Unmeasured
from unreel.evaluation.comparison import ComparedReviewer, compare_reviewers
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardContender, ReportBoard
from unreel.report.entrants import ReportEntrant

_CLAIMS: Final = {
    ("floor", "ahead"): "{first} beats the baseline {second}",
    ("floor", "behind"): "{first} does worse than the baseline {second}",
    ("floor", "open"): "{first} has not shown that it beats the baseline {second}",
    ("reviewer", "ahead"): "{first} is ahead of {second}, the second",
    ("reviewer", "behind"): "{second}, the second, is ahead of {first} on common questions",
    ("reviewer", "open"): "Whether {first} is ahead of {second}, the second, is uncertain",
}
"""Texts by the kind of the opponent and by the sign of the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingMetricDifference:
    """Difference of the ranking metric between two entrants, first minus second."""

    measured: Measured
    figure: MetricDefinition
    n_questions: int = 0
    """Number of questions with readable answers of both."""
    p: float | None = None
    """Two-sided p-value of the difference; `None` if it was not tested."""


def compare_report_entrants(first: ReportEntrant, second: ReportEntrant) -> RankingMetricDifference:
    """Return the ranking metric of `first` minus that of `second`, computed as in `unreel compare`."""
    figures = first.instrument.figures
    figure = figures[figures.ranks_by(judged=first.judged and second.judged)]
    try:
        (comparison,) = compare_reviewers(
            [_build_compared_reviewer(first), _build_compared_reviewer(second)],
            metrics=[figure.metric],
        )
    except InvalidSettingError as error:
        return RankingMetricDifference(measured=Unmeasured(error.problem), figure=figure)
    (difference,) = comparison.differences
    return RankingMetricDifference(
        measured=difference.difference,
        figure=figure,
        n_questions=comparison.n_common,
        p=difference.p,
    )


def format_contender_difference(
    board: ReportBoard, first: BoardContender, second: BoardContender
) -> str:
    """Return a sentence on which of two leads, or that it is unknown, based on the paired difference."""
    difference = compare_report_entrants(first.entrant, second.entrant)
    measured = difference.measured
    if isinstance(measured, Unmeasured):
        return f"{first.name} and {second.name} cannot be compared clip by clip: {measured.why}."
    kind = "pairs" if board.asked.subject == "pair" else "clips"
    value, low, high = (
        f"{number:+.{difference.figure.places}f}"
        for number in (measured.value, measured.low, measured.high)
    )
    n_clusters = measured.n_clusters or measured.n
    few = f", from only {n_clusters} clips or scenes" if n_clusters < ENOUGH_CLUSTERS else ""
    return (
        f"{_format_difference_claim(first, second, measured)}: {value} of {difference.figure.title.lower()} on the "
        f"{difference.n_questions:,} {kind} that both answered (95 % interval {low} to {high}{few})."
    )


def _format_difference_claim(
    first: BoardContender, second: BoardContender, measured: Estimate
) -> str:
    lead = "ahead" if measured.low > 0 else "behind" if measured.high < 0 else "open"
    return _CLAIMS[second.kind, lead].format(first=first.name, second=second.name)


def _build_compared_reviewer(entrant: ReportEntrant) -> ComparedReviewer:
    named = [
        ("+".join(subject.entry.name for subject in item.subjects), row)
        for item in entrant.items
        for row in item.rows
    ]
    return ComparedReviewer(
        reviewer=entrant.reviewer,
        condition=entrant.condition,
        instrument=entrant.instrument,
        names=[name for name, _ in named],
        rows=[row for _, row in named],
    )
