"""Reader of LAV-DF and AV-Deepfake1M files: a JSON list with `file` and the fake segments of each clip.

LAV-DF calls the segments `fake_periods` and has a `duration`; AV-Deepfake1M calls them `fake_segments` and
has `video_frames` at 25 frames per second. Both contain segments of sound and of picture.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from unreel.benchmarks import cells
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.localisation.json_stream import stream_json_items
from unreel.benchmarks.localisation.untrusted_segments import (
    build_segment_entry,
    parse_segment_list,
)
from unreel.core.errors import InvalidValueError
from unreel.core.span import convert_to_microseconds

SEGMENTS: Final = ("fake_segments", "fake_periods")
READ: Final = {
    "file": "location",
    **dict.fromkeys(SEGMENTS, "traces"),
    "duration": "duration_s",
    "video_frames": "n_frames",
    "split": "split",
    "original": "group",
    "modify_type": "setting",
}
"""Columns of the file, and the field that each is read as."""
_RATE: Final = 25


def is_lav_df_row(row: object) -> bool:
    """Return whether a JSON value is a row of LAV-DF or AV-Deepfake1M."""
    return isinstance(row, Mapping) and "file" in row and any(name in row for name in SEGMENTS)


def read_lav_df_entries(path: Path) -> Iterator[Row]:
    """Yield one benchmark entry per clip of a metadata file of LAV-DF or AV-Deepfake1M, in order."""
    for number, (_, row) in enumerate(stream_json_items(path), start=1):
        try:
            yield _parse_lav_df_row(row)
        except InvalidValueError as error:
            yield Rejected(f"row {number}", str(error))


def _parse_lav_df_row(row: Any) -> Entry:
    if not is_lav_df_row(row):
        cells.raise_invalid_cell("a row", row, f"Write file and {' or '.join(SEGMENTS)}")
    location = cells.parse_clip_location(row["file"], "file")
    name = next(name for name in SEGMENTS if name in row)
    original = cells.parse_text_cell(row.get("original"), "original")
    return build_segment_entry(
        location,
        parse_segment_list(row[name], name),
        duration_us=_parse_duration_us(row),
        split=cells.parse_text_cell(row.get("split"), "split"),
        group=original or location,
        setting=cells.parse_text_cell(row.get("modify_type"), "modify_type"),
    )


def _parse_duration_us(row: Mapping[str, Any]) -> int | None:
    if row.get("duration") is not None:
        return convert_to_microseconds(cells.parse_positive_number(row["duration"], "duration"))
    if row.get("video_frames") is not None:
        frames = cells.parse_positive_number(row["video_frames"], "video_frames")
        return convert_to_microseconds(Fraction(frames) / _RATE)
    return None
