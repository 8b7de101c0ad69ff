"""Rich console for coloured output, and the layout of tables on it; loaded only if needed."""

import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TextIO, cast

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from unreel.cli.safe_streams import OUTPUT, get_raw_stream
from unreel.core.safe_text import sanitise_lines

_ANY_WIDTH = 10_000


def build_terminal_table(
    heads: Sequence[str], lines: Sequence[Sequence[str]], *, title: str, console: Console
) -> RenderableType:
    """Build a table with cells wrapped at spaces; if words would be cut, one block of lines per row."""
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
    """Format a row as lines: the first cell as heading, then each non-empty cell after its column's name."""
    first, *others = cells
    lines = [f"  {name}: {cell}" for name, cell in zip(heads[1:], others, strict=True) if cell]
    return Text("\n").join([Text(first, style="bold"), *map(Text, lines), Text("")])


_PADDING = re.compile(r" +\n")


class _SanitisingConsole(Console):
    """Console that writes its own control sequences and removes those in the printed text."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        OUTPUT.note_output()
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(sanitise_lines(segment.text), segment.style)


class _UnpaddedStream:
    """Text stream for pipes that removes blanks at the end of lines."""

    def __init__(self, below: TextIO) -> None:
        self._below = below
        self.encoding = below.encoding

    def write(self, text: str) -> int:
        return self._below.write(_PADDING.sub("\n", text))

    def flush(self) -> None:
        self._below.flush()


def open_console(*, stderr: bool = False, pipe_width: int | None = None) -> Console:
    """Open a rich console; without a terminal it has `pipe_width` columns, no colours and no padding."""
    file = get_raw_stream(sys.stderr if stderr else sys.stdout)
    console = _SanitisingConsole(file=file, highlight=False)
    if console.is_terminal:
        return console
    unpadded = cast("IO[str]", _UnpaddedStream(file))
    return _SanitisingConsole(file=unpadded, highlight=False, width=pipe_width)
