"""Download files of a report: tables as CSV with exact numbers and as LaTeX, clips as CSV."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from unreel.core.estimate import Estimate
from unreel.core.output_files import OutputDirectory
from unreel.core.table_formats import build_csv_table, build_latex_table
from unreel.report.boards.board import BoardPanel
from unreel.report.boards.tables import BoardTableCell, ReportTable
from unreel.report.clips.clip_browser import ClipBrowserData
from unreel.report.clips.clip_files import STATUSES

FOLDER = "tables"
_DIGITS = 6
"""Number of significant digits of calculated numbers; the page shows fewer."""


def add_table_file_names(panel: BoardPanel) -> BoardPanel:
    """Return the panel with a file name set in each of its tables."""
    names = _number_repeated_names([f"{FOLDER}/{panel.id}"] * len(panel.all_tables), "-{}")
    named = (replace(t, file=name) for t, name in zip(panel.all_tables, names, strict=True))
    tables = tuple(itertools.islice(named, len(panel.tables)))
    extras = [
        (heading, tuple(itertools.islice(named, len(extra)))) for heading, extra in panel.extras
    ]
    return replace(panel, tables=tables, extras=tuple(extras))


def format_table_csv(table: ReportTable) -> str:
    """Return the table as CSV with exact numbers, and columns for interval ends, n and missing reasons."""
    columns = list(_iter_download_columns(table))
    return build_csv_table(*_build_named_rows(columns, n_rows=len(table.lines)))


def format_table_latex(table: ReportTable) -> str:
    """Return the table as LaTeX with intervals in brackets; notes and reasons end the caption."""
    columns = []
    for index, column in enumerate(table.columns):
        texts = []
        for cell in (line.cells[index] for line in table.lines):
            text = f"{cell.text} ({cell.badge})" if cell.badge else cell.text
            if isinstance(cell.number, Estimate):
                ends = cell.detail.partition(", n ")[0]
                text = f"{cell.text} [{ends.replace(' to ', ', ')}]"
            elif cell.note:
                text = f"({cell.note})"
            texts.append(text)
        columns.append((column.title, texts))
    gaps = (f"({mark}) not measured: {reason}" for mark, reason in table.notes)
    sentences = [sentence for sentence in (table.caption, table.promise, *gaps) if sentence]
    caption = " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)
    return build_latex_table(*_build_named_rows(columns, n_rows=len(table.lines)), caption=caption)


def build_table_files(table: ReportTable) -> dict[str, str]:
    """Return the CSV file and the LaTeX file of a table, by file name."""
    return {
        f"{table.file}.csv": format_table_csv(table),
        f"{table.file}.tex": format_table_latex(table),
    }


def build_latex_downloads(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the LaTeX files among `files` as data of the page, from which a reader can save them."""
    latex = {name: text for name, text in files.items() if name.endswith(".tex")}
    return {"report-latex": {name.rpartition("/")[2]: text for name, text in latex.items()}}


def _iter_download_columns(table: ReportTable) -> Iterator[tuple[str, list[str]]]:
    reasons = {"": "", **dict(table.notes)}
    for index, column in enumerate(table.columns):
        cells = [line.cells[index] for line in table.lines]
        estimates = [c.number if isinstance(c.number, Estimate) else None for c in cells]
        doubts = [
            "" if estimate else cell.detail for cell, estimate in zip(cells, estimates, strict=True)
        ]
        yield column.title, [_format_exact_number(cell) for cell in cells]
        if any(estimates):
            yield f"{column.title}, low", [_format_digits(e.low) if e else "" for e in estimates]
            yield f"{column.title}, high", [_format_digits(e.high) if e else "" for e in estimates]
            yield f"{column.title}, n", [str(e.n) if e else "" for e in estimates]
        if any(doubts):
            yield f"{column.title}, note", doubts
        if any(cell.note for cell in cells):
            yield f"{column.title}, not measured", [reasons[cell.note] for cell in cells]
    if any(line.kind for line in table.lines):
        yield "Kind", [line.kind for line in table.lines]


def _format_exact_number(cell: BoardTableCell) -> str:
    if isinstance(cell.number, Estimate):
        return _format_digits(cell.number.value)
    return cell.text if cell.number is None else str(cell.number)


def _format_digits(value: float) -> str:
    return f"{value:.{_DIGITS}g}"


def _build_named_rows(
    columns: Sequence[tuple[str, Sequence[str]]], *, n_rows: int
) -> tuple[list[str], list[dict[str, str]]]:
    names = number_duplicate_names([title for title, _ in columns])
    values = [cells for _, cells in columns]
    return names, [
        {name: cells[row] for name, cells in zip(names, values, strict=True)}
        for row in range(n_rows)
    ]


def number_duplicate_names(names: Sequence[str]) -> list[str]:
    """Return the names made distinct: the second and later use of a name gets a number, from 2."""
    return _number_repeated_names(names, " ({})")


def _number_repeated_names(names: Sequence[str], suffix: str) -> list[str]:
    """Return the names made distinct: repeated names get a number from 2 in the format `suffix`."""
    taken: list[str] = []
    for name in names:
        numbered = (name + suffix.format(number) for number in itertools.count(2))
        taken.append(name if name not in taken else next(n for n in numbered if n not in taken))
    return taken


def format_clips_csv(browser: ClipBrowserData) -> str:
    """Return the clip list of a report as CSV: one line per clip, one column per reviewer."""
    entrants = [entrant["name"] for entrant in browser.index["entrants"]]
    columns = number_duplicate_names(["Clip", "Made by", *entrants])
    rows = []
    for _, clip, creator, _, answers in browser.lines:
        made_by = "real" if creator == -1 else browser.index["creators"][creator]
        outcome_of = {index: STATUSES[status] for index, status in answers}
        outcomes = [outcome_of.get(index, "") for index in range(len(entrants))]
        rows.append(dict(zip(columns, (clip, made_by, *outcomes), strict=True)))
    return build_csv_table(columns, rows)


def replace_report_files(
    directory: OutputDirectory,
    files: Mapping[str, str],
    folders: Iterable[str],
    old: re.Pattern[str],
) -> None:
    """Write `files`, and remove other files in `folders` whose names match `old`, of an earlier report."""
    for within in folders:
        for name in directory.files(within):
            if old.fullmatch(name) and f"{within}/{name}" not in files:
                directory.remove(f"{within}/{name}")
    for name, text in files.items():
        directory.write(name, text.encode())
