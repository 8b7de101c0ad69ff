"""Reader and writer of a benchmark's `metadata.jsonl`: traces converted from and to object tracks.

A trace has one span, so a track with gaps becomes several traces. Times are the exact frame
times. Labels and answers of a track become categories if they name one. If a track has no
category and no explanation, its label becomes the explanation.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import FailFast, TypeAdapter, ValidationError

from unreel.annotation.campaign import AnnotatorClipCopy
from unreel.annotation.formats.annotated_video import (
    MOST_FRAMES,
    AnnotatedVideo,
    FieldAnswer,
    Found,
    FrameSpan,
    KeyFrameBox,
    ObjectTrack,
    VideoPropertyDefaults,
    build_object_track,
)
from unreel.annotation.formats.untrusted_input import (
    MOST_PIXELS,
    iter_parsed_json_items,
    parse_bounded_text,
    parse_count,
    parse_frame_rate,
    require_json_object,
)
from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected
from unreel.benchmarks.table_entries import LABELS, UNKNOWN_CREATOR, convert_entry_to_record
from unreel.core.clip import Generated, Real
from unreel.core.content_ids import compute_placeholder_clip_id
from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace

FILE: Final = "metadata.jsonl"
MASKS: Final = "masks.jsonl"
"""File name for the locations of masks, which a trace itself cannot contain."""
EXPLANATION: Final = "explanation"
_CATEGORIES: Final = {category.value: category for category in Category}


def write_trace_metadata(
    videos: Iterable[AnnotatedVideo], folder: OutputDirectory
) -> Iterator[Rejected]:
    """Write `metadata.jsonl`, one video per line, and `masks.jsonl` if there are masks; yield rejected videos."""
    masks: list[dict[str, Any]] = []
    with folder.create_text(FILE) as file:
        for video in videos:
            try:
                entry = _build_benchmark_entry(video)
            except InvalidValueError as error:
                yield Rejected(video.name, str(error))
                continue
            file.write(json.dumps(convert_entry_to_record(entry, file_name=video.name)) + "\n")
            masks += _iter_mask_rows(video)
    if masks:
        folder.write(MASKS, "".join(json.dumps(mask) + "\n" for mask in masks).encode())


def convert_tracks_to_traces(video: AnnotatedVideo) -> tuple[Trace, ...]:
    """Return a trace per frame range of a video; raise `InvalidValueError` if its rate is unknown."""
    clock = build_clip_copy_of_video(video)
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


def _build_benchmark_entry(video: AnnotatedVideo) -> Entry:
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


def _get_video_label(video: AnnotatedVideo, traces: tuple[Trace, ...]) -> Label:
    words = (word.strip().lower() for field in video.said for word in field.answers)
    labels = [LABELS[word] for word in words if word in LABELS]
    if traces:
        return Label.GENERATED
    if not labels:
        msg = "it has no annotation and no label real. Add the label, or leave it out"
        raise InvalidValueError(msg)
    return labels[0]


def build_clip_copy_of_video(video: AnnotatedVideo) -> AnnotatorClipCopy:
    """Build the record of a clip copy for a video of another tool, with the time of each frame."""
    last = max((span.last for track in video.tracks for span in track.stretches), default=0)
    return AnnotatorClipCopy(
        clip=compute_placeholder_clip_id("foreign", video.name),
        location=video.name,
        rate=video.require_rate(),
        n_frames=max(video.n_frames or 0, last + 1),
        width=video.width or 1,
        height=video.height or 1,
    )


def _iter_trace_categories(track: ObjectTrack) -> Iterator[Category]:
    words = [track.label, *(word for field in track.said for word in field.answers)]
    for word in words:
        plain = re.sub(r"[\s_/-]+", "-", word.strip().lower())
        if plain in _CATEGORIES:
            yield _CATEGORIES[plain]


def _format_explanation(track: ObjectTrack) -> str:
    """Return a track's answer `explanation`, else its free texts, else its label if it has no category."""
    written = [word for s in track.said if s.question == EXPLANATION for word in s.answers]
    written = written or [word for s in track.said if s.written for word in s.answers]
    if not written and not list(_iter_trace_categories(track)):
        written = [track.label]
    return "\n".join(written).strip()


def _iter_mask_rows(video: AnnotatedVideo) -> Iterator[dict[str, Any]]:
    clock = build_clip_copy_of_video(video)
    for track in video.tracks:
        for mark in track.marks:
            if mark.mask:
                at_us = clock.at_us(mark.frame)
                yield {"name": video.name, "track": track.id, "at_us": at_us, "mask": mark.mask}


CATEGORY: Final = "category"
LABEL: Final = "label"
_TRACES: Final = TypeAdapter(Annotated[tuple[Trace, ...], FailFast()])


def read_trace_metadata(path: Path, defaults: VideoPropertyDefaults) -> Iterator[Found]:
    """Read the rows of a `metadata.jsonl` as annotated videos whose tracks are the traces."""
    return iter_parsed_json_items(
        path,
        lambda where, row: iter(
            [_parse_video_row(where, require_json_object(row, "the row"), defaults)]
        ),
    )


def _parse_video_row(
    where: str, row: Mapping[str, Any], defaults: VideoPropertyDefaults
) -> AnnotatedVideo:
    try:
        traces = _TRACES.validate_python(row.get("traces") or (), strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]["msg"]
        msg = f"{first}. Write a row as a benchmark has it"
        raise InvalidValueError(msg) from error
    name = parse_bounded_text(row.get("name")) or parse_bounded_text(row.get("file_name")) or where
    n_frames = _find_declared_count(row, "n_frames") or defaults.n_frames
    width, height = _find_declared_count(row, "width"), _find_declared_count(row, "height")
    answers = (
        [FieldAnswer(LABEL, (parse_bounded_text(row.get("label")),))]
        if parse_bounded_text(row.get("label"))
        else []
    )
    video = AnnotatedVideo(
        name=name,
        origin=parse_bounded_text(row.get("source")),
        rate=parse_frame_rate(row.get("frame_rate")) or defaults.rate,
        n_frames=n_frames,
        width=width if width and height else defaults.width,
        height=height if width and height else defaults.height,
        said=tuple(answers),
    )
    tracks = tuple(_build_track(str(i), trace, video) for i, trace in enumerate(traces))
    return replace(video, tracks=tracks)


def _find_declared_count(row: Mapping[str, Any], key: str) -> int | None:
    limit = MOST_FRAMES if key == "n_frames" else MOST_PIXELS
    return None if row.get(key) is None else parse_count(row[key], key, most=limit) or None


def _build_track(id_: str, trace: Trace, video: AnnotatedVideo) -> ObjectTrack:
    clock = _build_clip_copy_of_trace(trace, video)
    stretch = FrameSpan(clock.frame_at(trace.span.start_us), clock.frame_at(trace.span.end_us - 1))
    # Several boxes may fall on the same frame; the last one is used.
    boxes = {
        frame: KeyFrameBox(frame, at.box)
        for at in trace.track
        for frame in [clock.frame_at(at.at_us)]
    }
    named = sorted(trace.categories)
    label = named[0].value if len(named) == 1 else Category.OTHER.value
    answers = [FieldAnswer(CATEGORY, tuple(c.value for c in named))] if len(named) > 1 else []
    if trace.explanation:
        answers.append(FieldAnswer(EXPLANATION, (trace.explanation,), written=True))
    return build_object_track(
        id_, label, boxes.values(), [stretch], said=answers, n_frames=video.n_frames
    )


def _build_clip_copy_of_trace(trace: Trace, video: AnnotatedVideo) -> AnnotatorClipCopy:
    rate = video.require_rate()
    return AnnotatorClipCopy(
        clip=compute_placeholder_clip_id("foreign", video.name),
        location=video.name,
        rate=rate,
        n_frames=video.n_frames or min(int(trace.span.end_us * rate / 1_000_000) + 2, MOST_FRAMES),
        width=video.width or 1,
        height=video.height or 1,
    )
