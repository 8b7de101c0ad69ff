"""Traces of our own from another tool's tracks: `metadata.jsonl` as a benchmark has it.

A trace has one span, so a track with gaps becomes several traces. Times are those of the frames, exactly;
where a trace's categories cannot be read from the words of the file, its words become the explanation.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
from unreel.annotation.formats.shapes import (
    MOST_PIXELS,
    parse_count,
    parse_rate,
    parse_text,
    require_mapping,
)
from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected
from unreel.benchmarks.records import LABELS, UNKNOWN_CREATOR, to_record
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidValueError
from unreel.core.identity import digest_id
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

FILE: Final = "metadata.jsonl"
MASKS: Final = "masks.jsonl"
"""Where masks lie that traces were drawn from: a trace itself has no place for them."""
EXPLANATION: Final = "explanation"
_CATEGORIES: Final = {category.value: category for category in Category}


def write_traces(videos: Iterable[ForeignVideo], folder: OutputDirectory) -> Iterator[Rejected]:
    """Write `metadata.jsonl`, a line for each video, and `masks.jsonl` where masks are referred to."""
    masks: list[dict[str, Any]] = []
    with folder.create_text(FILE) as file:
        for video in videos:
            try:
                entry = _build_entry(video)
            except InvalidValueError as error:
                yield Rejected(video.name, str(error))
                continue
            file.write(json.dumps(to_record(entry, file_name=video.name)) + "\n")
            masks += _iter_mask_rows(video)
    if masks:
        folder.write(MASKS, "".join(json.dumps(mask) + "\n" for mask in masks).encode())


def convert_tracks_to_traces(video: ForeignVideo) -> tuple[Trace, ...]:
    """Convert a video's tracks to traces, one for each frame range.

    Raises:
        InvalidValueError: The video's frame rate is unknown.
    """
    clock = build_clip_copy(video)
    return tuple(
        Trace(
            span=TimeSpan(clock.at_us(stretch.first), clock.at_us(stretch.last + 1)),
            track=tuple(
                BoxAt(clock.at_us(mark.frame), mark.box)
                for mark in track.marks_in(stretch)
                if mark.box is not None
            ),
            categories=frozenset(_iter_trace_categories(track)),
            explanation=_format_explanation(track),
        )
        for track in video.tracks
        for stretch in track.stretches
    )


def _build_entry(video: ForeignVideo) -> Entry:
    traces = convert_tracks_to_traces(video)
    label = _get_video_label(video, traces)
    facts = DeclaredFacts(
        width=video.width, height=video.height, rate=video.rate, n_frames=video.n_frames
    )
    origin = Generated(UNKNOWN_CREATOR) if label is Label.GENERATED else Real()
    return Entry(
        name=video.name,
        location=video.name,
        origin=origin,
        traces=traces,
        facts=facts,
        source=video.origin,
    )


def _get_video_label(video: ForeignVideo, traces: tuple[Trace, ...]) -> Label:
    words = (word.strip().lower() for said in video.said for word in said.answers)
    told = [LABELS[word] for word in words if word in LABELS]
    if traces:
        return Label.GENERATED
    if not told:
        msg = "it has no annotation and no label real. Add the label, or leave it out"
        raise InvalidValueError(msg)
    return told[0]


def build_clip_copy(video: ForeignVideo) -> ClipCopy:
    """Build a `ClipCopy` of the video, which gives the time of each frame."""
    last = max((each.last for track in video.tracks for each in track.stretches), default=0)
    return ClipCopy(
        clip=digest_id("foreign", video.name),
        location=video.name,
        rate=video.require_rate(),
        n_frames=max(video.n_frames or 0, last + 1),
        width=video.width or 1,
        height=video.height or 1,
    )


def _iter_trace_categories(track: ForeignTrack) -> Iterator[Category]:
    words = [track.label, *(word for said in track.said for word in said.answers)]
    for word in words:
        plain = re.sub(r"[\s_/-]+", "-", word.strip().lower())
        if plain in _CATEGORIES:
            yield _CATEGORIES[plain]


def _format_explanation(track: ForeignTrack) -> str:
    """Return the explanation of the track; otherwise the texts that are no category."""
    written = [word for said in track.said if said.question == EXPLANATION for word in said.answers]
    written = written or [word for s in track.said if s.written for word in s.answers]
    if not written and not list(_iter_trace_categories(track)):
        written = [track.label]
    return "\n".join(written).strip()


def _iter_mask_rows(video: ForeignVideo) -> Iterator[dict[str, Any]]:
    clock = build_clip_copy(video)
    for track in video.tracks:
        for mark in track.marks:
            if mark.mask:
                at_us = clock.at_us(mark.frame)
                yield {"name": video.name, "track": track.id, "at_us": at_us, "mask": mark.mask}


CATEGORY: Final = "category"
LABEL: Final = "label"
_TRACES: Final = TypeAdapter(Annotated[tuple[Trace, ...], FailFast()])


def read_traces(path: Path, given: FormatDefaults) -> Iterator[Found]:
    """Read the rows of a `metadata.jsonl` as videos with tracks."""
    return read_items(
        path,
        lambda where, row: iter([_parse_video_row(where, require_mapping(row, "the row"), given)]),
    )


def _parse_video_row(where: str, row: Mapping[str, Any], given: FormatDefaults) -> ForeignVideo:
    try:
        traces = _TRACES.validate_python(row.get("traces") or (), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]["msg"]
        msg = f"{first}. Write a row as a benchmark has it"
        raise InvalidValueError(msg) from error
    name = parse_text(row.get("name")) or parse_text(row.get("file_name")) or where
    n_frames = _find_declared_count(row, "n_frames") or given.n_frames
    width, height = _find_declared_count(row, "width"), _find_declared_count(row, "height")
    said = (
        [ForeignAnswer(LABEL, (parse_text(row.get("label")),))]
        if parse_text(row.get("label"))
        else []
    )
    video = ForeignVideo(
        name=name,
        origin=parse_text(row.get("source")),
        rate=parse_rate(row.get("frame_rate")) or given.rate,
        n_frames=n_frames,
        width=width if width and height else given.width,
        height=height if width and height else given.height,
        said=tuple(said),
    )
    tracks = tuple(_build_track(str(place), trace, video) for place, trace in enumerate(traces))
    return replace(video, tracks=tracks)


def _find_declared_count(row: Mapping[str, Any], key: str) -> int | None:
    most = MOST_FRAMES if key == "n_frames" else MOST_PIXELS
    return None if row.get(key) is None else parse_count(row[key], key, most=most) or None


def _build_track(id_: str, trace: Trace, video: ForeignVideo) -> ForeignTrack:
    clock = _build_frame_clock(trace, video)
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


def _build_frame_clock(trace: Trace, video: ForeignVideo) -> ClipCopy:
    rate = video.require_rate()
    return ClipCopy(
        clip=digest_id("foreign", video.name),
        location=video.name,
        rate=rate,
        n_frames=video.n_frames or min(int(trace.span.end_us * rate / 1_000_000) + 2, MOST_FRAMES),
        width=video.width or 1,
        height=video.height or 1,
    )
