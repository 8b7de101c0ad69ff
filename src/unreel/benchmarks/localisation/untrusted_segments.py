"""Parsers of segments in untrusted files, which are pairs of seconds."""

from collections.abc import Sequence
from typing import Final

from unreel.benchmarks import cells
from unreel.benchmarks.entry import DeclaredFacts, Entry
from unreel.benchmarks.table_entries import UNKNOWN_CREATOR
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import Trace
from unreel.protocols.locate.json_parser import MAX_SECONDS, MAX_SEGMENTS

_PAIR: Final = 2


def parse_segment_seconds(start: object, end: object) -> TimeSpan:
    """Return the time span between two untrusted times in seconds.

    Raises:
        InvalidValueError: A time is no finite number or too large for a clip, or the end is not after
            the start.
    """
    ends = [cells.parse_exact_number(time, "time of a segment") for time in (start, end)]
    if max(ends) > MAX_SECONDS:
        cells.raise_invalid_cell(
            "time of a segment", end, f"Write seconds, at most {MAX_SECONDS:,}"
        )
    return TimeSpan(*map(convert_to_microseconds, ends))


def parse_segment_list(value: object, what: str) -> tuple[TimeSpan, ...]:
    """Return the time spans of an untrusted list of pairs `[start, end]` in seconds.

    Raises:
        InvalidValueError: `value` is no such list, or has too many segments.
    """
    if not isinstance(value, list):
        cells.raise_invalid_cell(what, value, "Write a list of [start, end] in seconds")
    require_few_segments(value)
    for pair in value:
        if not isinstance(pair, list) or len(pair) != _PAIR:
            cells.raise_invalid_cell(what, pair, "Write [start, end] in seconds")
    return tuple(parse_segment_seconds(*pair) for pair in value)


def require_few_segments(segments: Sequence[object]) -> None:
    """Raise `InvalidValueError` if one clip has more than `MAX_SEGMENTS` segments."""
    if len(segments) > MAX_SEGMENTS:
        msg = f"{len(segments)} segments in one clip, at most {MAX_SEGMENTS} are read. Keep those with the highest confidence"
        raise InvalidValueError(msg)


def build_segment_entry(
    location: str,
    spans: Sequence[TimeSpan],
    *,
    duration_us: int | None,
    split: str = "",
    group: str = "",
    setting: str = "",
) -> Entry:
    """Return the entry of a clip whose generated segments are `spans`; without one it is real."""
    return Entry(
        name=location,
        location=location,
        origin=Generated(UNKNOWN_CREATOR, setting) if spans else Real(),
        split=split,
        group=group,
        traces=tuple(Trace(span=span) for span in spans),
        facts=DeclaredFacts(duration_us=duration_us),
    )
