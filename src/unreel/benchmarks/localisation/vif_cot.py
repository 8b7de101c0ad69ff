"""Reader of ViF-CoT as distributed: a JSON list of conversations about videos.

The last answer of a conversation holds the segments in tags. Boxes are read only if the row
declares `width` and `height`: then they are in pixels. Otherwise their unit is unknown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from unreel.benchmarks import cells
from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected, Row
from unreel.benchmarks.localisation.json_stream import stream_json_items
from unreel.benchmarks.table_entries import UNKNOWN_CREATOR
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError
from unreel.core.span import convert_to_microseconds
from unreel.core.verdict import Unparsed
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.locate.parser import parse_tagged_segments

READ: Final = {
    **dict.fromkeys(("videos", "video"), "location"),
    **dict.fromkeys(("messages", "conversations"), "traces"),
    "width": "width",
    "height": "height",
    "duration": "duration_s",
    "split": "split",
}
_UNKNOWN_SPACE: Final = BoxSpace("unit", 1, 1)


class VideoConversationAnswer(NamedTuple):
    """The last answer of a conversation, and the location of the video that it is about."""

    location: str
    text: str


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


def parse_vif_cot_conversation(row: Any) -> VideoConversationAnswer:
    """Return the video and the last answer of a conversation of ViF-CoT.

    Raises:
        InvalidValueError: The row is no conversation about a video, or has no answer.
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
    return VideoConversationAnswer(cells.parse_clip_location(video, "video"), text)


def _parse_vif_cot_row(row: Any) -> Entry:
    answer = parse_vif_cot_conversation(row)
    width, height, duration = (row.get(name) for name in ("width", "height", "duration"))
    space = None
    if width is not None and height is not None:
        sizes = (cells.parse_count_cell(size, "frame size") for size in (width, height))
        space = BoxSpace("pixel", *sizes)
    segments = parse_tagged_segments(answer.text, "lenient", space or _UNKNOWN_SPACE)
    if isinstance(segments, Unparsed):
        msg = f"its segments are {segments.reason.value}: {cells.format_untrusted_cell(segments.found)}. Check the tags"
        raise InvalidValueError(msg)
    traces = tuple(segment.trace for segment in segments)
    if space is None:
        traces = tuple(replace(trace, track=()) for trace in traces)
    return Entry(
        name=answer.location,
        location=answer.location,
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
