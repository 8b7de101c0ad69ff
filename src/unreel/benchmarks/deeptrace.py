"""Reader of the distributed files of DeepTraceReward: `all_data.json`, with one row per annotation.

Several rows of one video become the traces of one entry, in row order. A box is in pixels of
the original frame and is clipped to the frame. A trace starts at first frame / frame rate and
lasts until the end of its last frame. The schema comes from third-party readers, not from the
authors.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from unreel.benchmarks import cells
from unreel.benchmarks.cells import DOCUMENT_BYTES
from unreel.benchmarks.columns import FieldColumnMapping
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.folder_layout import find_file_inside_folder
from unreel.benchmarks.layout import COLUMN_ROWS, Columns, LayoutReader, TableColumns
from unreel.benchmarks.table_entries import get_row_name, parse_entry
from unreel.core.box import Box
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json, read_limited_bytes
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Category, Trace

TABLE = "all_data.json"
FIELDS = {
    "location": "video_path",
    "name": "video_id",
    "label": "video_type",
    "creator": "video_source",
    "source": "video_source",
    "split": "split",
    "prompt": "video_prompt",
    "width": "video_width",
    "height": "video_height",
    "rate": "video_frame_rate",
    "n_frames": "video_frame_count",
    "duration_s": "video_duration",
}
READ = {
    **{column: field for field, column in reversed(FIELDS.items())},
    **dict.fromkeys(
        (
            "faketrace_first_frame",
            "faketrace_last_frame",
            "faketrace_bbox",
            "faketrace_check_applies",
            "faketrace_explanations",
        ),
        "traces",
    ),
}
"""Columns of the file, and the field that each is read as."""
COLUMNS = FieldColumnMapping(
    {field: (column,) for field, column in FIELDS.items()}, frozenset(FIELDS.values())
)
SPLITS = frozenset({"train", "val", "test"})

# Annotators chose free tags; the first word found in a tag decides. Words of the paper's `other`
# come first, because "liquid motion" is no trajectory.
TAG_WORDS: tuple[tuple[str, Category], ...] = (
    ("light", Category.OTHER),
    ("liquid", Category.OTHER),
    ("shadow", Category.OTHER),
    ("blur", Category.SUDDEN_BLURRING),
    ("background", Category.BACKGROUND_DISTORTION),
    ("merg", Category.OBJECT_MERGING),
    ("overlap", Category.OBJECT_MERGING),
    ("split", Category.OBJECT_SPLITTING),
    ("disappear", Category.OBJECT_DISAPPEARANCE),
    ("redundant", Category.REDUNDANT_OBJECT),
    ("appear", Category.REDUNDANT_OBJECT),
    ("extra", Category.REDUNDANT_OBJECT),
    ("unexpected mov", Category.UNEXPECTED_MOVE),
    ("still", Category.UNEXPECTED_MOVE),
    ("trajector", Category.OBJECT_TRAJECTORY),
    ("motion", Category.OBJECT_TRAJECTORY),
    ("path", Category.OBJECT_TRAJECTORY),
    ("distort", Category.OBJECT_DISTORTION),
    ("deform", Category.OBJECT_DISTORTION),
    ("shape", Category.OBJECT_DISTORTION),
)


def read_deeptrace_benchmark(root: Path) -> Iterator[Row]:
    """Yield the damaged rows of `all_data.json` first, then one entry per video, in order."""
    videos: dict[str, Entry] = {}
    traces: dict[str, list[Trace]] = {}
    locations: dict[str, str] = {}
    for number, row in enumerate(load_deeptrace_rows(root), start=1):
        try:
            entry = parse_deeptrace_row(row)
            _require_consistent_video(entry, videos.get(entry.location), locations.get(entry.name))
        except InvalidValueError as error:
            name = f"row {number}"
            if isinstance(row, Mapping):
                name = get_row_name(row, COLUMNS, number=number)
            yield Rejected(name, str(error))
            continue
        videos.setdefault(entry.location, entry)
        traces.setdefault(entry.location, []).extend(entry.traces)
        locations[entry.name] = entry.location
    for location, entry in videos.items():
        yield replace(entry, traces=tuple(traces[location]))


def load_deeptrace_rows(root: Path) -> list[object]:
    """Return the rows of `all_data.json`; raise `UnreadableSourceError` if the file is not a readable list."""
    path = root / TABLE
    try:
        where = "Name the folder that contains it"
        rows = parse_json(read_limited_bytes(path, most=DOCUMENT_BYTES, remedy=where))
    except InvalidValueError as error:
        raise UnreadableSourceError(str(path), str(error), "Fetch it again") from error
    if not isinstance(rows, list):
        raise UnreadableSourceError(str(path), "not a list of rows", "Fetch it again")
    return rows


def parse_deeptrace_row(row: object) -> Entry:
    """Parse a row into an entry with a trace, none if real; raise `InvalidValueError` if invalid."""
    if not isinstance(row, Mapping):
        cells.raise_invalid_cell("a row", row, "Write an object")
    entry = parse_entry(row, COLUMNS)
    if cells.is_blank_cell(row.get("video_id")):
        cells.raise_invalid_cell("video_id", row.get("video_id"), "Give every row its video's id")
    if entry.split not in SPLITS:
        cells.raise_invalid_cell("split", entry.split, "Write train, val or test")
    if entry.label is Label.REAL:
        return entry
    if (rate := entry.facts.rate) is None:
        remedy = "A trace needs the frame rate of its video"
        cells.raise_invalid_cell("video_frame_rate", None, remedy)
    first = cells.parse_count_cell(row.get("faketrace_first_frame"), "faketrace_first_frame")
    last = cells.parse_count_cell(row.get("faketrace_last_frame"), "faketrace_last_frame")
    span = TimeSpan(
        convert_to_microseconds(first / rate), convert_to_microseconds((last + 1) / rate)
    )
    box = _parse_pixel_box(row.get("faketrace_bbox"), entry)
    column = "faketrace_explanations"
    trace = Trace(
        span=span,
        track=() if box is None else (BoxAt(span.start_us, box),),
        categories=parse_trace_categories(row.get("faketrace_check_applies")),
        explanation=cells.parse_text_cell(row.get(column), column),
    )
    return replace(entry, traces=(trace,))


def parse_trace_categories(tags: object) -> frozenset[Category]:
    """Return the trace categories of raw `tags`; a tag that matches none of the nine is `other`."""
    if tags is None or (isinstance(tags, float) and math.isnan(tags)):
        return frozenset()
    listed = [tags] if isinstance(tags, str) else tags
    if not isinstance(listed, list):
        cells.raise_invalid_cell("faketrace_check_applies", tags, "Write a list of tags")
    names = [cells.parse_text_cell(tag, "faketrace_check_applies").lower() for tag in listed]
    return frozenset(
        next((category for part, category in TAG_WORDS if part in word), Category.OTHER)
        for word in names
        if word
    )


def _parse_pixel_box(value: object, entry: Entry) -> Box | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        cells.raise_invalid_cell("faketrace_bbox", value, "Write left, top, width and height")
    frame_width, frame_height = entry.facts.width, entry.facts.height
    if not frame_width or not frame_height:
        cells.raise_invalid_cell(
            "frame size", (frame_width, frame_height), "A box needs the size of its frame"
        )
    left, top, width, height = (
        cells.parse_exact_number(value.get(key), f"faketrace_bbox {key}")
        for key in ("left", "top", "width", "height")
    )
    edges = (
        left / frame_width,
        top / frame_height,
        (left + width) / frame_width,
        (top + height) / frame_height,
    )
    return Box(*(min(max(float(edge), 0.0), 1.0) for edge in edges))


def _require_consistent_video(
    entry: Entry, earlier_entry: Entry | None, location: str | None
) -> None:
    if location not in {None, entry.location}:
        cells.raise_invalid_cell("video_id", entry.name, f"It already names {location}")
    if earlier_entry is None:
        return
    before, now = ((each.name, each.origin, each.split) for each in (earlier_entry, entry))
    if before != now:
        raise InvalidValueError(
            "an earlier row of the video has another id, source, type or split. Correct one of them"
        )
    if entry.label is Label.REAL:
        raise InvalidValueError("a real video has one row. Drop the second")


def _list_columns(path: Path, _mapping: Columns | None) -> Iterator[TableColumns]:
    root = path if path.is_dir() else path.parent
    rows = (row for row in load_deeptrace_rows(root) if isinstance(row, Mapping))
    yield (
        root / TABLE,
        dict.fromkeys(str(key) for row in islice(rows, COLUMN_ROWS) for key in row),
        READ,
    )


LAYOUT = LayoutReader(
    matches=lambda path, _mapping: (
        not path.is_dir() or find_file_inside_folder(path, TABLE) is not None
    ),
    read=lambda path, _mapping, _outside: read_deeptrace_benchmark(
        path if path.is_dir() else path.parent
    ),
    list_columns=_list_columns,
    tables=(TABLE,),
)
