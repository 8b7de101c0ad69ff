"""The streams of the program, guarded: nothing that is written to them steers a terminal."""

import io
import sys
import time
from typing import Final, TextIO

from unreel.core.safe_text import sanitise_lines


def guard_streams() -> None:
    """Make plain what others write to stdout and stderr: warnings, tracebacks, click's complaints.

    An encoding that lacks a letter gets its number instead of ending the program.
    """
    sys.stdout, sys.stderr = _wrap_stream(sys.stdout), _wrap_stream(sys.stderr)


class OutputClock:
    """Time of the last output of this program."""

    def __init__(self) -> None:
        self.last_s = time.monotonic()

    def note_output(self) -> None:
        """Record the current time as the time of the last output."""
        self.last_s = time.monotonic()


OUTPUT: Final = OutputClock()


def get_raw_stream(stream: TextIO) -> TextIO:
    """Return the stream below a guarded one, for callers that sanitise text themselves and add colours."""
    return stream.below if isinstance(stream, _PlainStream) else stream


def is_fresh(stream: TextIO) -> bool:
    """Return whether nothing was written to a guarded stream yet."""
    return not isinstance(stream, _PlainStream) or stream.is_fresh


class _PlainStream(io.TextIOWrapper):
    def __init__(self, below: io.TextIOWrapper) -> None:
        super().__init__(
            below.buffer,
            encoding=below.encoding,
            errors=below.errors,
            line_buffering=below.line_buffering,
            write_through=True,
        )
        self.below = below
        self.is_fresh = True
        """Whether nothing was written to it yet."""

    def write(self, text: str, /) -> int:
        self.is_fresh = False
        OUTPUT.note_output()
        return super().write(sanitise_lines(text))


def _wrap_stream(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="backslashreplace")
    return _PlainStream(stream)
