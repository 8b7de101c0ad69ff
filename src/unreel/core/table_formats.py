"""Tables as HTML, CSV, LaTeX and Markdown, with untrusted text escaped."""

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape

from unreel.core.safe_text import sanitise_line, sanitise_lines

_CELL = "text-align:left;vertical-align:top;padding:0 1em 0 0"
_TITLE = "text-align:left;font-weight:bold;white-space:nowrap"


def build_html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Build an HTML table with a title; without columns, the first cell of each row is its header."""
    head = "".join(
        f'<th scope="col" style="{_CELL}">{escape(sanitise_line(name))}</th>' for name in columns
    )
    first = "td" if columns else 'th scope="row"'
    body = ""
    for row in rows:
        cells = "".join(
            f'<{tag} style="{_CELL}">{escape(sanitise_lines(str(cell)))}</{tag.partition(" ")[0]}>'
            for tag, cell in zip([first, *["td"] * (len(row) - 1)], row, strict=True)
        )
        body += f"<tr>{cells}</tr>"
    caption = f'<caption style="{_TITLE}">{escape(sanitise_line(title))}</caption>'
    heading = f"<thead><tr>{head}</tr></thead>" if columns else ""
    return f"<table>{caption}{heading}<tbody>{body}</tbody></table>"


_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""Pattern of text that a spreadsheet parses as a formula, with ASCII and full-width characters."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def build_csv_table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return a CSV table with one line per row; a cell that looks like a formula is prefixed by `'`."""
    return "".join(iter_csv_lines(columns, rows, clean=sanitise_line))


def iter_csv_lines(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, object]],
    *,
    clean: Callable[[str], str] = sanitise_lines,
) -> Iterator[str]:
    """Yield the header and each row of a CSV file as lines; `clean` sanitises the text of each cell."""
    for cells in itertools.chain([columns], ([row[name] for name in columns] for row in rows)):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(
            [_escape_formula(clean(str(c))) for c in cells]
        )
        yield line.getvalue()


def build_latex_table(
    columns: Sequence[str], rows: Iterable[Mapping[str, object]], *, caption: str = ""
) -> str:
    """Build a LaTeX table with booktabs rules; number columns are right-aligned."""
    cells = [[sanitise_line(str(row[column])) for column in columns] for row in rows]
    aligned = ""
    for column in zip(*cells, strict=True):
        filled = [cell for cell in column if cell]
        aligned += "r" if filled and all(map(_NUMBER.fullmatch, filled)) else "l"
    return "\n".join(
        (
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            *([rf"\caption{{{_escape_latex(sanitise_line(caption))}}}"] if caption else []),
            rf"\begin{{tabular}}{{{aligned or 'l' * len(columns)}}}",
            r"\toprule",
            _format_latex_row([sanitise_line(column.replace("_", " ")) for column in columns]),
            r"\midrule",
            *map(_format_latex_row, cells),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        )
    )


def build_markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Build a Markdown table for a dataset or model card; cell contents are escaped to plain text."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_format_markdown_cell, line))} |" for line in lines)


def _escape_formula(text: str) -> str:
    acts = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if acts else text


def _format_latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(_format_latex_cell, cells))
    # LaTeX would parse a bracket or a star after `\\` or `\midrule` as an argument.
    return rf"{'{}' if row.startswith(('[', '*')) else ''}{row} \\"


def _format_latex_cell(cell: str) -> str:
    is_negative = cell.startswith("-") and _NUMBER.fullmatch(cell)
    return f"$-${cell[1:]}" if is_negative else _escape_latex(cell)


def _escape_latex(text: str) -> str:
    """Escape LaTeX commands in `text`, and prevent the ligature of two hyphens."""
    return re.sub("-(?=-)", "-{}", text.translate(_LATEX))


def _format_markdown_cell(value: object) -> str:
    text = sanitise_line(" ".join(str(value).split()))
    return re.sub(r"([\\|<>\[\]`*_~&!])", r"\\\1", text).replace("://", r"\://") or "—"
