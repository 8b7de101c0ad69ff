"""Tables of a report page: numbers with interval and count, and footnotes for missing numbers."""

import string
from collections.abc import Iterable
from dataclasses import dataclass, field

from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.protocols.metric_definitions import MetricDefinition

_LETTERS = string.ascii_lowercase


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTableColumn:
    """Column of a table: heading, metric, and whether it contains numbers."""

    title: str
    metric: MetricDefinition | None = None
    """Metric of the column, for the heading and the link to the definition."""
    numbers: bool = True


def build_metric_column(metric: MetricDefinition) -> BoardTableColumn:
    """Return the table column of a metric, titled with the metric's name."""
    return BoardTableColumn(title=metric.title, metric=metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTableCell:
    """Content of a table cell. Empty text with a `note` is an unmeasured number."""

    text: str = ""
    number: Estimate | float | None = None
    """Exact number behind the text, for files."""
    detail: str = ""
    """Small text next to the number, usually the interval and the count."""
    note: str = ""
    """Mark of the footnote with the reason for a missing number."""
    badge: str = ""
    link: str = ""
    """URL of details, relative to the page of all boards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTableRow:
    """Row of a table, with the kind of its subject, such as `reviewer` or `people`."""

    cells: tuple[BoardTableCell, ...]
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Table of a report page: caption, columns, rows and footnotes."""

    caption: str
    columns: tuple[BoardTableColumn, ...]
    lines: tuple[BoardTableRow, ...]
    notes: tuple[tuple[str, str], ...] = ()
    """Marks and texts of the footnotes."""
    metric: MetricDefinition | None = None
    """Metric of all numbers of the table, if columns are contenders."""
    file: str = ""
    """Path of the download files next to the page, without extensions; "" if there are none."""

    @property
    def metrics(self) -> tuple[MetricDefinition, ...]:
        metrics = (self.metric, *(column.metric for column in self.columns))
        return tuple(metric for metric in metrics if metric is not None)

    @property
    def promise(self) -> str:
        """Return a sentence about the coverage of the table's confidence intervals; "" without intervals."""
        numbers = (cell.number for line in self.lines for cell in line.cells)
        estimates = [number for number in numbers if isinstance(number, Estimate)]
        return describe_interval_coverage(estimates, kind="metric") if estimates else ""


@dataclass(slots=True)
class TableFootnotes:
    """Footnotes that explain missing numbers of a table; equal reasons share one mark."""

    letters: dict[str, str] = field(default_factory=dict)

    def mark(self, reason: str) -> str:
        """Return the footnote mark for `reason`; a new reason gets the next mark."""
        if reason not in self.letters:
            number = len(self.letters)
            mark = _LETTERS[number % len(_LETTERS)] * (1 + number // len(_LETTERS))
            self.letters[reason] = mark
        return self.letters[reason]

    def listed(self) -> tuple[tuple[str, str], ...]:
        """Return all footnote marks with their reasons, in order of first use."""
        return tuple((mark, reason) for reason, mark in self.letters.items())


def build_estimate_cell(
    measured: Measured | None, footnotes: TableFootnotes, *, places: int = 1
) -> BoardTableCell:
    """Return a table cell with a number, its interval and its count, or an empty one with a footnote."""
    if measured is None:
        return BoardTableCell(note=footnotes.mark("no data"))
    if isinstance(measured, Estimate):
        text = f"{measured.value:z.{places}f}"
        return BoardTableCell(
            text=text, number=measured, detail=format_interval_and_count(measured, places=places)
        )
    return BoardTableCell(note=footnotes.mark(measured.why))


def format_interval_and_count(estimate: Estimate, *, places: int = 1) -> str:
    """Return the confidence interval and the count as text, for example `1.0 to 2.0, n 1,000`."""
    ends = f"{estimate.low:z.{places}f} to {estimate.high:z.{places}f}"
    return f"{ends}, n {estimate.n:,}"


def build_optional_count_cell(
    count: int | None, footnotes: TableFootnotes, *, reason: str
) -> BoardTableCell:
    """Return a table cell with an exact count; empty with the footnote `reason` if `count` is `None`."""
    return BoardTableCell(note=footnotes.mark(reason)) if count is None else build_count_cell(count)


def build_count_cell(count: int) -> BoardTableCell:
    """Return a table cell with an exact count, without a confidence interval."""
    return BoardTableCell(text=f"{count:,}", number=count)


def build_report_table(
    caption: str,
    columns: Iterable[BoardTableColumn | MetricDefinition | str],
    rows: Iterable[BoardTableRow | Iterable[BoardTableCell]],
    notes: TableFootnotes | None = None,
    *,
    n_text: int = 1,
    file: str = "",
) -> ReportTable:
    """Build a table. A column may be a metric or a title; the first `n_text` titles are of texts."""
    heads = []
    for index, column in enumerate(columns):
        if isinstance(column, MetricDefinition):
            heads.append(build_metric_column(column))
        elif isinstance(column, str):
            heads.append(BoardTableColumn(title=column, numbers=index >= n_text))
        else:
            heads.append(column)
    lines = [
        row if isinstance(row, BoardTableRow) else BoardTableRow(cells=tuple(row)) for row in rows
    ]
    return ReportTable(
        caption=caption,
        columns=tuple(heads),
        lines=tuple(lines),
        notes=() if notes is None else notes.listed(),
        file=file,
    )
