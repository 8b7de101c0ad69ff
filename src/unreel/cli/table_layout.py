"""A table as a terminal shows it: in columns where they fit, else row by row."""

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_ANY_WIDTH: Final = 10_000


def lay_out(
    heads: Sequence[str], lines: Sequence[Sequence[str]], *, title: str, console: Console
) -> RenderableType:
    """Build a table with cells that wrap at spaces; if words would be cut, build a block for each row."""
    head = Text(title) if title else None
    table = Table(title=head, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in heads:
        table.add_column(Text(name), overflow="fold")
    for cells in lines:
        table.add_row(*map(Text, cells))
    roomy = console.options.update(max_width=_ANY_WIDTH)
    if Measurement.get(console, roomy, table).minimum <= console.width:
        return table
    blocks = [_format_row_block(heads, cells) for cells in lines]
    return Group(*([Text(title, style="italic")] if title else []), *blocks)


def _format_row_block(heads: Sequence[str], cells: Sequence[str]) -> Text:
    """Build a block: the first cell as heading, then the other non-empty cells with their column names."""
    first, *others = cells
    told = [f"  {name}: {cell}" for name, cell in zip(heads[1:], others, strict=True) if cell]
    return Text("\n").join([Text(first, style="bold"), *map(Text, told), Text("")])
