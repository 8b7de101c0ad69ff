"""Who is best, and how fast each falls from the easy question to the hard ones."""

from collections.abc import Iterable
from urllib.parse import urlencode

from unreel.core.estimate import Estimate, Measured
from unreel.protocols.figures import Figure
from unreel.report.boards.board import Board, Contender, Panel
from unreel.report.boards.charts import Chart, Point, ranked, stepped
from unreel.report.boards.figures import closeness, metric_of, upshot_of
from unreel.report.boards.printed import Printed, PrintedRow, printed_board
from unreel.report.boards.tables import (
    Cell,
    Column,
    Line,
    Notes,
    Table,
    doubt,
    measured_cell,
)


def leaderboard(board: Board) -> Panel:
    """Every contender with its figures, floors marked, and the published rows below."""
    figure = board.asked.figures[board.ranks_by]
    points = [
        Point(
            who=contender.name,
            measured=metric_of(contender.entrant, figure.metric),
            kind=contender.kind,
        )
        for contender in board.contenders
    ]
    title = f"{figure.title}, {figure.unit}" if figure.unit else figure.title
    chart = Chart(
        id=f"{board.id}-leaderboard",
        title=f"{figure.title} of each reviewer",
        alt=_leaders(board, figure),
        spec=ranked(points, title=title, domain=figure.range, places=figure.places),
    )
    return Panel(
        id=f"{board.id}-leaderboard",
        heading="Leaderboard",
        lead=(
            f"Ranked by {figure.title.lower()}: {figure.meaning}. A floor knows nothing of the "
            "picture; whoever does not beat it has shown nothing. Intervals hold the truth 95 times "
            "of 100."
        ),
        charts=(chart,),
        tables=(_leader_table(board),),
        extras=_printed_tables(board),
        is_open=True,
    )


def gradient(board: Board) -> Panel | None:
    """From telling that a clip is generated to telling why, where and when; where all are asked."""
    steps = _steps(board)
    if not steps:
        return None
    points = [
        Point(
            who=contender.name,
            group=_step(figure),
            measured=_height(contender, figure),
            kind=contender.kind,
        )
        for contender in board.shown
        for figure in steps
    ]
    notes = Notes()
    columns = [Column(title="Reviewer", numbers=False)]
    columns += [Column(title=_step(figure), meaning=figure.meaning) for figure in steps]
    lines = [
        line_of(contender, (measured_cell(_height(contender, figure), notes) for figure in steps))
        for contender in board.contenders
    ]
    chart = Chart(
        id=f"{board.id}-gradient",
        title="Score at each step of difficulty",
        alt=_falls(board),
        spec=stepped(
            points,
            board.palette,
            steps=[_step(figure) for figure in steps],
            title="score, 0 to 100",
        ),
    )
    return Panel(
        id=f"{board.id}-gradient",
        heading="Difficulty gradient",
        lead=(
            "From the easiest question to the hardest: generated or not, why, where, and from when "
            "on. Time counts as 100 less the time distance, so that more is better everywhere."
        ),
        charts=(chart,),
        tables=(
            Table(
                caption="Score at each step, 0 to 100",
                columns=tuple(columns),
                lines=tuple(lines),
                notes=notes.listed(),
            ),
        ),
    )


def name_cell(contender: Contender) -> Cell:
    """A contender's name, marked where it is a floor, with a way to its clips."""
    badge = "floor" if contender.kind == "floor" else ""
    return Cell(text=contender.name, badge=badge, link=urlencode({"reviewer": contender.place}))


def line_of(contender: Contender, cells: Iterable[Cell]) -> Line:
    """A contender's line of a table: its name, then `cells`."""
    return Line(cells=(name_cell(contender), *cells), kind=contender.kind)


def _steps(board: Board) -> list[Figure]:
    return [board.asked.figures[name] for name in board.asked.figures.steps]


def _step(figure: Figure) -> str:
    return figure.group.capitalize()


def _height(contender: Contender, figure: Figure) -> Measured:
    measured = metric_of(contender.entrant, figure.metric)
    return closeness(measured) if figure.better == "less" else measured


def _leading(board: Board) -> list[Figure]:
    return [board.asked.figures[name] for name in board.asked.figures.leading]


def _leader_table(board: Board) -> Table:
    figures = _leading(board)
    notes = Notes()
    columns = [Column(title="#"), Column(title="Reviewer", numbers=False)]
    columns += [Column(title=f.title, meaning=f.meaning) for f in figures]
    columns.append(Column(title="Readable", meaning="answers whose label or score could be read"))
    rank = 0
    lines = []
    for contender in board.contenders:
        is_ranked = contender.kind == "reviewer" and _is_ranked(board, contender)
        rank += is_ranked
        cells = [Cell(text=str(rank) if is_ranked else ""), name_cell(contender)]
        for figure in figures:
            measured = metric_of(contender.entrant, figure.metric)
            cells.append(measured_cell(measured, notes, places=figure.places))
        upshot = upshot_of(contender.entrant)
        cells.append(Cell(text=f"{upshot.readable:,}", doubt=f"of {upshot.n_asked:,} asked"))
        lines.append(Line(cells=tuple(cells), kind=contender.kind))
    return Table(
        caption=f"{board.title}: {board.benchmark}",
        columns=tuple(columns),
        lines=tuple(lines),
        notes=notes.listed(),
    )


def _is_ranked(board: Board, contender: Contender) -> bool:
    """Whoever lacks the figure that ranks is shown without a rank; its cell tells why."""
    return isinstance(metric_of(contender.entrant, board.ranks_by), Estimate)


def _printed_tables(board: Board) -> tuple[tuple[str, Table], ...]:
    """The published rows, marked as such."""
    printed = printed_board(board.protocol)
    if printed is None:
        return ()
    figures = _leading(board)
    columns = [Column(title="Reviewer", numbers=False)]
    columns += [Column(title=f.title, meaning=f.meaning) for f in figures]
    lines = []
    for row in _by_rank(printed, board.asked.figures[board.ranks_by]):
        cells = [Cell(text=row.model, badge="published")]
        for figure in figures:
            value = row.figures.get(figure.metric)
            cells.append(Cell() if value is None else Cell(text=f"{value:.{figure.places}f}"))
        lines.append(Line(cells=tuple(cells), kind="published"))
    caption = (
        f"As printed in {printed.source}, without intervals. These are other clips than here, unless "
        "this is that paper's benchmark; an empty cell is not printed there"
    )
    table = Table(caption=caption, columns=tuple(columns), lines=tuple(lines))
    return ((f"Published rows ({len(lines)})", table),)


def _by_rank(printed: Printed, figure: Figure) -> list[PrintedRow]:
    def height(row: PrintedRow) -> float:
        return -row.figures.get(figure.metric, max(row.figures.values(), default=0.0))

    return sorted(printed.rows, key=height)


def _leaders(board: Board, figure: Figure) -> str:
    measured = [
        (contender, value)
        for contender in board.contenders
        if isinstance(value := metric_of(contender.entrant, figure.metric), Estimate)
    ]
    if not measured:
        return "No contender has this figure."
    best = next(((o, v) for o, v in measured if o.kind == "reviewer"), None)
    floor = next(((o, v) for o, v in measured if o.kind == "floor"), None)
    parts = [
        f"{word}: {contender.name} with {value.value:.{figure.places}f} ({doubt(value, places=figure.places)})"
        for word, leader in (("Best reviewer", best), ("best floor", floor))
        if leader
        for contender, value in [leader]
    ]
    sentence = "; ".join(parts) + "."
    if best and floor:
        sentence += (
            " Their intervals overlap: the reviewer has not shown that it beats the floor."
            if best[1].low <= floor[1].high
            else " Their intervals do not overlap."
        )
    return sentence


def _falls(board: Board) -> str:
    reviewers = [
        contender for contender in board.contenders if contender.kind == "reviewer"
    ] or board.contenders
    best = reviewers[0]
    parts = []
    for figure in _steps(board):
        value = _height(best, figure)
        height = f"{value.value:.1f}" if isinstance(value, Estimate) else "unmeasured"
        parts.append(f"{figure.group} {height}")
    return f"{best.name}: {', '.join(parts)}."
