"""Guarded stdout and stderr, which remove control sequences from all written text."""

import io
import sys
import time
from typing import TextIO

from unreel.core.safe_text import sanitise_lines


def sanitise_std_streams() -> None:
    """Remove control sequences from stdout and stderr; unencodable characters become backslash escapes."""
    sys.stdout, sys.stderr = _sanitise_stream(sys.stdout), _sanitise_stream(sys.stderr)


class LastOutputTime:
    """Time at which this program last wrote to stdout or stderr."""

    def __init__(self) -> None:
        self.last_s = time.monotonic()

    def note_output(self) -> None:
        """Record the current time as the time of the last output."""
        self.last_s = time.monotonic()


OUTPUT = LastOutputTime()


def get_raw_stream(stream: TextIO) -> TextIO:
    """Return the stream below a sanitised one, for colours; callers must sanitise their text themselves."""
    return stream.below if isinstance(stream, _SanitisedStream) else stream


def is_stream_unwritten(stream: TextIO) -> bool:
    """Return whether nothing was written to a sanitised stream yet; true for other streams."""
    return not isinstance(stream, _SanitisedStream) or stream.is_fresh


class _SanitisedStream(io.TextIOWrapper):
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
        """Whether nothing has been written to the stream yet."""

    def write(self, text: str, /) -> int:
        self.is_fresh = False
        OUTPUT.note_output()
        return super().write(sanitise_lines(text))


def _sanitise_stream(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="backslashreplace")
    return _SanitisedStream(stream)
