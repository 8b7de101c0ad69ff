"""Panels of the leaderboard, of score decreases from easy to hard questions, and of differences."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from unreel.benchmarks.published.printed_tables import read_published_table
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import ENOUGH_CLUSTERS, Estimate, Measured, Unmeasured
from unreel.core.question import Condition
from unreel.evaluation.comparison import ComparedReviewer, compare_reviewers
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.report.boards.board import (
    BoardContender,
    BoardPanel,
    ReportBoard,
    build_human_points,
    build_human_table_lines,
    format_contender_name,
)
from unreel.report.boards.charts import (
    BoardChart,
    ChartPoint,
    build_ranked_chart,
    build_stepped_chart,
)
from unreel.report.boards.entrant_metrics import (
    DIFFERENCE,
    READABLE,
    count_question_outcomes,
    get_entrant_metric,
    subtract_distance_from_100,
)
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableColumn,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
    build_metric_column,
    build_report_table,
)
from unreel.report.entrants import ReportEntrant
from unreel.stats.paired_differences import adjust_p_values_by_holm

_TRACE = {
    "overall": "overall",
    "accuracy": "accuracy",
    "fake-accuracy": "fake_accuracy",
    "real-accuracy": "real_accuracy",
    "explanation": "explanation",
    "box-iou": "bbox_iou",
    "box-distance": "bbox_distance",
    "time-distance": "time_distance",
}
_TABLES: Mapping[str, tuple[str, str, Mapping[str, str], float]] = {
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


def build_leaderboard_panel(board: ReportBoard) -> BoardPanel:
    """Build the panel with every contender and its metrics; published results are in a table below."""
    metric = board.protocol_definition.figures[board.ranks_by]
    points = [
        ChartPoint(
            who=contender.name,
            measured=get_entrant_metric(contender.entrant, metric.metric),
            kind=contender.kind,
        )
        for contender in board.placed
    ]
    points += build_human_points(board.human_rows, metric)
    title = f"{metric.title}, {metric.unit}" if metric.unit else metric.title
    chart = BoardChart(
        id=f"{board.id}-leaderboard",
        title=f"{metric.title} of each reviewer",
        alt=_format_leader_summary(board, metric),
        spec=build_ranked_chart(points, title=title, domain=metric.range, places=metric.places),
    )
    return BoardPanel(
        id=f"{board.id}-leaderboard",
        heading="Leaderboard",
        lead=(
            f"Ranked by {metric.title.lower()}: {metric.meaning}. A baseline ignores the picture; "
            "a model that does not beat it shows no skill."
            + (f" {board.human_note}" if board.human_note else "")
        ),
        charts=(chart,),
        tables=(_build_leader_table(board),),
        extras=_build_published_tables(board),
        is_open=True,
    )


def build_difficulty_panel(board: ReportBoard) -> BoardPanel | None:
    """Build scores by difficulty: generated or not, why, where, when; `None` without all questions."""
    steps = [
        board.protocol_definition.figures[name] for name in board.protocol_definition.figures.steps
    ]
    if not steps:
        return None
    points = [
        ChartPoint(
            who=contender.name,
            group=metric.group.capitalize(),
            measured=_measure_step_score(contender, metric),
            kind=contender.kind,
        )
        for contender in board.shown
        for metric in steps
    ]
    columns = [BoardTableColumn(title=metric.group.capitalize(), metric=metric) for metric in steps]
    table = build_contender_table(
        board,
        "Score at each step, 0 to 100",
        columns,
        lambda contender, notes: (
            build_estimate_cell(_measure_step_score(contender, metric), notes) for metric in steps
        ),
    )
    reviewers = [contender for contender in board.contenders if contender.kind == "reviewer"]
    best = (reviewers or board.contenders)[0]
    texts = []
    for metric in steps:
        value = _measure_step_score(best, metric)
        score = f"{value.value:.1f}" if isinstance(value, Estimate) else "unmeasured"
        texts.append(f"{metric.group} {score}")
    chart = BoardChart(
        id=f"{board.id}-gradient",
        title="Score at each step of difficulty",
        alt=f"{best.name}: {', '.join(texts)}.",
        spec=build_stepped_chart(
            points,
            board.palette,
            steps=[metric.group.capitalize() for metric in steps],
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
        tables=(table,),
    )


def build_contender_cell(contender: BoardContender) -> BoardTableCell:
    """Return a table cell with the contender's name and a link to its page; baselines have a badge."""
    badge = "baseline" if contender.kind == "floor" else ""
    return BoardTableCell(text=contender.name, badge=badge, link=contender.page)


def build_contender_line(
    contender: BoardContender, cells: Iterable[BoardTableCell]
) -> BoardTableRow:
    """Return the contender's table row: the name, then `cells`."""
    return BoardTableRow(cells=(build_contender_cell(contender), *cells), kind=contender.kind)


def build_contender_table(
    board: ReportBoard,
    caption: str,
    columns: Iterable[MetricDefinition | BoardTableColumn | str],
    build_cells: Callable[[BoardContender, TableFootnotes], Iterable[BoardTableCell]],
) -> ReportTable:
    """Build a table with a row for each contender: the name, then the cells of `columns`."""
    notes = TableFootnotes()
    lines = [build_contender_line(c, build_cells(c, notes)) for c in board.contenders]
    return build_report_table(caption, ("Reviewer", *columns), lines, notes)


def _measure_step_score(contender: BoardContender, metric: MetricDefinition) -> Measured:
    measured = get_entrant_metric(contender.entrant, metric.metric)
    return subtract_distance_from_100(measured) if metric.better == "less" else measured


def _build_leader_table(board: ReportBoard) -> ReportTable:
    metrics = [
        board.protocol_definition.figures[name]
        for name in board.protocol_definition.figures.leading
    ]
    notes = TableFootnotes()
    columns = [BoardTableColumn(title="#"), BoardTableColumn(title="Reviewer", numbers=False)]
    columns += map(build_metric_column, metrics)
    columns.append(build_metric_column(READABLE))
    rank = 0
    lines = []
    for contender in board.contenders:
        is_ranked = contender.kind == "reviewer" and not contender.unranked
        rank += is_ranked
        rank_cell = build_count_cell(rank) if is_ranked else BoardTableCell()
        note = f"not ranked: {contender.unranked}" if contender.unranked else ""
        cells = [rank_cell, replace(build_contender_cell(contender), detail=note)]
        for metric in metrics:
            measured = get_entrant_metric(contender.entrant, metric.metric)
            cells.append(build_estimate_cell(measured, notes, places=metric.places))
        outcomes = count_question_outcomes(contender.entrant)
        n_questions = f"of {outcomes.n_questions:,} asked"
        cells.append(replace(build_count_cell(outcomes.readable), detail=n_questions))
        lines.append(BoardTableRow(cells=tuple(cells), kind=contender.kind))
    ranking = board.protocol_definition.figures[board.ranks_by]
    lines += build_human_table_lines(board.human_rows, ranking, metrics, notes)
    return ReportTable(
        caption=board.name, columns=tuple(columns), lines=tuple(lines), notes=notes.listed()
    )


def _build_published_tables(board: ReportBoard) -> tuple[tuple[str, tuple[ReportTable, ...]], ...]:
    """Return the tables of results published in papers, marked as published; empty if there are none."""
    if board.protocol not in _TABLES:
        return ()
    name, column, names, factor = _TABLES[board.protocol]
    printed = read_published_table(name)
    rows = [
        (row[column], {m: float(row[head]) * factor for m, head in names.items() if row[head]})
        for row in printed.rows
    ]
    source = f"{printed.paper}, {printed.table}"
    metrics = [
        board.protocol_definition.figures[name]
        for name in board.protocol_definition.figures.leading
    ]
    columns = [BoardTableColumn(title="Reviewer", numbers=False)]
    columns += map(build_metric_column, metrics)
    lines = []
    ranking = board.protocol_definition.figures[board.ranks_by].metric
    for model, values in sorted(
        rows, key=lambda row: -row[1].get(ranking, max(row[1].values(), default=0.0))
    ):
        cells = [BoardTableCell(text=model, badge="published")]
        for metric in metrics:
            value = values.get(metric.metric)
            cells.append(
                BoardTableCell()
                if value is None
                else BoardTableCell(text=f"{value:.{metric.places}f}")
            )
        lines.append(BoardTableRow(cells=tuple(cells), kind="published"))
    caption = (
        f"As printed in {source}, without intervals. The clips differ from those above, unless "
        "this is that paper's benchmark; empty cells are not printed there"
    )
    table = ReportTable(caption=caption, columns=tuple(columns), lines=tuple(lines))
    return ((f"Published rows ({len(lines)})", (table,)),)


def _format_leader_summary(board: ReportBoard, metric: MetricDefinition) -> str:
    """Return sentences about the best reviewer and baseline, and the best reviewer's differences."""
    reviewers = [contender for contender in board.placed if contender.kind == "reviewer"]
    floors = [contender for contender in board.placed if contender.kind == "floor"]
    if not board.placed:
        return "No entrant has this metric."
    sentences = []
    for word, leaders in (("Best reviewer", reviewers), ("Best baseline", floors)):
        if leaders:
            measured = get_entrant_metric(leaders[0].entrant, metric.metric)
            cell = build_estimate_cell(measured, TableFootnotes(), places=metric.places)
            sentences.append(f"{word}: {leaders[0].name} with {cell.text} ({cell.detail}).")
    rivals = [*floors[:1], *reviewers[1:2]] if reviewers else []
    return " ".join(
        [*sentences, *(format_contender_difference(board, reviewers[0], rival) for rival in rivals)]
    )


_CLAIMS = {
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
    metric: MetricDefinition
    n_questions: int = 0
    """Number of questions that the ranking metric is over."""
    p: float | None = None
    """Two-sided p-value of the difference; `None` if it was not tested."""
    p_values: tuple[float, ...] = ()
    """p-values of all metrics that `unreel compare` tests for these two, among them `p`."""


def compare_report_entrants(
    first_entrant: ReportEntrant, second_entrant: ReportEntrant
) -> RankingMetricDifference:
    """Return the ranking metric of `first_entrant` minus that of `second_entrant`, computed as in `unreel compare`."""
    metrics = first_entrant.instrument.figures
    metric = metrics[metrics.ranks_by(judged=first_entrant.judged and second_entrant.judged)]
    try:
        (comparison,) = compare_reviewers(
            [_build_compared_reviewer(first_entrant), _build_compared_reviewer(second_entrant)]
        )
    except InvalidSettingError as error:
        return RankingMetricDifference(measured=Unmeasured(error.problem), metric=metric)
    difference = next(d for d in comparison.differences if d.metric == metric.metric)
    return RankingMetricDifference(
        measured=difference.difference,
        metric=metric,
        n_questions=comparison.n_common
        if metrics.counts(metric.metric) == "readable"
        else comparison.n_common + comparison.n_invalid,
        p=difference.p,
        p_values=tuple(d.p for d in comparison.differences if d.p is not None),
    )


def format_contender_difference(
    board: ReportBoard, first_contender: BoardContender, second_contender: BoardContender
) -> str:
    """Return a sentence on which of two leads, or that it is unknown, based on the paired difference."""
    difference = compare_report_entrants(first_contender.entrant, second_contender.entrant)
    measured = difference.measured
    if isinstance(measured, Unmeasured):
        return f"{first_contender.name} and {second_contender.name} cannot be compared clip by clip: {measured.why}."
    kind = "pairs" if board.protocol_definition.subject == "pair" else "clips"
    value, low, high = (
        f"{number:+.{difference.metric.places}f}"
        for number in (measured.value, measured.low, measured.high)
    )
    n_clusters = measured.n_clusters or measured.n
    few = f", from only {n_clusters} clips or scenes" if n_clusters < ENOUGH_CLUSTERS else ""
    lead = "ahead" if measured.low > 0 else "behind" if measured.high < 0 else "open"
    return (
        f"{_CLAIMS[second_contender.kind, lead].format(first=first_contender.name, second=second_contender.name)}: {value} of {difference.metric.title.lower()} on the "
        f"{difference.n_questions:,} {kind} that both answered (95 % interval {low} to {high}{few})."
    )


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


CHANCE = 0.05
LEADERS = 3
"""Maximum number of reviewers of a board that are compared with those of another board."""


def build_pairwise_differences_panel(
    board: ReportBoard, later_boards: Sequence[ReportBoard] = ()
) -> BoardPanel | None:
    """Build corrected pairwise differences, also on clips in common with the boards `later_boards` of other parts."""
    ranked = [contender for contender in board.shown if not contender.unranked]
    groups = [
        ("First minus second", list(itertools.combinations(ranked, 2))),
        *(_build_cross_board_comparisons(board, b) for b in later_boards),
    ]
    tables, n_tests = [], 0
    for caption, pairs in groups:
        compared = [compare_report_entrants(a.entrant, b.entrant) for a, b in pairs]
        p_values = [p for item in compared for p in item.p_values]
        corrected = dict(zip(p_values, adjust_p_values_by_holm(p_values), strict=True))
        n_tests += len(p_values)
        shown = [
            (*pair, item, None if item.p is None else corrected[item.p])
            for pair, item in zip(pairs, compared, strict=True)
            if "reviewer" in (pair[0].kind, pair[1].kind)
        ]
        if shown:
            title = shown[0][2].metric.title.lower()
            tables.append(_build_difference_table(shown, caption=f"{caption}, {title}"))
    if not tables:
        return None
    return BoardPanel(
        id=f"{board.id}-differences",
        heading="Paired differences",
        lead=(
            "Each pair on the clips that both answered, so that hard clips cancel out. p-values are "
            f"corrected for {n_tests:,} tests (Holm): every metric of every pair, as in the command "
            "unreel compare, which prints them all."
        ),
        tables=tuple(tables),
    )


def _build_cross_board_comparisons(
    board: ReportBoard, other_board: ReportBoard
) -> tuple[str, list[tuple[BoardContender, BoardContender]]]:
    """Compare the leaders of two boards, except a reviewer with itself under the same condition."""
    pairs = [
        (
            replace(left, name=format_contender_name(board, left)),
            replace(right, name=format_contender_name(other_board, right)),
        )
        for left in _select_leaders(board)
        for right in _select_leaders(other_board)
        if _get_reviewer_condition(left) != _get_reviewer_condition(right)
    ]
    names = " and ".join(", ".join(compared.distinctions) for compared in (board, other_board))
    return f"Clips in common of {names}, first minus second", pairs


def _select_leaders(board: ReportBoard) -> list[BoardContender]:
    return [contender for contender in board.placed if contender.kind == "reviewer"][:LEADERS]


def _get_reviewer_condition(contender: BoardContender) -> tuple[str, Condition]:
    return contender.entrant.reviewer, contender.entrant.condition


def _build_difference_table(
    rows: Sequence[tuple[BoardContender, BoardContender, RankingMetricDifference, float | None]],
    *,
    caption: str,
) -> ReportTable:
    notes = TableFootnotes()
    lines = [
        BoardTableRow(
            cells=(
                build_contender_cell(first),
                build_contender_cell(second),
                build_estimate_cell(difference.measured, notes, places=difference.metric.places),
                build_count_cell(difference.n_questions),
                BoardTableCell() if p is None else BoardTableCell(text=f"{p:.3f}"),
                BoardTableCell(text="yes" if p is not None and p < CHANCE else "no"),
            )
        )
        for first, second, difference, p in rows
    ]
    significance_column = BoardTableColumn(title="Told apart", numbers=False)
    columns = ("Reviewer", "Less", DIFFERENCE, "In common", "p, corrected", significance_column)
    return build_report_table(caption, columns, lines, notes, n_text=2)
