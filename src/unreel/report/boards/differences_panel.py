"""Panel of differences between each two contenders on the clips that both answered."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from unreel.core.question import Condition
from unreel.report.boards.board import (
    BoardContender,
    BoardPanel,
    ReportBoard,
    format_contender_name,
)
from unreel.report.boards.contender_difference import (
    RankingMetricDifference,
    compare_report_entrants,
)
from unreel.report.boards.entrant_metrics import DIFFERENCE
from unreel.report.boards.ranking_panels import build_contender_cell
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
from unreel.stats.paired_differences import adjust_p_values_by_holm

CHANCE: Final = 0.05
LEADERS: Final = 3
"""Maximum number of reviewers of a board that are compared with those of another board."""
_COLUMNS: Final = (
    BoardTableColumn(title="Reviewer", numbers=False),
    BoardTableColumn(title="Less", numbers=False),
    build_metric_column(DIFFERENCE),
    BoardTableColumn(title="In common"),
    BoardTableColumn(title="p, corrected"),
    BoardTableColumn(title="Told apart", numbers=False),
)


def build_pairwise_differences_panel(
    board: ReportBoard, later: Sequence[ReportBoard] = ()
) -> BoardPanel | None:
    """Build corrected pairwise differences, also on clips in common with the boards `later` of other parts."""
    groups = [
        _build_board_comparisons(board),
        *(_build_cross_board_comparisons(board, b) for b in later),
    ]
    pairs = [pair for group in groups for pair in group.pairs]
    if not pairs:
        return None
    compared = [compare_report_entrants(a.entrant, b.entrant) for a, b in pairs]
    corrected = iter(adjust_p_values_by_holm([item.p for item in compared if item.p is not None]))
    results = [(item, None if item.p is None else next(corrected)) for item in compared]
    title = compared[0].figure.title.lower()
    rows = iter(results)
    return BoardPanel(
        id=f"{board.id}-differences",
        heading="Paired differences",
        lead=(
            "Each pair on the clips that both answered, so that hard clips cancel out. p-values are "
            f"corrected for {len(pairs)} comparisons (Holm). The command unreel compare prints the "
            "differences of every metric."
        ),
        tables=tuple(
            _build_difference_table(
                group, list(itertools.islice(rows, len(group.pairs))), title=title
            )
            for group in groups
            if group.pairs
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedContenderPairs:
    """Pairs of contenders that one table compares, and the caption of the table."""

    caption: str
    pairs: Sequence[tuple[BoardContender, BoardContender]]


def _build_board_comparisons(board: ReportBoard) -> _ComparedContenderPairs:
    ranked = [contender for contender in board.shown if not contender.unranked]
    pairs = [
        (first, second)
        for first, second in itertools.combinations(ranked, 2)
        if "reviewer" in (first.kind, second.kind)
    ]
    return _ComparedContenderPairs(caption="First minus second", pairs=pairs)


def _build_cross_board_comparisons(
    board: ReportBoard, other: ReportBoard
) -> _ComparedContenderPairs:
    """Compare the leaders of two boards, except a reviewer with itself under the same condition."""
    pairs = [
        (
            replace(left, name=format_contender_name(board, left)),
            replace(right, name=format_contender_name(other, right)),
        )
        for left in _select_leaders(board)
        for right in _select_leaders(other)
        if _get_reviewer_condition(left) != _get_reviewer_condition(right)
    ]
    names = " and ".join(", ".join(compared.told) for compared in (board, other))
    return _ComparedContenderPairs(
        caption=f"Clips in common of {names}, first minus second", pairs=pairs
    )


def _select_leaders(board: ReportBoard) -> list[BoardContender]:
    return [contender for contender in board.placed if contender.kind == "reviewer"][:LEADERS]


def _get_reviewer_condition(contender: BoardContender) -> tuple[str, Condition]:
    return contender.entrant.reviewer, contender.entrant.condition


def _build_difference_table(
    group: _ComparedContenderPairs,
    differences: Sequence[tuple[RankingMetricDifference, float | None]],
    *,
    title: str,
) -> ReportTable:
    notes = TableFootnotes()
    lines = [
        BoardTableRow(
            cells=(
                build_contender_cell(first),
                build_contender_cell(second),
                *_build_difference_cells(difference, p, notes),
            )
        )
        for (first, second), (difference, p) in zip(group.pairs, differences, strict=True)
    ]
    return ReportTable(
        caption=f"{group.caption}, {title}",
        columns=_COLUMNS,
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_difference_cells(
    difference: RankingMetricDifference, p: float | None, notes: TableFootnotes
) -> tuple[BoardTableCell, ...]:
    return (
        build_estimate_cell(difference.measured, notes, places=difference.figure.places),
        build_count_cell(difference.n_questions),
        BoardTableCell() if p is None else BoardTableCell(text=f"{p:.3f}"),
        BoardTableCell(text="yes" if p is not None and p < CHANCE else "no"),
    )
