"""Progress of a long Python call: a bar on a terminal, and nothing elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unreel.core.plain import plain
from unreel.engine.progress_line import ProgressLine

_BAR: Final = 24


@contextmanager
def show_progress(console: Console | None = None) -> Iterator[ProgressLine]:
    """Yield a progress line that is shown while the block runs, if `console` is a terminal.

    Args:
        console: stderr by default.
    """
    line = ProgressLine()
    shown = console or Console(stderr=True, highlight=False)
    if not shown.is_terminal:
        yield line
        return
    with Live(console=shown, transient=True, get_renderable=lambda: _render(line)):
        yield line


def _render(line: ProgressLine) -> RenderableType:
    text = Text(plain(line.text()), no_wrap=True, overflow="ellipsis")
    if line.share is None:
        return text
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=1.0, completed=line.share, width=_BAR), text)
    return row
