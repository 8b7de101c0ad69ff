"""Boards of a report: reviewers that answered the same questions, compared side by side, with people."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from unreel.benchmarks.human_scores import AGAINST, AnnotatorScoreRow, read_human_scores
from unreel.core.errors import UnreadableSourceError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.question import list_differing_condition_fields
from unreel.core.verdict import get_verdict_decision
from unreel.evaluation.comparison import disambiguate_reviewers
from unreel.protocols.metric_definitions import MetricDefinition
from unreel.protocols.protocol import Protocol
from unreel.report.boards.charts import FLOORS, SERIES, SHOWN, BoardChart, ChartPoint, Palette
from unreel.report.boards.entrant_metrics import get_entrant_metric
from unreel.report.boards.tables import (
    BoardTableCell,
    BoardTableRow,
    ReportTable,
    TableFootnotes,
    build_count_cell,
    build_estimate_cell,
)
from unreel.report.entrants import AnsweredQuestion, ReportEntrant

KIND = "people"


def find_human_scores(entrant: ReportEntrant) -> tuple[tuple[AnnotatorScoreRow, ...], str]:
    """Return people's scores on the benchmark and for the protocol of `entrant`, and a note.

    The note is about the people, or about why they are missing; empty if there are none.
    """
    try:
        people = read_human_scores(Path(entrant.benchmark))
    except UnreadableSourceError as error:
        return (), f"People's rows are not shown: {error}"
    protocol = entrant.instrument.instrument
    rows = tuple(
        row
        for row in (() if people is None else people.rows)
        if (row.protocol, row.version) == (protocol.protocol, protocol.version)
    )
    if people is None or not rows:
        return (), ""
    if people.fingerprint and entrant.fingerprint not in {"", people.fingerprint}:
        return (), "People's rows are not shown: the rows are of another version of this benchmark."
    n_annotators = sum(row.kind == "annotator" for row in rows)
    return rows, (
        f"{n_annotators} people judged these clips in the campaign {people.campaign}. Each "
        "watched some of the clips in full, so their rows are below and have no rank."
    )


def build_human_points(
    rows: Sequence[AnnotatorScoreRow], metric: MetricDefinition
) -> list[ChartPoint]:
    """Return the chart points of the people who have the metric, with the majority first."""
    return [
        ChartPoint(who=f"people: {row.name}", measured=row[metric.metric], kind=KIND)
        for row in _sort_by_score(rows, metric)
        if isinstance(row[metric.metric], Estimate)
    ]


def build_human_table_lines(
    rows: Sequence[AnnotatorScoreRow],
    ranking_metric: MetricDefinition,
    metrics: Sequence[MetricDefinition],
    footnotes: TableFootnotes,
) -> list[BoardTableRow]:
    """Return the leaderboard rows of people: no rank, a name, `metrics`, and the number of judgements."""
    lines = []
    for row in _sort_by_score(rows, ranking_metric):
        name = BoardTableCell(
            text=f"people: {row.name}", badge=KIND, detail=f"against {AGAINST[row.against]}"
        )
        values = (build_estimate_cell(row[f.metric], footnotes, places=f.places) for f in metrics)
        n_judged = replace(build_count_cell(row.n_judged), detail="judged")
        lines.append(BoardTableRow(cells=(BoardTableCell(), name, *values, n_judged), kind=KIND))
    return lines


def _sort_by_score(
    rows: Sequence[AnnotatorScoreRow], metric: MetricDefinition
) -> list[AnnotatorScoreRow]:
    """Sort rows: the majority first, then people with the metric, best first, then others by name."""

    def get_key(row: AnnotatorScoreRow) -> tuple[bool, float, str]:
        measured = row[metric.metric]
        value = measured.value if isinstance(measured, Estimate) else float("-inf")
        return row.kind != "majority", -value, row.name

    return sorted(rows, key=get_key)


_NAMED = 3
"""Maximum number of named parts in a text; the others are counted."""


def explain_missing_rank(entrant: ReportEntrant, ranks_by: str) -> str:
    """Return the reason why `entrant` has no rank, as text; "" if it has one.

    A rank needs that every question was sent, that at least half of the answers are readable, and
    that one of them is about real clips and one about the clips of each creator.
    """
    if entrant.n_pending:
        return f"{entrant.n_pending:,} questions not asked yet"
    parts = [name_benchmark_part(item) for item in entrant.items]
    readable = [
        part
        for part, item in zip(parts, entrant.items, strict=True)
        if get_verdict_decision(item.outcome) is not None
    ]
    if not readable:
        return f"no readable answer to any of {len(parts):,} questions"
    if lacking := [part for part in dict.fromkeys(parts) if part not in {*readable}]:
        rest = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
        return f"no readable answer for {', '.join(lacking[:_NAMED])}{rest}"
    if 2 * len(readable) < len(parts):
        return f"only {len(readable):,} of {len(parts):,} answers are readable, less than half"
    measured = get_entrant_metric(entrant, ranks_by)
    return measured.why if isinstance(measured, Unmeasured) else ""


def name_benchmark_part(question: AnsweredQuestion) -> str:
    """Return the name of the part that a question belongs to: real clips, or clips of a creator."""
    return "real clips" if question.creator is None else f"clips of {question.creator}"


SPOKEN = 4
REVIEWERS = "reviewers"
"""Folder of the pages of single reviewers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPanel:
    """Section of a board: a heading, a text, optional charts, and the tables with the data."""

    id: str
    heading: str
    lead: str
    charts: tuple[BoardChart, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    is_open: bool = False
    """Whether the tables are shown directly, not in a collapsed section."""
    extras: tuple[tuple[str, tuple[ReportTable, ...]], ...] = ()
    """Headings of collapsed sections, each with its tables."""

    @property
    def all_tables(self) -> tuple[ReportTable, ...]:
        """Return all tables of the panel; tables under extra headings come last."""
        return (*self.tables, *(table for _, tables in self.extras for table in tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardContender:
    """Entrant on a board, with its name there and the reason if it has no rank."""

    place: int
    """Index of the entrant in the whole report, as in the clip browser."""
    name: str
    """Name of the reviewer, with differing conditions or a number if several share it."""
    entrant: ReportEntrant
    unranked: str = ""
    """Reason why the contender has no rank, as text; "" if it has one."""

    @property
    def page(self) -> str:
        """Return the path of the contender's own page, relative to the report's first page."""
        return f"{REVIEWERS}/{self.place}.html"

    @property
    def kind(self) -> str:
        """Return the kind of the contender: `reviewer`, or `floor` for a baseline."""
        return "floor" if self.entrant.is_floor else "reviewer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBoard:
    """Leaderboard of contenders that were asked the same questions, best first and unranked last."""

    id: str
    protocol: str
    title: str
    """Title of the protocol."""
    benchmark: str
    """Shortened path of the benchmark."""
    extent: str
    """Part of the benchmark, as text; "" for all."""
    instrument: str
    shared_condition: str
    """Fields of the condition that are equal for all contenders, as text."""
    ranks_by: str
    """Name of the metric that ranks the contenders."""
    contenders: tuple[BoardContender, ...]
    panels: tuple[BoardPanel, ...] = field(default=())
    human_rows: tuple[AnnotatorScoreRow, ...] = ()
    human_note: str = ""
    distinctions: tuple[str, ...] = ()
    """Facts that distinguish the board from the others of a report; empty if it is the only one."""

    @property
    def name(self) -> str:
        """Return the name of the board: protocol, benchmark, part, and further distinctions."""
        parts = dict.fromkeys((self.benchmark, self.extent, *self.distinctions))
        return f"{self.title}: {', '.join(part for part in parts if part not in ('', self.title))}"

    @property
    def protocol_definition(self) -> Protocol[Any, Any]:
        return self.contenders[0].entrant.instrument

    @property
    def metrics(self) -> tuple[MetricDefinition, ...]:
        """Return every metric that the panels of the board show, without duplicates."""
        metrics = (f for panel in self.panels for table in panel.all_tables for f in table.metrics)
        return tuple({metric.metric: metric for metric in metrics}.values())

    @property
    def placed(self) -> tuple[BoardContender, ...]:
        """Return the contenders with complete results, which have a rank, including baselines."""
        return tuple(contender for contender in self.contenders if not contender.unranked)

    @property
    def entrants(self) -> list[ReportEntrant]:
        return [contender.entrant for contender in self.contenders]

    @property
    def shown(self) -> tuple[BoardContender, ...]:
        """Return as many contenders as charts fit, in board order: reviewers first, unranked ones last."""
        by_kind = sorted(self.contenders, key=lambda c: (c.unranked != "", c.kind == "floor"))
        selected = by_kind[:SHOWN]
        return tuple(contender for contender in self.contenders if contender in selected)

    @property
    def palette(self) -> Palette:
        """Return the colour of each contender in `shown`, the same in every chart; baselines are grey."""
        colours = {"reviewer": itertools.cycle(SERIES), "floor": itertools.cycle(FLOORS)}
        return {contender.name: next(colours[contender.kind]) for contender in self.shown}

    @property
    def spoken(self) -> tuple[BoardContender, ...]:
        """Return the contenders that the texts name: the first reviewers, or baselines without reviewers."""
        reviewers = tuple(
            contender for contender in self.contenders if contender.kind == "reviewer"
        )
        return (reviewers or self.contenders)[:SPOKEN]


def build_unfilled_report_board(
    entrants: Sequence[ReportEntrant], indexes: Sequence[int], *, number: int
) -> ReportBoard:
    """Build a board without panels; `indexes` are those of its entrants in the whole report."""
    ranks_by = entrants[0].instrument.figures.ranks_by(judged=entrants[0].judged)
    contenders = [
        BoardContender(
            place=index,
            name=name,
            entrant=entrant,
            unranked=explain_missing_rank(entrant, ranks_by),
        )
        for index, name, entrant in zip(
            indexes, build_entrant_names(entrants), entrants, strict=True
        )
    ]

    def get_rank_key(contender: BoardContender) -> tuple[bool, float]:
        measured = get_entrant_metric(contender.entrant, ranks_by)
        if contender.unranked or not isinstance(measured, Estimate):
            return True, 0.0
        return False, -measured.value

    conditions = [entrant.condition for entrant in entrants]
    differing = list_differing_condition_fields(conditions)
    shared = [f"{n}={v}" for n, v in conditions[0].written().items() if n not in differing]
    human_rows, human_note = find_human_scores(entrants[0])
    first = entrants[0]
    return ReportBoard(
        id=f"board-{number}",
        protocol=first.protocol,
        title=first.instrument.title,
        benchmark=shorten_path(first.benchmark),
        extent=first.extent,
        instrument=str(first.instrument.instrument),
        shared_condition=" ".join(shared),
        ranks_by=ranks_by,
        contenders=tuple(sorted(contenders, key=get_rank_key)),
        human_rows=human_rows,
        human_note=human_note,
    )


def build_entrant_names(entrants: Sequence[ReportEntrant]) -> list[str]:
    """Return distinct names of the entrants: the reviewer, plus differing conditions or a number."""
    return disambiguate_reviewers([(entrant.reviewer, entrant.condition) for entrant in entrants])


def shorten_path(path: str, *, more: int = 0) -> str:
    """Return the last parts of a path, `more` than usual; the folders above them are omitted."""
    parts = PurePath(path).parts
    return "/".join(parts[-(2 if PurePath(path).suffix else 1) - more :])


ALL = "all clips"


def add_distinct_board_names(boards: Sequence[ReportBoard]) -> list[ReportBoard]:
    """Return the boards with the facts that distinguish them, so that no two boards have one name."""
    paths = [board.entrants[0].benchmark for board in boards]
    shorter = (
        {path: shorten_path(path, more=more) for path in paths} for more in itertools.count()
    )
    names = next(short for short in shorter if len({*short.values()}) == len(short))
    located = [
        replace(board, benchmark=names[path]) for board, path in zip(boards, paths, strict=True)
    ]
    if len(located) == 1:
        return located
    facts = [
        (board.title, board.benchmark, board.extent or ALL, board.instrument) for board in located
    ]
    titles = Counter((title, benchmark, extent) for title, benchmark, extent, _ in facts)
    differs = [len(set(column)) > 1 for column in zip(*facts, strict=True)]
    differs[-1] = max(titles.values()) > 1  # the version, only if all else is equal
    fields = list_differing_condition_fields(
        [e.condition for board in located for e in board.entrants]
    )
    named = []
    for board, values in zip(located, facts, strict=True):
        distinctions = [fact for fact, differ in zip(values, differs, strict=True) if differ]
        conditions = [entrant.condition for entrant in board.entrants]
        varied = list_differing_condition_fields(conditions)
        distinctions += conditions[0].words([name for name in fields if name not in varied])
        named.append(replace(board, distinctions=tuple(distinctions)))
    return named


def build_contender_names(boards: Sequence[ReportBoard]) -> dict[int, str]:
    """Return contenders' names by number, with what distinguishes their board if they are on several."""
    boards_of = Counter(who for board in boards for who in {e.reviewer for e in board.entrants})
    return {
        contender.place: format_contender_name(board, contender)
        if boards_of[contender.entrant.reviewer] > 1
        else contender.name
        for board in boards
        for contender in board.contenders
    }


def format_contender_name(board: ReportBoard, contender: BoardContender) -> str:
    """Return the contender's name, followed by the facts that distinguish its board from others."""
    return " · ".join((contender.name, *board.distinctions))
