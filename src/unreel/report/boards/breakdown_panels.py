"""Panels of metrics by creator, kind of trace and benchmark part, other metrics, and confusion."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from unreel.core.estimate import Estimate
from unreel.protocols.group_metrics import PARTS
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardPanel, ReportBoard
from unreel.report.boards.charts import BoardChart, ChartPoint, build_grouped_chart
from unreel.report.boards.entrant_metrics import (
    MetricBreakdown,
    get_entrant_metric,
    measure_metrics_by_benchmark_part,
    measure_metrics_by_creator,
    measure_metrics_by_trace_category,
)
from unreel.report.boards.ranking_panels import build_contender_line
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


def build_other_metrics_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of metrics that no other panel shows; `None` if no entrant has one."""
    tables = [
        table
        for table in (_build_other_metrics_table(board), _build_confusion_table(board))
        if table is not None
    ]
    if not tables:
        return None
    return BoardPanel(
        id=f"{board.id}-more",
        heading="More metrics",
        lead="Other metrics: those of a score or a confidence if one was given, and counts.",
        tables=tuple(tables),
    )


def _build_other_metrics_table(board: ReportBoard) -> ReportTable | None:
    figures = [
        figure for figure in _select_other_metrics(board) if _is_measured_metric(board, figure)
    ]
    if not figures:
        return None
    notes = TableFootnotes()
    lines = [
        build_contender_line(
            contender,
            (
                build_estimate_cell(
                    get_entrant_metric(contender.entrant, f.metric), notes, places=f.places
                )
                for f in figures
            ),
        )
        for contender in board.contenders
    ]
    return ReportTable(
        caption="Further metrics",
        columns=(
            BoardTableColumn(title="Reviewer", numbers=False),
            *map(build_metric_column, figures),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _select_other_metrics(board: ReportBoard) -> list[MetricDefinition]:
    figures = board.asked.figures
    other_panels = {*figures.leading, *figures.sides, figures.per_creator, "whole-frame-boxes"}
    return [figure for figure in figures if figure.metric not in other_panels]


def _is_measured_metric(board: ReportBoard, figure: MetricDefinition) -> bool:
    return any(isinstance(get_entrant_metric(e, figure.metric), Estimate) for e in board.entrants)


def _build_confusion_table(board: ReportBoard) -> ReportTable | None:
    calls = list(dict.fromkeys(call for e in board.entrants for call in e.card.confusion))
    if not calls:
        return None
    lines = [
        build_contender_line(
            contender,
            (build_count_cell(contender.entrant.card.confusion.get(call, 0)) for call in calls),
        )
        for contender in board.contenders
    ]
    return ReportTable(
        caption="Clips by true label and answer",
        columns=(
            BoardTableColumn(title="Reviewer", numbers=False),
            *(BoardTableColumn(title=c) for c in calls),
        ),
        lines=tuple(lines),
    )


FEW: Final = 10
"""Minimum n of a group; groups below it are in a collapsed section."""
_FILTERS: Final = ("creator", "category")


def build_creators_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of detection rates per creator."""
    breakdowns = measure_metrics_by_creator(board.entrants)
    if not any(breakdown.cells for breakdown in breakdowns):
        return None
    lead = (
        "Mean score of each creator's clips, and of the real clips."
        if board.asked.wording.decides == "score"
        else "A reviewer should detect all generated clips; a creator should avoid detection."
    )
    return _build_breakdown_panel(
        board, breakdowns, id_=f"{board.id}-creators", heading="By creator", lead=lead
    )


def build_categories_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of detection and localisation rates per kind of trace."""
    breakdowns = measure_metrics_by_trace_category(board.entrants)
    if not breakdowns:
        return None
    lead = (
        "Kinds of trace, as annotated by people; a trace may have several kinds. Annotation rows "
        "are counted and resampled by clip."
    )
    return _build_breakdown_panel(
        board, breakdowns, id_=f"{board.id}-categories", heading="By category", lead=lead
    )


def iter_benchmark_part_panels(board: ReportBoard) -> Iterator[BoardPanel]:
    """Yield a panel for each way in which the benchmark divides its clips, such as by difficulty."""
    for kind in PARTS:
        breakdowns = measure_metrics_by_benchmark_part(board.entrants, kind)
        if breakdowns:
            name = breakdowns[0].title
            lead = f"Each {name} of the benchmark, scored separately."
            yield _build_breakdown_panel(
                board, breakdowns, id_=f"{board.id}-{name}", heading=f"By {name}", lead=lead
            )


def _build_breakdown_panel(
    board: ReportBoard, breakdowns: Sequence[MetricBreakdown], *, id_: str, heading: str, lead: str
) -> BoardPanel:
    many, few = _split_by_group_size(breakdowns)
    if not many[0].cells:
        lead = f"{lead} No group has an n of {FEW} or more."
    return BoardPanel(
        id=id_,
        heading=heading,
        lead=lead,
        charts=(_build_breakdown_chart(board, many[0], id_=id_, heading=heading),)
        if many[0].cells
        else (),
        tables=tuple(
            _build_breakdown_table(board, breakdown) for breakdown in many if breakdown.cells
        ),
        extras=_build_small_group_tables(board, few),
    )


def _split_by_group_size(
    breakdowns: Sequence[MetricBreakdown],
) -> tuple[list[MetricBreakdown], list[MetricBreakdown]]:
    """Split each breakdown in two: groups with an n of at least `FEW`, and all other groups."""
    large = {
        group
        for breakdown in breakdowns
        for group, cells in breakdown.cells.items()
        if any(isinstance(value, Estimate) and value.n >= FEW for value in cells.values())
    }

    def keep(*, is_large: bool) -> list[MetricBreakdown]:
        return [
            replace(b, cells={g: c for g, c in b.cells.items() if (g in large) == is_large})
            for b in breakdowns
        ]

    return keep(is_large=True), keep(is_large=False)


def _build_small_group_tables(
    board: ReportBoard, few: Sequence[MetricBreakdown]
) -> tuple[tuple[str, tuple[ReportTable, ...]], ...]:
    tables = tuple(_build_breakdown_table(board, breakdown) for breakdown in few if breakdown.cells)
    return ((f"Small groups, n below {FEW} ({len(few[0].cells)})", tables),) if tables else ()


def _build_breakdown_chart(
    board: ReportBoard, first: MetricBreakdown, *, id_: str, heading: str
) -> BoardChart:
    contenders = {board.contenders.index(contender): contender for contender in board.shown}
    points = [
        ChartPoint(who=contender.name, group=group, measured=cells[index], kind=contender.kind)
        for group, cells in first.cells.items()
        for index, contender in contenders.items()
        if index in cells
    ]
    figure = first.figure
    title = f"{figure.title}, {figure.unit}" if figure.unit else f"{figure.title}, {figure.meaning}"
    return BoardChart(
        id=id_,
        title=f"{figure.title} {heading.lower()}",
        alt=_format_best_and_worst(board, first),
        spec=build_grouped_chart(
            points, board.palette, title=title, domain=figure.range, places=figure.places
        ),
    )


def _build_breakdown_table(board: ReportBoard, breakdown: MetricBreakdown) -> ReportTable:
    notes = TableFootnotes()
    figure = breakdown.figure
    columns = [BoardTableColumn(title=breakdown.title.capitalize(), numbers=False)]
    columns += [BoardTableColumn(title=contender.name) for contender in board.contenders]
    lines = [
        BoardTableRow(
            cells=(
                BoardTableCell(text=group, link=_format_filter_link(breakdown.title, group)),
                *(
                    build_estimate_cell(cells.get(index), notes, places=figure.places)
                    for index in range(len(board.contenders))
                ),
            )
        )
        for group, cells in breakdown.cells.items()
    ]
    unit = f", {figure.unit}" if figure.unit else ""
    return ReportTable(
        caption=f"{figure.title} by {breakdown.title}{unit}: {figure.meaning}",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        figure=figure,
    )


def _format_filter_link(title: str, group: str) -> str:
    """Return the URL fragment by which the clip browser shows only a group; "" without such a filter."""
    return f"#{urlencode({title: group})}" if title in _FILTERS else ""


def _format_best_and_worst(board: ReportBoard, breakdown: MetricBreakdown) -> str:
    """Return a sentence on the groups with the leading contender's highest and lowest values."""
    reviewers = [
        i for i, contender in enumerate(board.contenders) if contender.kind == "reviewer"
    ] or [0]
    leader = reviewers[0]
    values = [
        (value.value, group)
        for group, cells in breakdown.cells.items()
        if isinstance(value := cells.get(leader), Estimate)
    ]
    if not values:
        return "No group has this metric."
    (low, worst), (high, best) = min(values), max(values)
    digits = breakdown.figure.places
    name = board.contenders[leader].name
    return f"{name}: highest for {best} ({high:.{digits}f}), lowest for {worst} ({low:.{digits}f})."
