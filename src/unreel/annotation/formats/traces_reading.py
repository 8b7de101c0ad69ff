"""`metadata.jsonl` of a benchmark read as marked videos, so that other tools can show its traces."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import FailFast, TypeAdapter, ValidationError

from unreel.annotation.campaign import ClipCopy
from unreel.annotation.formats.document import (
    MOST_FRAMES,
    ForeignAnswer,
    ForeignTrack,
    ForeignVideo,
    FormatDefaults,
    Found,
    FrameSpan,
    KeyFrameBox,
    track_of,
)
from unreel.annotation.formats.items import read_items
from unreel.annotation.formats.shapes import MOST_PIXELS, mapping, rate_of, text, whole
from unreel.annotation.formats.traces import EXPLANATION
from unreel.core.errors import InvalidValueError
from unreel.core.identity import digest_id
from unreel.core.trace import Category, Trace

CATEGORY: Final = "category"
LABEL: Final = "label"
_TRACES: Final = TypeAdapter(Annotated[tuple[Trace, ...], FailFast()])


def read_traces(path: Path, given: FormatDefaults) -> Iterator[Found]:
    """The rows of a `metadata.jsonl` as videos with tracks."""
    return read_items(
        path, lambda where, row: iter([_video(where, mapping(row, "the row"), given)])
    )


def _video(where: str, row: Mapping[str, Any], given: FormatDefaults) -> ForeignVideo:
    try:
        traces = _TRACES.validate_python(row.get("traces") or (), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]["msg"]
        msg = f"{first}. Write a row as a benchmark has it"
        raise InvalidValueError(msg) from error
    name = text(row.get("name")) or text(row.get("file_name")) or where
    n_frames = _told(row, "n_frames") or given.n_frames
    width, height = _told(row, "width"), _told(row, "height")
    said = [ForeignAnswer(LABEL, (text(row.get("label")),))] if text(row.get("label")) else []
    video = ForeignVideo(
        name=name,
        origin=text(row.get("source")),
        rate=rate_of(row.get("frame_rate")) or given.rate,
        n_frames=n_frames,
        width=width if width and height else given.width,
        height=height if width and height else given.height,
        said=tuple(said),
    )
    tracks = tuple(_track(str(place), trace, video) for place, trace in enumerate(traces))
    return replace(video, tracks=tracks)


def _told(row: Mapping[str, Any], key: str) -> int | None:
    most = MOST_FRAMES if key == "n_frames" else MOST_PIXELS
    return None if row.get(key) is None else whole(row[key], key, most=most) or None


def _track(id_: str, trace: Trace, video: ForeignVideo) -> ForeignTrack:
    clock = _clock(trace, video)
    stretch = FrameSpan(clock.frame_at(trace.span.start_us), clock.frame_at(trace.span.end_us - 1))
    # Boxes of finer steps than frames fall on one frame: the last one stands.
    marks = {
        frame: KeyFrameBox(frame, at.box)
        for at in trace.track
        for frame in [clock.frame_at(at.at_us)]
    }
    named = sorted(trace.categories)
    label = named[0].value if len(named) == 1 else Category.OTHER.value
    said = [ForeignAnswer(CATEGORY, tuple(each.value for each in named))] if len(named) > 1 else []
    if trace.explanation:
        said.append(ForeignAnswer(EXPLANATION, (trace.explanation,), written=True))
    return track_of(id_, label, marks.values(), [stretch], said=said, n_frames=video.n_frames)


def _clock(trace: Trace, video: ForeignVideo) -> ClipCopy:
    rate = video.require_rate()
    return ClipCopy(
        clip=digest_id("foreign", video.name),
        location=video.name,
        rate=rate,
        n_frames=video.n_frames or min(int(trace.span.end_us * rate / 1_000_000) + 2, MOST_FRAMES),
        width=video.width or 1,
        height=video.height or 1,
    )
