"""Panels of metrics by creator, trace and part, of confusion, coverage, cost, bias and calibration."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from unreel.core.estimate import PART_PREFIXES, Estimate, Measured, Unmeasured
from unreel.core.safe_text import sanitise_line
from unreel.protocols.calibration import compute_realism_calibration, measure_label_calibration
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
    MetricBreakdown,
    count_question_outcomes,
    get_entrant_metric,
    measure_metrics_by_benchmark_part,
    measure_metrics_by_creator,
    measure_metrics_by_trace_category,
    sum_answer_cost,
)
from unreel.report.boards.ranking_panels import build_contender_line, build_contender_table
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_optional_count_cell,
    build_report_table,
)
from unreel.stats.detection_metrics import CalibrationMetrics

_PERCENT = (0.0, 100.0)
_CALLED = {0: "called real", 1: "called generated"}


def build_bias_panel(board: ReportBoard) -> BoardPanel | None:
    """Build the panel of biases towards a label or the first clip; `None` without such a metric."""
    metrics = board.protocol_definition.figures
    if not metrics.class_metrics:
        return None
    *class_metrics, habit = (metrics[name] for name in metrics.class_metrics)
    percentages = {
        contender.name: [
            get_entrant_metric(contender.entrant, m.metric) for m in (*class_metrics, habit)
        ]
        for contender in board.contenders
    }
    points = [
        ChartPoint(who=metric.title, group=name, measured=measured)
        for name, values in percentages.items()
        for metric, measured in zip(class_metrics, values, strict=False)
    ]
    sentences = []
    for contender in board.spoken:
        left, right, _ = percentages[contender.name]
        if not isinstance(left, Estimate) or not isinstance(right, Estimate):
            sentences.append(f"{contender.name}: one side is not measured.")
            continue
        sentences.append(
            f"{contender.name}: {class_metrics[0].title.lower()} {left.value:.0f} %, "
            f"{class_metrics[1].title.lower()} {right.value:.0f} %."
        )
    chart = BoardChart(
        id=f"{board.id}-bias",
        title="Right answers of each reviewer on each side",
        alt=" ".join(sentences),
        spec=build_grouped_chart(
            points,
            {class_metrics[0].title: "$--good", class_metrics[1].title: "$--series-1"},
            title="right answers, %",
            domain=_PERCENT,
            places=1,
        ),
    )
    table = build_contender_table(
        board,
        "Right answers on each side, and the bias, %",
        (*class_metrics, habit),
        lambda contender, notes: (
            build_estimate_cell(v, notes) for v in percentages[contender.name]
        ),
    )
    return BoardPanel(
        id=f"{board.id}-bias",
        heading="Bias",
        lead=(
            "Points far apart show a bias: a reviewer that calls every clip real is always right on "
            "real clips and never on others."
        ),
        charts=(chart,),
        tables=(table,),
    )


def build_calibration_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the calibration panel of labels or of scores; `None` for other protocols."""
    match board.protocol_definition.wording.decides:
        case "label":
            return _build_label_calibration_panel(board)
        case "score":
            return _build_score_calibration_panel(board)
        case _:
            return None


def build_whole_frame_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of boxes that cover the whole frame; `None` if the protocol asks for no box."""
    if "whole-frame-boxes" not in board.protocol_definition.figures:
        return None
    metric = board.protocol_definition.figures["whole-frame-boxes"]
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
    table = build_contender_table(
        board,
        "Whole-frame boxes, %",
        [metric],
        lambda contender, notes: [build_estimate_cell(values[contender.name], notes)],
    )
    return BoardPanel(
        id=f"{board.id}-whole-frames",
        heading="Whole-frame boxes",
        lead=(
            "A box around the whole frame does not localise a fault. The metric counts readable "
            "boxes that cover 95 % of the frame or more."
        ),
        charts=(chart,) if known else (),
        tables=(table,),
        is_open=not known,
    )


def _build_label_calibration_panel(board: ReportBoard) -> BoardPanel:
    items = board.entrants[0].items
    n_generated = sum(item.creator is not None for item in items)
    calibrations = {
        c.name: measure_label_calibration(c.entrant.rows, seed=c.entrant.seed)
        for c in board.contenders
    }
    sentences = []
    for contender in board.spoken:
        fraction = _measure_generated_share(calibrations[contender.name], 1)
        text = f"{contender.name} called no clip generated."
        if isinstance(fraction, Estimate):
            text = (
                f"{contender.name}: {fraction.value:.0f} % of clips called generated are generated."
            )
        sentences.append(text)
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
        alt=" ".join(sentences),
        spec=build_grouped_chart(
            points, board.palette, title="generated clips, %", domain=_PERCENT, places=1
        ),
    )

    def build_cells(contender: BoardContender, notes: TableFootnotes) -> list[BoardTableCell]:
        calibration = calibrations[contender.name]
        fractions = [_measure_generated_share(calibration, called) for called in _CALLED]
        return [
            *(build_estimate_cell(share, notes) for share in fractions),
            build_estimate_cell(calibration.ece, notes, places=ECE.places),
            build_estimate_cell(calibration.brier, notes, places=BRIER.places),
        ]

    columns = (CALLED_REAL, CALLED_GENERATED, ECE, BRIER)
    table = build_contender_table(board, "Answers and true labels", columns, build_cells)
    return BoardPanel(
        id=f"{board.id}-calibration",
        heading="Calibration",
        lead=(
            "Each label counts as certain, regardless of the reported confidence: ideally, all clips "
            "called generated are generated, and none called real. The shares hold for this benchmark, of "
            f"which {100 * n_generated / max(1, len(items)):.0f} % is generated, and are others elsewhere."
        ),
        charts=(chart,),
        tables=(table,),
    )


def _measure_generated_share(calibration: CalibrationMetrics, called: int) -> Measured:
    for group in calibration.bins:
        if group.p_mean == called:
            return group.generated.scaled(100)
    return Unmeasured(f"no clip was {_CALLED[called]}")


def _build_score_calibration_panel(board: ReportBoard) -> BoardPanel:
    calibrations = {
        c.name: compute_realism_calibration(c.entrant.rows, seed=c.entrant.seed)
        for c in board.contenders
    }
    sentences = []
    for contender in board.spoken:
        value, _ = calibrations[contender.name]
        text = f"{contender.name}: not measured."
        if isinstance(value, Estimate):
            direction = "above" if value.value > 0 else "below"
            text = f"{contender.name} scores {abs(value.value):.2f} {direction} people."
        sentences.append(text)
    points = [
        ChartPoint(who=contender.name, group=str(score), measured=people)
        for contender in board.shown
        for score, people in calibrations[contender.name][1].items()
    ]
    chart = BoardChart(
        id=f"{board.id}-calibration",
        title="People's mean score, by the score given",
        alt=" ".join(sentences),
        spec=build_calibration_chart(points, board.palette, title="people's mean score"),
    )

    def build_cells(contender: BoardContender, notes: TableFootnotes) -> list[BoardTableCell]:
        leniency, by_score = calibrations[contender.name]
        never = Unmeasured("the score was never given")
        return [
            build_estimate_cell(leniency, notes, places=LENIENCY.places),
            *(
                build_estimate_cell(by_score.get(score, never), notes, places=GAVE.places)
                for score in range(1, 6)
            ),
        ]

    gave = (BoardTableColumn(title=f"{GAVE.title} {score}", metric=GAVE) for score in range(1, 6))
    table = build_contender_table(
        board, "People's mean score by the score given", (LENIENCY, *gave), build_cells
    )
    return BoardPanel(
        id=f"{board.id}-calibration",
        heading="Calibration",
        lead="People's mean score for the clips that a reviewer gave 1, 2, 3, 4 or 5.",
        charts=(chart,),
        tables=(table,),
    )


_READABLE, _UNREADABLE, _PENDING = "readable", "unreadable", "not asked yet"


def build_coverage_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel of question outcomes: readable answers, unreadable answers, failures by cause."""
    outcomes = {
        contender.name: count_question_outcomes(contender.entrant) for contender in board.contenders
    }
    causes = sorted({cause for outcome in outcomes.values() for cause in outcome.failures})
    order = [_READABLE, _UNREADABLE, *causes, _PENDING]
    rows: list[dict[str, Any]] = []
    counts_by_name = {}
    for name, outcome in outcomes.items():
        n_by_part = {
            _READABLE: outcome.readable,
            _UNREADABLE: outcome.unreadable,
            _PENDING: outcome.n_pending,
            **outcome.failures,
        }
        counts = counts_by_name[name] = {part: n_by_part.get(part, 0) for part in order}
        total = max(1, sum(counts.values()))
        rows += [
            {
                "who": name,
                "part": part,
                "rank": rank,
                "share": 100 * n / total,
                "tip": f"{name}: {n:,} of {total:,} {part}",
            }
            for rank, (part, n) in enumerate(counts.items())
            if n
        ]
    sentences = []
    for contender in board.spoken:
        outcome = outcomes[contender.name]
        failed = "".join(f", {n:,} {cause}" for cause, n in outcome.failures.items())
        sentences.append(
            f"{contender.name}: {outcome.readable:,} of {outcome.n_questions:,} readable, "
            f"{outcome.unreadable:,} unreadable{failed}."
        )
    present = [part for part in order if any(row["part"] == part for row in rows)]
    chart = BoardChart(
        id=f"{board.id}-coverage",
        title="Status of the questions",
        alt=" ".join(sentences),
        spec=build_stacked_chart(rows, order=present, names=[c.name for c in board.contenders]),
    )
    tables = [
        build_contender_table(
            board,
            "Questions by outcome",
            ["Asked", *(name.capitalize() for name in order)],
            lambda contender, _: (
                build_count_cell(n)
                for n in (
                    outcomes[contender.name].n_questions,
                    *counts_by_name[contender.name].values(),
                )
            ),
        )
    ]
    if parts := sorted({name for outcome in outcomes.values() for name in outcome.parts}):
        tables.append(
            build_contender_table(
                board,
                "Parts of answers that could not be read, by reason",
                parts,
                lambda contender, _: (
                    build_count_cell(outcomes[contender.name].parts.get(part, 0)) for part in parts
                ),
            )
        )
    lead = (
        "A failure does not count as an answer. Failures are in no score and are counted here by "
        "cause. An answer whose label or score cannot be read is unreadable."
    )
    if n_others := sum(sum(entrant.card.answered_by.values()) for entrant in board.entrants):
        lead += f" {n_others:,} answers came from a model other than the requested one."
        columns = ("Reviewer", "Model that answered", "Answers")
        lines = (
            build_contender_line(
                contender, (BoardTableCell(text=sanitise_line(name)), build_count_cell(n))
            )
            for contender in board.contenders
            for name, n in contender.entrant.card.answered_by.items()
        )
        caption = "Answers from models other than the requested one, by the name in the response"
        tables.append(build_report_table(caption, columns, lines, n_text=2))
    return BoardPanel(
        id=f"{board.id}-coverage",
        heading="Coverage and failures",
        lead=lead,
        charts=(chart,),
        tables=tuple(tables),
    )


def build_cost_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel of the answers' cost: tokens, money and time."""

    def build_cells(contender: BoardContender, notes: TableFootnotes) -> list[BoardTableCell]:
        cost = sum_answer_cost(contender.entrant)
        reason = "no answer reports its tokens"
        usd = BoardTableCell(note=notes.mark("no price is known"))
        if cost.cost_usd is not None:
            usd = BoardTableCell(text=f"{cost.cost_usd:,.4f}", number=cost.cost_usd)
        return [
            build_count_cell(cost.n_answers),
            build_optional_count_cell(cost.input_tokens, notes, reason=reason),
            build_optional_count_cell(cost.output_tokens, notes, reason=reason),
            build_estimate_cell(cost.tokens_each, notes, places=TOKENS_EACH.places),
            usd,
            build_estimate_cell(cost.usd_each, notes, places=USD_EACH.places),
            build_estimate_cell(cost.latency_s, notes, places=SECONDS.places),
        ]

    columns = ("Answers", "Tokens in", "Tokens out", TOKENS_EACH, "USD", USD_EACH, SECONDS)
    return BoardPanel(
        id=f"{board.id}-costs",
        heading="Cost",
        lead="Sums are exact and include paid failures; means are over answers and have an interval.",
        tables=(build_contender_table(board, "Tokens, money and time", columns, build_cells),),
        is_open=True,
    )


def build_other_metrics_panel(board: ReportBoard) -> BoardPanel | None:
    """Return the panel of metrics that no other panel shows; `None` if no entrant has one."""
    metric_set = board.protocol_definition.figures
    other_panels = {
        *metric_set.leading,
        *metric_set.class_metrics,
        metric_set.per_creator,
        "whole-frame-boxes",
    }
    metrics = [
        metric
        for metric in metric_set
        if metric.metric not in other_panels
        and any(isinstance(get_entrant_metric(e, metric.metric), Estimate) for e in board.entrants)
    ]
    calls = list(dict.fromkeys(call for e in board.entrants for call in e.card.confusion))
    tables = []
    if metrics:
        table = build_contender_table(
            board,
            "Further metrics",
            metrics,
            lambda contender, notes: (
                build_estimate_cell(
                    get_entrant_metric(contender.entrant, m.metric), notes, places=m.places
                )
                for m in metrics
            ),
        )
        tables.append(table)
    if calls:
        table = build_contender_table(
            board,
            "Clips by true label and answer",
            calls,
            lambda contender, _: (
                build_count_cell(contender.entrant.card.confusion.get(call, 0)) for call in calls
            ),
        )
        tables.append(table)
    if not tables:
        return None
    return BoardPanel(
        id=f"{board.id}-more",
        heading="More metrics",
        lead="Other metrics: those of a score or a confidence if one was given, and counts.",
        tables=tuple(tables),
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
        if board.protocol_definition.wording.decides == "score"
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
    for kind in PART_PREFIXES:
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
    large = {
        group
        for breakdown in breakdowns
        for group, cells in breakdown.cells.items()
        if any(isinstance(value, Estimate) and value.n >= FEW for value in cells.values())
    }
    many, few = (
        [
            replace(b, cells={g: c for g, c in b.cells.items() if (g in large) == is_large})
            for b in breakdowns
        ]
        for is_large in (True, False)
    )
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
    metric = breakdown.metric
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
    metric = breakdown.metric
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
        metric=metric,
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
    digits = breakdown.metric.places
    name = board.contenders[leader].name
    return f"{name}: highest for {best} ({high:.{digits}f}), lowest for {worst} ({low:.{digits}f})."
