"""Values as a notebook shows them: plain tables, everything made harmless, nothing loaded from anywhere."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from unreel.core.plain import plain, plain_lines

_CELL: Final = "text-align:left;vertical-align:top;padding:0 1em 0 0"
_TITLE: Final = "text-align:left;font-weight:bold;white-space:nowrap"


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with its title; without columns the first cell of each row names the others."""
    head = "".join(
        f'<th scope="col" style="{_CELL}">{escape(plain(name))}</th>' for name in columns
    )
    first = "td" if columns else 'th scope="row"'
    body = "".join(f"<tr>{_cells(row, first)}</tr>" for row in rows)
    caption = f'<caption style="{_TITLE}">{escape(plain(title))}</caption>'
    heading = f"<thead><tr>{head}</tr></thead>" if columns else ""
    return f"<table>{caption}{heading}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object], first: str) -> str:
    tags = [first, *["td"] * (len(row) - 1)]
    pairs = zip(tags, row, strict=True)
    return "".join(
        f'<{tag} style="{_CELL}">{escape(plain_lines(str(cell)))}</{tag.partition(" ")[0]}>'
        for tag, cell in pairs
    )
