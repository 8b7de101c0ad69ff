"""Readers of files with fake segments of clips, which are pairs of seconds.

LAV-DF and AV-Deepfake1M are a JSON list with `file` and the segments of each clip, of sound and of
picture. LAV-DF calls them `fake_periods` and has a `duration`; AV-Deepfake1M calls them
`fake_segments` and has `video_frames` at 25 frames per second.

ActivityForensics has lines `vid duration s=e+s=e` in seconds; a clean clip has no third field.

ViF-CoT is a JSON list of conversations about videos, whose last answer holds the segments in tags.
Boxes are read only if the row declares `width` and `height`: then they are in pixels. Otherwise
their unit is unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

from unreel.benchmarks import cells
from unreel.benchmarks.cells import ROW_BYTES
from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected, Row
from unreel.benchmarks.folder_layout import VIDEO_SUFFIXES
from unreel.benchmarks.layout import COLUMN_ROWS, Columns, LayoutReader, TableColumns
from unreel.benchmarks.localisation.json_stream import stream_json_items
from unreel.benchmarks.table_entries import UNKNOWN_CREATOR
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import Trace
from unreel.core.verdict import Unparsed
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.parser import MAX_SECONDS, MAX_SEGMENTS, parse_tagged_segments

_PAIR = 2
_MAX_DETECTION_ROWS = 5


def parse_segment_seconds(start: object, end: object) -> TimeSpan:
    """Return the time span between two untrusted times in seconds.

    Raise `InvalidValueError` if a time is not a finite number or too large for a clip, or the end is
    not after the start.
    """
    ends = [cells.parse_exact_number(time, "time of a segment") for time in (start, end)]
    if max(ends) > MAX_SECONDS:
        cells.raise_invalid_cell(
            "time of a segment", end, f"Write seconds, at most {MAX_SECONDS:,}"
        )
    return TimeSpan(*map(convert_to_microseconds, ends))


def parse_segment_list(value: object, what: str) -> tuple[TimeSpan, ...]:
    """Return the time spans of an untrusted list of pairs `[start, end]` in seconds.

    Raise `InvalidValueError` if `value` is not such a list, or has too many segments.
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
        raise InvalidValueError(
            f"{len(segments)} segments in one clip, at most {MAX_SEGMENTS} are read. Keep those with the highest confidence"
        )


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


SEGMENTS = ("fake_segments", "fake_periods")
READ_LAV_DF = {
    "file": "location",
    **dict.fromkeys(SEGMENTS, "traces"),
    "duration": "duration_s",
    "video_frames": "n_frames",
    "split": "split",
    "original": "group",
    "modify_type": "setting",
}
"""Columns of the file, and the field that each is read as."""
_RATE = 25


def is_lav_df_row(row: object) -> bool:
    """Return whether a JSON value is a row of LAV-DF or AV-Deepfake1M."""
    return isinstance(row, Mapping) and "file" in row and any(name in row for name in SEGMENTS)


def read_lav_df_entries(path: Path) -> Iterator[Row]:
    """Yield one benchmark entry per clip of a metadata file of LAV-DF or AV-Deepfake1M, in order."""
    for number, (_, row) in enumerate(stream_json_items(path), start=1):
        try:
            if not is_lav_df_row(row):
                cells.raise_invalid_cell("a row", row, f"Write file and {' or '.join(SEGMENTS)}")
            location = cells.parse_clip_location(row["file"], "file")
            name = next(name for name in SEGMENTS if name in row)
            original = cells.parse_text_cell(row.get("original"), "original")
            duration_s = None
            if row.get("duration") is not None:
                duration_s = cells.parse_positive_number(row["duration"], "duration")
            elif row.get("video_frames") is not None:
                n_frames = cells.parse_positive_number(row["video_frames"], "video_frames")
                duration_s = Fraction(n_frames) / _RATE
            yield build_segment_entry(
                location,
                parse_segment_list(row[name], name),
                duration_us=None if duration_s is None else convert_to_microseconds(duration_s),
                split=cells.parse_text_cell(row.get("split"), "split"),
                group=original or location,
                setting=cells.parse_text_cell(row.get("modify_type"), "modify_type"),
            )
        except InvalidValueError as error:
            yield Rejected(f"row {number}", str(error))


_FORM = "Write `vid duration s=e+s=e`"
_FIELDS = (2, 3)


ActivityForensicsLine = tuple[str, int, tuple[TimeSpan, ...]]
"""Path of a clip, its duration in microseconds, and its generated segments."""


def read_activity_forensics_entries(path: Path) -> Iterator[Row]:
    """Yield one benchmark entry per line of the ActivityForensics file `path`."""
    for line in read_activity_forensics_lines(path):
        if isinstance(line, Rejected):
            yield line
            continue
        name, duration_us, spans = line
        yield build_segment_entry(name, spans, duration_us=duration_us)


def read_activity_forensics_lines(path: Path) -> Iterator[ActivityForensicsLine | Rejected]:
    """Yield the parsed lines of the ActivityForensics file `path`.

    A line that is invalid or too long is a `Rejected`. Raise `UnreadableSourceError` if the file
    cannot be read.
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
                    try:
                        yield parse_activity_forensics_line(text)
                    except InvalidValueError as error:
                        yield Rejected(f"row {number}", str(error))
    except OSError as error:
        raise UnreadableSourceError(
            str(path), error.strerror or "unreadable", "Check the path and that you may read it"
        ) from error


def parse_activity_forensics_line(text: str) -> ActivityForensicsLine:
    """Parse one line of an ActivityForensics file.

    Raise `InvalidValueError` if the line is not `vid duration s=e+s=e`, or a segment ends before it
    starts.
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
    spans = []
    for text_of_pair in pairs:
        start, sign, end = text_of_pair.partition("=")
        if not sign:
            cells.raise_invalid_cell("a segment", text_of_pair, "Write start=end in seconds")
        spans.append(parse_segment_seconds(start, end))
    return name, duration_us, tuple(spans)


READ_VIF_COT = {
    **dict.fromkeys(("videos", "video"), "location"),
    **dict.fromkeys(("messages", "conversations"), "traces"),
    "width": "width",
    "height": "height",
    "duration": "duration_s",
    "split": "split",
}
_UNKNOWN_SPACE = BoxSpace("unit", 1, 1)


def is_vif_cot_row(row: object) -> bool:
    """Return whether a JSON value is a conversation about a video."""
    return (
        isinstance(row, Mapping)
        and ("video" in row or "videos" in row)
        and ("messages" in row or "conversations" in row)
    )


def read_vif_cot_entries(path: Path) -> Iterator[Row]:
    """Yield one benchmark entry per conversation of the ViF-CoT file `path`, in order."""
    for number, (_, row) in enumerate(stream_json_items(path), start=1):
        try:
            yield _parse_vif_cot_row(row)
        except InvalidValueError as error:
            yield Rejected(f"row {number}", str(error))


def parse_vif_cot_conversation(row: Any) -> tuple[str, str]:
    """Return the location of the video and the last answer of a conversation of ViF-CoT.

    Raise `InvalidValueError` if the row is not a conversation about a video, or has no answer.
    """
    if not is_vif_cot_row(row):
        cells.raise_invalid_cell(
            "a row", row, "Write video or videos, and messages or conversations"
        )
    videos = row.get("videos", row.get("video"))
    video = videos[0] if isinstance(videos, list) and videos else videos
    turns = row.get("messages", row.get("conversations"))
    if not isinstance(turns, list) or not turns or not isinstance(turns[-1], Mapping):
        cells.raise_invalid_cell(
            "messages", turns, "Write a list of turns that ends with the answer"
        )
    text = turns[-1].get("content", turns[-1].get("value"))
    if not isinstance(text, str):
        cells.raise_invalid_cell("the answer", text, "Write a text")
    return cells.parse_clip_location(video, "video"), text


def _parse_vif_cot_row(row: Any) -> Entry:
    location, text = parse_vif_cot_conversation(row)
    width, height, duration = (row.get(name) for name in ("width", "height", "duration"))
    space = None
    if width is not None and height is not None:
        sizes = (cells.parse_count_cell(size, "frame size") for size in (width, height))
        space = BoxSpace("pixel", *sizes)
    segments = parse_tagged_segments(text, "lenient", space or _UNKNOWN_SPACE)
    if isinstance(segments, Unparsed):
        raise InvalidValueError(
            f"the segments are {segments.reason.value}: {cells.format_untrusted_cell(segments.found)}. Check the tags"
        )
    traces = tuple(segment.trace for segment in segments)
    if space is None:
        traces = tuple(replace(trace, track=()) for trace in traces)
    return Entry(
        name=location,
        location=location,
        origin=Generated(UNKNOWN_CREATOR) if traces else Real(),
        split=cells.parse_text_cell(row.get("split"), "split"),
        traces=traces,
        facts=DeclaredFacts(
            width=space.width if space else None,
            height=space.height if space else None,
            duration_us=None
            if duration is None
            else convert_to_microseconds(cells.parse_positive_number(duration, "duration")),
        ),
    )


def _read_first_items(path: Path) -> list[object]:
    """Return the first items of a JSON file; none if it is no readable list."""
    if path.is_dir() or path.suffix.lower() != ".json":
        return []
    try:
        return [row for _, row in islice(stream_json_items(path), _MAX_DETECTION_ROWS)]
    except UnreadableSourceError:
        return []


def _is_activity_forensics_file(path: Path, _mapping: Columns | None) -> bool:
    if path.is_dir() or path.suffix.lower() != ".txt":
        return False
    try:
        lines = list(islice(read_activity_forensics_lines(path), _MAX_DETECTION_ROWS))
    except UnreadableSourceError:
        return False
    return any(not isinstance(line, Rejected) for line in lines)


def _list_json_columns(path: Path, known: Mapping[str, str]) -> Iterator[TableColumns]:
    rows = [row for _, row in islice(stream_json_items(path), COLUMN_ROWS)]
    named = (row for row in rows if isinstance(row, Mapping))
    yield path, dict.fromkeys(str(key) for row in named for key in row), known


LAV_DF_LAYOUT = LayoutReader(
    matches=lambda path, _mapping: any(map(is_lav_df_row, _read_first_items(path))),
    read=lambda path, _mapping, _outside: read_lav_df_entries(path),
    list_columns=lambda path, _mapping: _list_json_columns(path, READ_LAV_DF),
)
ACTIVITY_FORENSICS_LAYOUT = LayoutReader(
    matches=_is_activity_forensics_file,
    read=lambda path, _mapping, _outside: read_activity_forensics_entries(path),
)
VIF_COT_LAYOUT = LayoutReader(
    matches=lambda path, _mapping: any(map(is_vif_cot_row, _read_first_items(path))),
    read=lambda path, _mapping, _outside: read_vif_cot_entries(path),
    list_columns=lambda path, _mapping: _list_json_columns(path, READ_VIF_COT),
)
