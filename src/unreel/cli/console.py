"""The console for tables and colours: loaded when something is shown with them."""

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from unreel.cli.streams import styled
from unreel.core.plain import plain_lines


class _PlainConsole(Console):
    """Adds its own colours and moves, and passes on none that a text brings."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(plain_lines(segment.text), segment.style)


def open_console(*, stderr: bool = False, pipe_width: int | None = None) -> Console:
    """Where people read; off a terminal it has no colours and the width given."""
    file = styled(sys.stderr if stderr else sys.stdout)
    console = _PlainConsole(file=file, highlight=False)
    if console.is_terminal:
        return console
    return _PlainConsole(file=file, highlight=False, width=pipe_width)
