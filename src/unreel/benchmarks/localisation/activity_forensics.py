"""Reader of ActivityForensics files: lines `vid duration s=e+s=e` in seconds; a clean clip has no third field."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from unreel.benchmarks import cells
from unreel.benchmarks.cells import ROW_BYTES
from unreel.benchmarks.entry import Rejected, Row
from unreel.benchmarks.folder_layout import VIDEO_SUFFIXES
from unreel.benchmarks.localisation.untrusted_segments import (
    build_segment_entry,
    parse_segment_seconds,
    require_few_segments,
)
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.span import TimeSpan, convert_to_microseconds

_FORM: Final = "Write `vid duration s=e+s=e`"
_FIELDS: Final = (2, 3)


class ActivityForensicsLine(NamedTuple):
    """One line of an ActivityForensics file: a clip, its duration and its generated segments."""

    name: str
    """Path of the clip; `.mp4` is added to a name without the suffix of a video."""
    duration_us: int
    spans: tuple[TimeSpan, ...]


def read_activity_forensics_entries(path: Path) -> Iterator[Row]:
    """Yield one benchmark entry per line of the ActivityForensics file `path`."""
    for line in read_activity_forensics_lines(path):
        if isinstance(line, Rejected):
            yield line
            continue
        yield build_segment_entry(line.name, line.spans, duration_us=line.duration_us)


def read_activity_forensics_lines(path: Path) -> Iterator[ActivityForensicsLine | Rejected]:
    """Yield the parsed lines of the ActivityForensics file `path`.

    A line that is invalid or too long is a `Rejected`.

    Raises:
        UnreadableSourceError: The file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            number = 0
            while text := file.readline(ROW_BYTES):
                number += 1
                is_cut = not text.endswith("\n") and len(text) == ROW_BYTES
                while is_cut and (remainder := file.readline(ROW_BYTES)):
                    if remainder.endswith("\n"):
                        break
                if is_cut:
                    reason = f"a line of more than {ROW_BYTES} characters. {_FORM}"
                    yield Rejected(f"row {number}", reason)
                elif text.strip():
                    yield _parse_line_or_reject(text, number)
    except OSError as error:
        remedy = "Check the path and that you may read it"
        raise UnreadableSourceError(str(path), error.strerror or "unreadable", remedy) from error


def _parse_line_or_reject(text: str, number: int) -> ActivityForensicsLine | Rejected:
    try:
        return parse_activity_forensics_line(text)
    except InvalidValueError as error:
        return Rejected(f"row {number}", str(error))


def parse_activity_forensics_line(text: str) -> ActivityForensicsLine:
    """Parse one line of an ActivityForensics file.

    Raises:
        InvalidValueError: The line is not `vid duration s=e+s=e`, or a segment ends before it starts.
    """
    fields = text.split()
    if len(fields) not in _FIELDS:
        cells.raise_invalid_cell("a line", text.strip(), _FORM)
    name = cells.parse_clip_location(fields[0], "vid")
    if not name.lower().endswith(VIDEO_SUFFIXES):
        name += ".mp4"
    duration_us = convert_to_microseconds(cells.parse_positive_number(fields[1], "duration"))
    pairs = fields[2].split("+") if len(fields) == max(_FIELDS) else []
    require_few_segments(pairs)
    return ActivityForensicsLine(name, duration_us, tuple(map(_parse_segment_text, pairs)))


def _parse_segment_text(text: str) -> TimeSpan:
    start, sign, end = text.partition("=")
    if not sign:
        cells.raise_invalid_cell("a segment", text, "Write start=end in seconds")
    return parse_segment_seconds(start, end)
