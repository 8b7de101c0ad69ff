"""Values as a notebook shows them: plain tables, everything escaped, nothing loaded from anywhere."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_CELL: Final = "text-align:left;padding:0 1em 0 0"


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A headed table; cells are shown as `str` gives them."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    caption = f'<caption style="{_CELL}">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Sequence[object]) -> str:
    return "".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row)
