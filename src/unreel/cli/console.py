"""Console for tables and colours, loaded only if needed."""

import re
import sys
from collections.abc import Iterable
from typing import IO, Final, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from unreel.cli.safe_streams import OUTPUT, get_raw_stream
from unreel.core.safe_text import sanitise_lines

_PADDING: Final = re.compile(r" +\n")


class _PlainConsole(Console):
    """Adds its own colours and moves, and passes on none that a text brings."""

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
    """A stream for pipes: no line ends with blanks that only a terminal's table needs."""

    def __init__(self, below: TextIO) -> None:
        self._below = below
        self.encoding = below.encoding

    def write(self, text: str) -> int:
        return self._below.write(_PADDING.sub("\n", text))

    def flush(self) -> None:
        self._below.flush()


def open_console(*, stderr: bool = False, pipe_width: int | None = None) -> Console:
    """Open the console for messages; without a terminal it has no colours, no padding and the given width."""
    file = get_raw_stream(sys.stderr if stderr else sys.stdout)
    console = _PlainConsole(file=file, highlight=False)
    if console.is_terminal:
        return console
    unpadded = cast("IO[str]", _UnpaddedStream(file))
    return _PlainConsole(file=unpadded, highlight=False, width=pipe_width)
