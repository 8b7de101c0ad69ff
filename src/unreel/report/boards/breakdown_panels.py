"""Panels of metrics by creator, trace and part, of confusion, coverage, cost, bias and calibration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.core.safe_text import sanitise_line
from unreel.protocols.calibration import (
    RealismCalibrationTable,
    compute_realism_calibration,
    measure_label_calibration,
)
from unreel.protocols.group_metrics import PARTS
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardContender, BoardPanel, ReportBoard
from unreel.report.boards.charts import (
    BoardChart,
    ChartPoint,
    build_calibration_chart,
    build_grouped_chart,
    build_ranked_chart,
    build_stacked_chart,
)
from unreel.report.boards.entrant_metrics import (
    BRIER,
    CALLED_GENERATED,
    CALLED_REAL,
    ECE,
    GAVE,
    LENIENCY,
    SECONDS,
    TOKENS_EACH,
    USD_EACH,
    AnswerCost,
    MetricBreakdown,
    QuestionOutcomeCounts,
    count_question_outcomes,
    get_entrant_metric,
    measure_metrics_by_benchmark_part,
    measure_metrics_by_creator,
    measure_metrics_by_trace_category,
    sum_answer_cost,
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
    build_optional_count_cell,
)
from unreel.stats.detection_metrics import CalibrationMetrics

_PERCENT = (0.0, 100.0)
_CALLED = {0: "called real", 1: "called generated"}


def build_bias_panel(board: ReportBoard) -> BoardPanel | None:
    """Build the panel of biases towards a label or the first clip; `None` without such a metric."""
    metrics = board.asked.figures
    if not metrics.sides:
        return None
    *sides, habit = (metrics[name] for name in metrics.sides)
    points = [
        ChartPoint(
            who=metric.title,
            group=contender.name,
            measured=get_entrant_metric(contender.entrant, metric.metric),
        )
        for contender in board.contenders
        for metric in sides
    ]
    chart = BoardChart(
        id=f"{board.id}-bias",
        title="Right answers of each reviewer on each side",
        alt=" ".join(_format_label_bias(contender, *sides) for contender in board.spoken),
        spec=build_grouped_chart(
            points,
            {sides[0].title: "$--good", sides[1].title: "$--series-1"},
            title="right answers, %",
            domain=_PERCENT,
            places=1,
        ),
    )
    notes = TableFootnotes()
    lines = [
        build_contender_line(
            contender,
            (
                build_estimate_cell(get_entrant_metric(contender.entrant, metric.metric), notes)
                for metric in (*sides, habit)
            ),
        )
        for contender in board.contenders
    ]
    columns = [BoardTableColumn(title="Reviewer", numbers=False)]
    columns += map(build_metric_column, (*sides, habit))
    return BoardPanel(
        id=f"{board.id}-bias",
        heading="Bias",
        lead=(
            "Points far apart show a bias: a reviewer that calls every clip real is always right on "
            "real clips and never on others."
        ),
        charts=(chart,),
        tables=(
            ReportTable(
                caption="Right answers on each side, and the bias, %",
                columns=tuple(columns),
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def build_calibration_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the calibration panel of labels or of scores; `None` for other protocols."""
    match board.asked.wording.decides:
        case "label":
            return _build_label_calibration_panel(board)
        case "score":
            return _build_score_calibration_panel(board)
        case _:
            return None


def build_whole_frame_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of boxes that cover the whole frame; `None` if the protocol asks for no box."""
    if "whole-frame-boxes" not in board.asked.figures:
        return None
    metric = board.asked.figures["whole-frame-boxes"]
    values = {
        contender.name: get_entrant_metric(contender.entrant, metric.metric)
        for contender in board.contenders
    }
    points = [
        ChartPoint(who=contender.name, measured=values[contender.name], kind=contender.kind)
        for contender in board.contenders
    ]
    known = {n: v for n, v in values.items() if isinstance(v, Estimate)}
    summary = "; ".join(f"{name} {value.value:.1f} %" for name, value in known.items())
    chart = BoardChart(
        id=f"{board.id}-whole-frames",
        title=metric.title,
        alt=f"{summary}." if summary else "No answer contains a box.",
        spec=build_ranked_chart(
            points, title="boxes that cover the whole frame, %", domain=_PERCENT, places=1
        ),
    )
    notes = TableFootnotes()
    lines = [
        build_contender_line(contender, [build_estimate_cell(values[contender.name], notes)])
        for contender in board.contenders
    ]
    return BoardPanel(
        id=f"{board.id}-whole-frames",
        heading="Whole-frame boxes",
        lead=(
            "A box around the whole frame does not localise a fault. The metric counts readable "
            "boxes that cover 95 % of the frame or more."
        ),
        charts=(chart,) if known else (),
        tables=(
            ReportTable(
                caption="Whole-frame boxes, %",
                columns=(
                    BoardTableColumn(title="Reviewer", numbers=False),
                    build_metric_column(metric),
                ),
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
        is_open=not known,
    )


def _build_label_calibration_panel(board: ReportBoard) -> BoardPanel:
    items = board.entrants[0].items
    n_generated = sum(item.creator is not None for item in items)
    calibrations = {
        contender.name: measure_label_calibration(
            contender.entrant.rows, seed=contender.entrant.seed
        )
        for contender in board.contenders
    }
    points = [
        ChartPoint(
            who=contender.name,
            group=_CALLED[called],
            measured=_measure_generated_share(calibrations[contender.name], called),
        )
        for called in _CALLED
        for contender in board.shown
    ]
    chart = BoardChart(
        id=f"{board.id}-calibration",
        title="Fraction that is generated, by answer",
        alt=" ".join(
            _format_label_precision(contender, calibrations[contender.name])
            for contender in board.spoken
        ),
        spec=build_grouped_chart(
            points, board.palette, title="generated clips, %", domain=_PERCENT, places=1
        ),
    )
    notes = TableFootnotes()
    lines = [
        build_contender_line(
            contender,
            [
                *(
                    build_estimate_cell(
                        _measure_generated_share(calibrations[contender.name], called), notes
                    )
                    for called in _CALLED
                ),
                build_estimate_cell(calibrations[contender.name].ece, notes, places=ECE.places),
                build_estimate_cell(calibrations[contender.name].brier, notes, places=BRIER.places),
            ],
        )
        for contender in board.contenders
    ]
    columns = (
        BoardTableColumn(title="Reviewer", numbers=False),
        *map(build_metric_column, (CALLED_REAL, CALLED_GENERATED, ECE, BRIER)),
    )
    return BoardPanel(
        id=f"{board.id}-calibration",
        heading="Calibration",
        lead=(
            "Each label counts as certain, regardless of the reported confidence: ideally, all clips "
            "called generated are generated, and none called real. The shares hold for this benchmark, of "
            f"which {100 * n_generated / max(1, len(items)):.0f} % is generated, and are others elsewhere."
        ),
        charts=(chart,),
        tables=(
            ReportTable(
                caption="Answers and true labels",
                columns=columns,
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def _measure_generated_share(calibration: CalibrationMetrics, called: int) -> Measured:
    for group in calibration.bins:
        if group.p_mean == called:
            return group.generated.scaled(100)
    return Unmeasured(f"no clip was {_CALLED[called]}")


def _format_label_precision(contender: BoardContender, calibration: CalibrationMetrics) -> str:
    fraction = _measure_generated_share(calibration, 1)
    if not isinstance(fraction, Estimate):
        return f"{contender.name} called no clip generated."
    return f"{contender.name}: {fraction.value:.0f} % of clips called generated are generated."


def _format_label_bias(
    contender: BoardContender, first_metric: MetricDefinition, second_metric: MetricDefinition
) -> str:
    left, right = (
        get_entrant_metric(contender.entrant, metric.metric)
        for metric in (first_metric, second_metric)
    )
    if not isinstance(left, Estimate) or not isinstance(right, Estimate):
        return f"{contender.name}: one side is not measured."
    titles = f"{first_metric.title.lower()} {left.value:.0f} %, {second_metric.title.lower()}"
    return f"{contender.name}: {titles} {right.value:.0f} %."


def _build_score_calibration_panel(board: ReportBoard) -> BoardPanel:
    ladders = {
        contender.name: compute_realism_calibration(
            contender.entrant.rows, seed=contender.entrant.seed
        )
        for contender in board.contenders
    }
    points = [
        ChartPoint(who=contender.name, group=str(rung.score), measured=rung.people)
        for contender in board.shown
        for rung in ladders[contender.name].rungs
    ]
    chart = BoardChart(
        id=f"{board.id}-calibration",
        title="People's mean score, by the score given",
        alt=" ".join(
            _format_leniency(contender, ladders[contender.name]) for contender in board.spoken
        ),
        spec=build_calibration_chart(points, board.palette, title="people's mean score"),
    )
    notes = TableFootnotes()
    lines = []
    for contender in board.contenders:
        rungs = {rung.score: rung.people for rung in ladders[contender.name].rungs}
        cells = [
            build_estimate_cell(ladders[contender.name].leniency, notes, places=LENIENCY.places)
        ]
        for score in range(1, 6):
            people = rungs.get(score, Unmeasured("the score was never given"))
            cells.append(build_estimate_cell(people, notes, places=GAVE.places))
        lines.append(build_contender_line(contender, cells))
    columns = [BoardTableColumn(title="Reviewer", numbers=False), build_metric_column(LENIENCY)]
    columns += [
        BoardTableColumn(title=f"{GAVE.title} {score}", figure=GAVE) for score in range(1, 6)
    ]
    return BoardPanel(
        id=f"{board.id}-calibration",
        heading="Calibration",
        lead="People's mean score for the clips that a reviewer gave 1, 2, 3, 4 or 5.",
        charts=(chart,),
        tables=(
            ReportTable(
                caption="People's mean score by the score given",
                columns=tuple(columns),
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def _format_leniency(contender: BoardContender, table: RealismCalibrationTable) -> str:
    value = table.leniency
    if not isinstance(value, Estimate):
        return f"{contender.name}: not measured."
    return f"{contender.name} scores {abs(value.value):.2f} {'above' if value.value > 0 else 'below'} people."


_READABLE, _UNREADABLE, _NOT_ASKED = "readable", "unreadable", "not asked yet"


def build_coverage_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel of question outcomes: readable answers, unreadable answers, failures by cause."""
    outcomes = {
        contender.name: count_question_outcomes(contender.entrant) for contender in board.contenders
    }
    causes = sorted({cause for outcome in outcomes.values() for cause in outcome.failures})
    order = [_READABLE, _UNREADABLE, *causes, _NOT_ASKED]
    rows = [
        row
        for contender in board.contenders
        for row in _iter_outcome_shares(contender, outcomes[contender.name], order)
    ]
    present = [part for part in order if any(row["part"] == part for row in rows)]
    chart = BoardChart(
        id=f"{board.id}-coverage",
        title="Status of the questions",
        alt=" ".join(
            _format_outcome_summary(contender, outcomes[contender.name])
            for contender in board.spoken
        ),
        spec=build_stacked_chart(
            rows, order=present, names=[contender.name for contender in board.contenders]
        ),
    )
    columns = [BoardTableColumn(title="Reviewer", numbers=False), BoardTableColumn(title="Asked")]
    columns += [BoardTableColumn(title=name.capitalize()) for name in order]
    lines = []
    for contender in board.contenders:
        counts = _count_outcomes(outcomes[contender.name], order)
        cells = [build_count_cell(n) for n in (outcomes[contender.name].n_asked, *counts.values())]
        lines.append(build_contender_line(contender, cells))
    tables = [
        ReportTable(caption="Questions by outcome", columns=tuple(columns), lines=tuple(lines))
    ]
    if any(outcome.parts for outcome in outcomes.values()):
        tables.append(_build_unreadable_parts_table(board, outcomes))
    lead = (
        "A failure does not count as an answer: it is in no score and is counted here by its "
        "cause. An answer whose label or score cannot be read is unreadable."
    )
    if n_others := sum(sum(entrant.card.answered_by.values()) for entrant in board.entrants):
        lead += f" {n_others:,} answers came from a model other than the requested one."
        tables.append(_build_other_models_table(board))
    return BoardPanel(
        id=f"{board.id}-coverage",
        heading="Coverage and failures",
        lead=lead,
        charts=(chart,),
        tables=tuple(tables),
    )


def build_cost_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel of the answers' cost: tokens, money and time."""
    notes = TableFootnotes()
    costs_by_name = {
        contender.name: sum_answer_cost(contender.entrant) for contender in board.contenders
    }
    lines = [
        build_contender_line(contender, _build_cost_cells(costs_by_name[contender.name], notes))
        for contender in board.contenders
    ]
    columns = (
        BoardTableColumn(title="Reviewer", numbers=False),
        BoardTableColumn(title="Answers"),
        BoardTableColumn(title="Tokens in"),
        BoardTableColumn(title="Tokens out"),
        build_metric_column(TOKENS_EACH),
        BoardTableColumn(title="USD"),
        build_metric_column(USD_EACH),
        build_metric_column(SECONDS),
    )
    return BoardPanel(
        id=f"{board.id}-costs",
        heading="Cost",
        lead="Sums are exact and include paid failures; means are over answers and have an interval.",
        tables=(
            ReportTable(
                caption="Tokens, money and time",
                columns=columns,
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
        is_open=True,
    )


def _build_cost_cells(cost: AnswerCost, footnotes: TableFootnotes) -> tuple[BoardTableCell, ...]:
    reason = "no answer reports its tokens"
    usd = BoardTableCell(note=footnotes.mark("no price is known"))
    if cost.cost_usd is not None:
        usd = BoardTableCell(text=f"{cost.cost_usd:,.4f}", number=cost.cost_usd)
    return (
        build_count_cell(cost.n_answers),
        build_optional_count_cell(cost.input_tokens, footnotes, reason=reason),
        build_optional_count_cell(cost.output_tokens, footnotes, reason=reason),
        build_estimate_cell(cost.tokens_each, footnotes, places=TOKENS_EACH.places),
        usd,
        build_estimate_cell(cost.usd_each, footnotes, places=USD_EACH.places),
        build_estimate_cell(cost.latency_s, footnotes, places=SECONDS.places),
    )


def _count_outcomes(outcomes: QuestionOutcomeCounts, order: list[str]) -> dict[str, int]:
    counts = {
        _READABLE: outcomes.readable,
        _UNREADABLE: outcomes.unreadable,
        _NOT_ASKED: outcomes.n_not_asked,
        **outcomes.failures,
    }
    return {name: counts.get(name, 0) for name in order}


def _iter_outcome_shares(
    contender: BoardContender, outcomes: QuestionOutcomeCounts, order: list[str]
) -> Iterator[Mapping[str, Any]]:
    counts = _count_outcomes(outcomes, order)
    total = max(1, sum(counts.values()))
    for rank, (part, n) in enumerate(counts.items()):
        if n:
            yield {
                "who": contender.name,
                "part": part,
                "rank": rank,
                "share": 100 * n / total,
                "tip": f"{contender.name}: {n:,} of {total:,} {part}",
            }


def _format_outcome_summary(contender: BoardContender, outcomes: QuestionOutcomeCounts) -> str:
    failed = "".join(f", {n:,} {cause}" for cause, n in outcomes.failures.items())
    readable = f"{contender.name}: {outcomes.readable:,} of {outcomes.n_asked:,} readable"
    return f"{readable}, {outcomes.unreadable:,} unreadable{failed}."


def _build_other_models_table(board: ReportBoard) -> ReportTable:
    return ReportTable(
        caption="Answers from models other than the requested one, by the name in the response",
        columns=(
            BoardTableColumn(title="Reviewer", numbers=False),
            BoardTableColumn(title="Model that answered", numbers=False),
            BoardTableColumn(title="Answers"),
        ),
        lines=tuple(
            build_contender_line(
                contender, (BoardTableCell(text=sanitise_line(name)), build_count_cell(n))
            )
            for contender in board.contenders
            for name, n in contender.entrant.card.answered_by.items()
        ),
    )


def _build_unreadable_parts_table(
    board: ReportBoard, outcomes: Mapping[str, QuestionOutcomeCounts]
) -> ReportTable:
    names = sorted({name for outcome in outcomes.values() for name in outcome.parts})
    columns = [BoardTableColumn(title="Reviewer", numbers=False)]
    columns += [BoardTableColumn(title=name) for name in names]
    lines = [
        build_contender_line(
            contender,
            (build_count_cell(outcomes[contender.name].parts.get(name, 0)) for name in names),
        )
        for contender in board.contenders
    ]
    return ReportTable(
        caption="Parts of answers that could not be read, by reason",
        columns=tuple(columns),
        lines=tuple(lines),
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
    metrics = [
        metric
        for metric in _select_other_metrics(board)
        if any(isinstance(get_entrant_metric(e, metric.metric), Estimate) for e in board.entrants)
    ]
    if not metrics:
        return None
    notes = TableFootnotes()
    lines = [
        build_contender_line(
            contender,
            (
                build_estimate_cell(
                    get_entrant_metric(contender.entrant, f.metric), notes, places=f.places
                )
                for f in metrics
            ),
        )
        for contender in board.contenders
    ]
    return ReportTable(
        caption="Further metrics",
        columns=(
            BoardTableColumn(title="Reviewer", numbers=False),
            *map(build_metric_column, metrics),
        ),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _select_other_metrics(board: ReportBoard) -> list[MetricDefinition]:
    metrics = board.asked.figures
    other_panels = {*metrics.leading, *metrics.sides, metrics.per_creator, "whole-frame-boxes"}
    return [metric for metric in metrics if metric.metric not in other_panels]


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


FEW = 10
"""Minimum n of a group; groups below it are in a collapsed section."""
_FILTERS = ("creator", "category")


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
    tables = tuple(_build_breakdown_table(board, breakdown) for breakdown in few if breakdown.cells)
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
        extras=((f"Small groups, n below {FEW} ({len(few[0].cells)})", tables),) if tables else (),
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


def _build_breakdown_chart(
    board: ReportBoard, breakdown: MetricBreakdown, *, id_: str, heading: str
) -> BoardChart:
    contenders = {board.contenders.index(contender): contender for contender in board.shown}
    points = [
        ChartPoint(who=contender.name, group=group, measured=cells[index], kind=contender.kind)
        for group, cells in breakdown.cells.items()
        for index, contender in contenders.items()
        if index in cells
    ]
    metric = breakdown.figure
    title = f"{metric.title}, {metric.unit}" if metric.unit else f"{metric.title}, {metric.meaning}"
    return BoardChart(
        id=id_,
        title=f"{metric.title} {heading.lower()}",
        alt=_format_best_and_worst(board, breakdown),
        spec=build_grouped_chart(
            points, board.palette, title=title, domain=metric.range, places=metric.places
        ),
    )


def _build_breakdown_table(board: ReportBoard, breakdown: MetricBreakdown) -> ReportTable:
    notes = TableFootnotes()
    metric = breakdown.figure
    columns = [BoardTableColumn(title=breakdown.title.capitalize(), numbers=False)]
    columns += [BoardTableColumn(title=contender.name) for contender in board.contenders]
    lines = [
        BoardTableRow(
            cells=(
                BoardTableCell(
                    text=group,
                    link=(
                        f"#{urlencode({breakdown.title: group})}"
                        if breakdown.title in _FILTERS
                        else ""
                    ),
                ),
                *(
                    build_estimate_cell(cells.get(index), notes, places=metric.places)
                    for index in range(len(board.contenders))
                ),
            )
        )
        for group, cells in breakdown.cells.items()
    ]
    unit = f", {metric.unit}" if metric.unit else ""
    return ReportTable(
        caption=f"{metric.title} by {breakdown.title}{unit}: {metric.meaning}",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
        figure=metric,
    )


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
