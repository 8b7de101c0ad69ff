"""Progress bar of `evaluate` on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from unreel.core.safe_text import sanitise_line
from unreel.engine.progress import ProgressLine

_BAR = 24


@contextmanager
def show_progress(console: Console | None = None) -> Iterator[ProgressLine]:
    """Show a progress line while the block runs, if `console` is a terminal; yield the line.

    Args:
        console: Console for the line; stderr by default.
    """
    line = ProgressLine()
    target = console or Console(stderr=True, highlight=False)
    if not target.is_terminal:
        yield line
        return
    with Live(console=target, transient=True, get_renderable=lambda: _render_progress_line(line)):
        yield line


def _render_progress_line(line: ProgressLine) -> RenderableType:
    text = Text(sanitise_line(line.text()), no_wrap=True, overflow="ellipsis")
    if line.share is None:
        return text
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=1.0, completed=line.share, width=_BAR), text)
    return row
