"""Panels of a board about bias towards a label, calibration, and boxes that cover the whole frame."""

from unreel.core.estimate import Estimate, Measured, Unmeasured
from unreel.protocols.calibration import (
    RealismCalibrationTable,
    compute_realism_calibration,
    measure_label_calibration,
)
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardContender, BoardPanel, ReportBoard
from unreel.report.boards.charts import (
    BoardChart,
    ChartPoint,
    build_calibration_chart,
    build_grouped_chart,
    build_ranked_chart,
)
from unreel.report.boards.entrant_metrics import (
    BRIER,
    CALLED_GENERATED,
    CALLED_REAL,
    ECE,
    GAVE,
    LENIENCY,
    get_entrant_metric,
)
from unreel.report.boards.ranking_panels import build_contender_line
from unreel.report.boards.tables import (
    BoardTableColumn,
    ReportTable,
    TableFootnotes,
    build_estimate_cell,
    build_metric_column,
)
from unreel.stats.detection_metrics import CalibrationMetrics

_PERCENT = (0.0, 100.0)
_CALLED = {0: "called real", 1: "called generated"}


def build_bias_panel(board: ReportBoard) -> BoardPanel | None:
    """Build the panel of biases towards a label or the first clip; `None` without such a metric."""
    figures = board.asked.figures
    if not figures.sides:
        return None
    *sides, habit = (figures[name] for name in figures.sides)
    points = [
        ChartPoint(
            who=figure.title,
            group=contender.name,
            measured=get_entrant_metric(contender.entrant, figure.metric),
        )
        for contender in board.contenders
        for figure in sides
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
                build_estimate_cell(get_entrant_metric(contender.entrant, figure.metric), notes)
                for figure in (*sides, habit)
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
    figure = board.asked.figures["whole-frame-boxes"]
    values = {
        contender.name: get_entrant_metric(contender.entrant, figure.metric)
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
        title=figure.title,
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
                    build_metric_column(figure),
                ),
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
        is_open=not known,
    )


def _build_label_calibration_panel(board: ReportBoard) -> BoardPanel:
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
            "called generated are generated, and none called real. The shares depend on how many "
            "clips of the benchmark are generated."
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
    contender: BoardContender, first: MetricDefinition, second: MetricDefinition
) -> str:
    left, right = (
        get_entrant_metric(contender.entrant, figure.metric) for figure in (first, second)
    )
    if not isinstance(left, Estimate) or not isinstance(right, Estimate):
        return f"{contender.name}: one side is not measured."
    titles = f"{first.title.lower()} {left.value:.0f} %, {second.title.lower()}"
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


def _format_leniency(contender: BoardContender, scores: RealismCalibrationTable) -> str:
    value = scores.leniency
    if not isinstance(value, Estimate):
        return f"{contender.name}: not measured."
    return f"{contender.name} scores {abs(value.value):.2f} {'above' if value.value > 0 else 'below'} people."
