"""Panels of the leaderboard, and of the decrease in scores from easy to hard questions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from unreel.benchmarks.published.printed_tables import PublishedTable, read_published_table
from unreel.core.estimate import Estimate, Measured
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import BoardContender, BoardPanel, ReportBoard
from unreel.report.boards.charts import (
    BoardChart,
    ChartPoint,
    build_ranked_chart,
    build_stepped_chart,
)
from unreel.report.boards.contender_difference import format_contender_difference
from unreel.report.boards.entrant_metrics import (
    READABLE,
    count_question_outcomes,
    get_entrant_metric,
    subtract_distance_from_100,
)
from unreel.report.boards.human_scores import build_human_points, build_human_table_lines
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

_TRACE: Final = {
    "overall": "overall",
    "accuracy": "accuracy",
    "fake-accuracy": "fake_accuracy",
    "real-accuracy": "real_accuracy",
    "explanation": "explanation",
    "box-iou": "bbox_iou",
    "box-distance": "bbox_distance",
    "time-distance": "time_distance",
}
_TABLES: Final[Mapping[str, tuple[str, str, Mapping[str, str], float]]] = {
    "trace": ("deeptrace_test", "model", _TRACE, 1),
    # The averages of table 2 are pooled accuracies, except balanced ones for people.
    "reality": ("reality_reviewers", "reviewer", {"pooled": "average"}, 1),
    # Printed in percent; unreel's correlations are at most 1.
    "realism": (
        "videoreal_evaluators",
        "evaluator",
        {"plcc": "plcc", "srocc": "srocc", "sts": "sts"},
        0.01,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModelRow:
    """Result of one model as published in a paper, by unreel's names of the metrics."""

    model: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLeaderboard:
    """Leaderboard that was published in a paper."""

    source: str
    rows: tuple[PublishedModelRow, ...]


def read_published_leaderboard(protocol: str) -> PublishedLeaderboard | None:
    """Return the published leaderboard of the protocol; `None` if no paper has one."""
    if protocol not in _TABLES:
        return None
    name, column, figures, factor = _TABLES[protocol]
    table: PublishedTable = read_published_table(name)
    rows = tuple(
        PublishedModelRow(
            model=row[column],
            figures={
                metric: float(row[head]) * factor for metric, head in figures.items() if row[head]
            },
        )
        for row in table.rows
    )
    return PublishedLeaderboard(source=f"{table.source.paper}, {table.source.table}", rows=rows)


def build_leaderboard_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel with every contender and its metrics; published results are in a table below."""
    figure = board.asked.figures[board.ranks_by]
    points = [
        ChartPoint(
            who=contender.name,
            measured=get_entrant_metric(contender.entrant, figure.metric),
            kind=contender.kind,
        )
        for contender in board.placed
    ]
    points += build_human_points(board.people.rows, figure)
    title = f"{figure.title}, {figure.unit}" if figure.unit else figure.title
    chart = BoardChart(
        id=f"{board.id}-leaderboard",
        title=f"{figure.title} of each reviewer",
        alt=_format_leader_summary(board, figure),
        spec=build_ranked_chart(points, title=title, domain=figure.range, places=figure.places),
    )
    return BoardPanel(
        id=f"{board.id}-leaderboard",
        heading="Leaderboard",
        lead=(
            f"Ranked by {figure.title.lower()}: {figure.meaning}. A baseline ignores the picture; "
            "a model that does not beat it shows no skill."
            + (f" {board.people.told}" if board.people.told else "")
        ),
        charts=(chart,),
        tables=(_build_leader_table(board),),
        extras=_build_published_tables(board),
        is_open=True,
    )


def build_difficulty_panel(board: ReportBoard) -> BoardPanel | None:
    """Build scores by difficulty: generated or not, why, where, when; `None` without all questions."""
    steps = _list_step_metrics(board)
    if not steps:
        return None
    points = [
        ChartPoint(
            who=contender.name,
            group=_format_step_title(figure),
            measured=_measure_step_score(contender, figure),
            kind=contender.kind,
        )
        for contender in board.shown
        for figure in steps
    ]
    notes = TableFootnotes()
    columns = [BoardTableColumn(title="Reviewer", numbers=False)]
    columns += [
        BoardTableColumn(title=_format_step_title(figure), figure=figure) for figure in steps
    ]
    lines = [
        build_contender_line(
            contender,
            (
                build_estimate_cell(_measure_step_score(contender, figure), notes)
                for figure in steps
            ),
        )
        for contender in board.contenders
    ]
    chart = BoardChart(
        id=f"{board.id}-gradient",
        title="Score at each step of difficulty",
        alt=_format_step_summary(board),
        spec=build_stepped_chart(
            points,
            board.palette,
            steps=[_format_step_title(figure) for figure in steps],
            title="score, 0 to 100",
        ),
    )
    return BoardPanel(
        id=f"{board.id}-gradient",
        heading="Difficulty gradient",
        lead=(
            "From the easiest question to the hardest: label, explanation, position, start time. "
            "Time is 100 minus the time distance, so that higher is always better."
        ),
        charts=(chart,),
        tables=(
            ReportTable(
                caption="Score at each step, 0 to 100",
                columns=tuple(columns),
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def build_contender_cell(contender: BoardContender) -> BoardTableCell:
    """Return a table cell with the contender's name and a link to its page; baselines have a badge."""
    badge = "baseline" if contender.kind == "floor" else ""
    return BoardTableCell(text=contender.name, badge=badge, link=contender.page)


def build_contender_line(
    contender: BoardContender, cells: Iterable[BoardTableCell]
) -> BoardTableRow:
    """Return the contender's table row: its name, then `cells`."""
    return BoardTableRow(cells=(build_contender_cell(contender), *cells), kind=contender.kind)


def _list_step_metrics(board: ReportBoard) -> list[MetricDefinition]:
    return [board.asked.figures[name] for name in board.asked.figures.steps]


def _format_step_title(figure: MetricDefinition) -> str:
    return figure.group.capitalize()


def _measure_step_score(contender: BoardContender, figure: MetricDefinition) -> Measured:
    measured = get_entrant_metric(contender.entrant, figure.metric)
    return subtract_distance_from_100(measured) if figure.better == "less" else measured


def _list_leading_metrics(board: ReportBoard) -> list[MetricDefinition]:
    return [board.asked.figures[name] for name in board.asked.figures.leading]


def _build_leader_table(board: ReportBoard) -> ReportTable:
    figures = _list_leading_metrics(board)
    notes = TableFootnotes()
    columns = [BoardTableColumn(title="#"), BoardTableColumn(title="Reviewer", numbers=False)]
    columns += map(build_metric_column, figures)
    columns.append(build_metric_column(READABLE))
    rank = 0
    lines = []
    for contender in board.contenders:
        is_ranked = contender.kind == "reviewer" and not contender.unranked
        rank += is_ranked
        rank_cell = build_count_cell(rank) if is_ranked else BoardTableCell()
        note = f"not ranked: {contender.unranked}" if contender.unranked else ""
        cells = [rank_cell, replace(build_contender_cell(contender), doubt=note)]
        for figure in figures:
            measured = get_entrant_metric(contender.entrant, figure.metric)
            cells.append(build_estimate_cell(measured, notes, places=figure.places))
        outcomes = count_question_outcomes(contender.entrant)
        n_asked = f"of {outcomes.n_asked:,} asked"
        cells.append(replace(build_count_cell(outcomes.readable), doubt=n_asked))
        lines.append(BoardTableRow(cells=tuple(cells), kind=contender.kind))
    ranking = board.asked.figures[board.ranks_by]
    lines += build_human_table_lines(board.people.rows, ranking, figures, notes)
    return ReportTable(
        caption=board.name,
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _build_published_tables(board: ReportBoard) -> tuple[tuple[str, tuple[ReportTable, ...]], ...]:
    """Return the tables of results published in papers, marked as published; empty if there are none."""
    published = read_published_leaderboard(board.protocol)
    if published is None:
        return ()
    figures = _list_leading_metrics(board)
    columns = [BoardTableColumn(title="Reviewer", numbers=False)]
    columns += map(build_metric_column, figures)
    lines = []
    for row in _sort_published_rows(published, board.asked.figures[board.ranks_by]):
        cells = [BoardTableCell(text=row.model, badge="published")]
        for figure in figures:
            value = row.figures.get(figure.metric)
            cells.append(
                BoardTableCell()
                if value is None
                else BoardTableCell(text=f"{value:.{figure.places}f}")
            )
        lines.append(BoardTableRow(cells=tuple(cells), kind="published"))
    caption = (
        f"As printed in {published.source}, without intervals. The clips differ from those above, unless "
        "this is that paper's benchmark; empty cells are not printed there"
    )
    table = ReportTable(caption=caption, columns=tuple(columns), lines=tuple(lines))
    return ((f"Published rows ({len(lines)})", (table,)),)


def _sort_published_rows(
    published: PublishedLeaderboard, figure: MetricDefinition
) -> list[PublishedModelRow]:
    def get_key(row: PublishedModelRow) -> float:
        return -row.figures.get(figure.metric, max(row.figures.values(), default=0.0))

    return sorted(published.rows, key=get_key)


def _format_leader_summary(board: ReportBoard, figure: MetricDefinition) -> str:
    """Return sentences about the best reviewer and baseline, and the best reviewer's differences."""
    reviewers = [contender for contender in board.placed if contender.kind == "reviewer"]
    floors = [contender for contender in board.placed if contender.kind == "floor"]
    if not board.placed:
        return "No entrant has this metric."
    sentences = [
        f"{word}: {contender.name} with {_format_metric_with_interval(contender, figure)}."
        for word, leaders in (("Best reviewer", reviewers), ("Best baseline", floors))
        for contender in leaders[:1]
    ]
    rivals = [*floors[:1], *reviewers[1:2]] if reviewers else []
    return " ".join(
        [*sentences, *(format_contender_difference(board, reviewers[0], rival) for rival in rivals)]
    )


def _format_metric_with_interval(contender: BoardContender, figure: MetricDefinition) -> str:
    cell = build_estimate_cell(
        get_entrant_metric(contender.entrant, figure.metric), TableFootnotes(), places=figure.places
    )
    return f"{cell.text} ({cell.doubt})"


def _format_step_summary(board: ReportBoard) -> str:
    reviewers = [
        contender for contender in board.contenders if contender.kind == "reviewer"
    ] or board.contenders
    best = reviewers[0]
    parts = []
    for figure in _list_step_metrics(board):
        value = _measure_step_score(best, figure)
        score = f"{value.value:.1f}" if isinstance(value, Estimate) else "unmeasured"
        parts.append(f"{figure.group} {score}")
    return f"{best.name}: {', '.join(parts)}."
