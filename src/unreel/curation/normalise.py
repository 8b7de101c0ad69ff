"""Rendering of segments as files of one format, which are stored under the hash of their bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import TypeAdapter

from unreel.core.box import Box
from unreel.core.clip import Clip, ClipFacts, ClipId
from unreel.core.content_ids import compute_clip_id
from unreel.core.failure import Failure
from unreel.core.safe_names import read_clip_id
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import BoxAt, Trace
from unreel.curation.segment import (
    ClipSegment,
    CurationJob,
    CurationState,
    CurationStepResult,
    ExcludedSegment,
    ReiterableStream,
    SegmentTable,
    build_hashed_path,
    deduplicate_segments,
)
from unreel.curation.step_execution import (
    CurationStepRequest,
    Given,
    VersionedCurationStep,
    to_json_values,
)
from unreel.engine.location import StorageLocation
from unreel.media.reader import MediaReader
from unreel.media.render import WHOLE, CroppedFrameRange, NormalisedClipFormat, PixelCrop


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClip:
    """Clip file that a curation step wrote: hash, file name and stream properties, as in its table."""

    made: ClipId
    name: str
    facts: ClipFacts

    def below(self, media_location: StorageLocation) -> Clip:
        """Return the stored file as a clip; `media_location` is the folder that contains it."""
        clip = read_clip_id(self.made, media_location.uri)
        location = (media_location / build_hashed_path(clip, ".mp4")).uri
        return Clip(id=clip, location=location, facts=self.facts)


def store_clip_by_hash(
    data: bytes, media_location: StorageLocation, *, reader: MediaReader
) -> StoredClip | Failure:
    """Store the bytes of an MP4 file under their hash in `media_location`; a failure if they are unreadable."""
    with NamedTemporaryFile(prefix="unreel-", suffix=".mp4") as copy:
        path = Path(copy.name)
        copy.write(data)
        copy.flush()
        facts = reader.probe(path)
        if isinstance(facts, Failure):
            return facts
        clip = compute_clip_id(path)
    name = build_hashed_path(clip, ".mp4")
    media_location.put(name, data)
    return StoredClip(made=clip, name=name, facts=facts)


FRAME = Box(0, 0, 1, 1)
"""Box of a whole frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameCoordinateMapping:
    """Mapping of boxes after crop and resize: from `window` in the old frame to `shown_in`, as fractions."""

    window: Box = FRAME
    shown_in: Box = FRAME

    def map(self, box: Box) -> Box | None:
        """Convert `box` from the old to the new frame; `None` if no part of `box` is visible there."""
        x0, x1 = (
            _compute_relative_position(x, self.window.x0, self.window.x1) for x in (box.x0, box.x1)
        )
        y0, y1 = (
            _compute_relative_position(y, self.window.y0, self.window.y1) for y in (box.y0, box.y1)
        )
        if x0 >= x1 or y0 >= y1:
            return None
        into = self.shown_in
        width, height = into.x1 - into.x0, into.y1 - into.y0
        return Box(
            into.x0 + x0 * width,
            into.y0 + y0 * height,
            min(1.0, into.x0 + x1 * width),
            min(1.0, into.y0 + y1 * height),
        )


def map_traces_to_segment(
    traces: Sequence[Trace], *, span: TimeSpan, mapping: FrameCoordinateMapping
) -> tuple[Trace, ...]:
    """Convert `traces` to a segment's times and coordinates; drop the traces outside it."""
    return tuple(
        carried
        for trace in traces
        if (carried := _map_trace_to_segment(trace, span, mapping)) is not None
    )


def _map_trace_to_segment(
    trace: Trace, span: TimeSpan, mapping: FrameCoordinateMapping
) -> Trace | None:
    shared_us = trace.span.overlap_us(span)
    if not shared_us:
        return None
    start_us = max(trace.span.start_us, span.start_us) - span.start_us
    boxes = [
        BoxAt(mark.at_us - span.start_us, box)
        for mark in trace.track
        if span.start_us <= mark.at_us < span.end_us and (box := mapping.map(mark.box)) is not None
    ]
    if trace.track and not boxes:
        return None
    return replace(trace, span=TimeSpan(start_us, start_us + shared_us), track=tuple(boxes))


def _compute_relative_position(position: float, first: float, last: float) -> float:
    return min(1.0, max(0.0, (position - first) / (last - first)))


def compute_fitted_window(width: int, height: int, clip_format: NormalisedClipFormat) -> PixelCrop:
    """Return the pixels that a picture of this size covers when it is fitted into a frame of `clip_format`."""
    scale = min(Fraction(clip_format.width, width), Fraction(clip_format.height, height))
    wide, high = (max(1, round(length * scale)) for length in (width, height))
    return PixelCrop(
        left=(clip_format.width - wide) // 2,
        top=(clip_format.height - high) // 2,
        width=wide,
        height=high,
    )


RENDER = "render"
_CUT = TypeAdapter(CroppedFrameRange)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRenderSettings:
    """Settings for rendering segments as files; without an output format, segments are only cut."""

    form: NormalisedClipFormat | None
    step: str = RENDER
    """Name of the recipe step that renders, used for its working tables."""


def run_render_step(
    rendering: SegmentRenderSettings, job: CurationJob, state: CurationState
) -> CurationState:
    """Render every segment as a separate file in the output format, and return the new state."""
    return state.after(render_segments(job, state.segments, rendering))


def render_segments(
    job: CurationJob, segments: SegmentTable, rendering: SegmentRenderSettings
) -> CurationStepResult:
    """Render segments as files and deduplicate them; without an output format, whole clips keep their file."""
    fmt, media = rendering.form, job.context.media
    settings = None
    if fmt is not None:
        names = ("width", "height", "rate", "crf", "sound")
        settings = {name: getattr(fmt, name) for name in names} | {"rate": str(fmt.rate)}
    step = VersionedCurationStep(
        name=RENDER, version=1, settings={"form": settings}, finds=TypeAdapter(StoredClip)
    )

    def iter_requests() -> Iterator[CurationStepRequest]:
        for segment in segments:
            if fmt is None and segment.cut == WHOLE:
                continue
            yield segment.subject(cut=to_json_values(segment.cut))
            if segment.cleaned is not None:
                request = segment.subject(cut=to_json_values(WHOLE))
                yield replace(request, clip=segment.cleaned.id, location=segment.cleaned.location)

    # One run for clips and their cleaned copies, because starting an engine takes seconds.
    look = partial(_render_clip, clip_format=fmt, media_location=media)
    results = job.context.ask(step, ReiterableStream(iter_requests), look)
    rendered = job.directory.write(
        rendering.step,
        _iter_render_results(segments, results, clip_format=fmt, media_location=media),
    )
    once, doubled = deduplicate_segments(rendered.segments, step=RENDER)
    excluded = rendered.left_out + job.directory.write_exclusions(f"{rendering.step}-same", doubled)
    return CurationStepResult(segments=once, left_out=excluded)


def _iter_render_results(
    segments: Iterable[ClipSegment],
    results: Iterator[StoredClip | Failure],
    *,
    clip_format: NormalisedClipFormat | None,
    media_location: StorageLocation,
) -> Iterator[ClipSegment | ExcludedSegment]:
    for segment in segments:
        if clip_format is None and segment.cut == WHOLE:
            yield segment
            continue
        rendered = next(results)
        copy = None if segment.cleaned is None else next(results)
        for result in (rendered, copy):
            if isinstance(result, Failure):
                yield segment.left_out(RENDER, result.reason.value, result.detail)
                break
        if isinstance(rendered, Failure) or isinstance(copy, Failure):
            continue
        start_us = convert_to_microseconds(segment.start_s)
        end_us = convert_to_microseconds(segment.start_s + segment.length_s)
        traces = map_traces_to_segment(
            segment.entry.traces,
            span=TimeSpan(start_us, end_us),
            mapping=build_frame_mapping(segment, clip_format),
        )
        done = replace(
            segment.remade(rendered.below(media_location)),
            entry=replace(segment.entry, traces=traces),
        )
        if isinstance(copy, StoredClip):
            done = replace(done, cleaned=copy.below(media_location))
        yield done


def _render_clip(
    reader: MediaReader,
    file: Path,
    inputs: Given,
    *,
    clip_format: NormalisedClipFormat | None,
    media_location: StorageLocation,
) -> StoredClip | Failure:
    data = reader.render(file, _CUT.validate_python(inputs["cut"]), form=clip_format)
    if isinstance(data, Failure):
        return data
    return store_clip_by_hash(data, media_location, reader=reader)


def build_frame_mapping(
    segment: ClipSegment, clip_format: NormalisedClipFormat | None
) -> FrameCoordinateMapping:
    """Return the mapping from the frames of the segment's file to its frames in the format of `clip_format`."""
    crop, video = segment.cut.crop, segment.clip.facts.video
    width, height = video.width, video.height
    window = FRAME
    if crop is not None:
        right, bottom = crop.left + crop.width, crop.top + crop.height
        window = Box(crop.left / width, crop.top / height, right / width, bottom / height)
        width, height = crop.width, crop.height
    if clip_format is None:
        return FrameCoordinateMapping(window=window)
    fitted = compute_fitted_window(width, height, clip_format)
    return FrameCoordinateMapping(
        window=window,
        shown_in=Box(
            fitted.left / clip_format.width,
            fitted.top / clip_format.height,
            (fitted.left + fitted.width) / clip_format.width,
            (fitted.top + fitted.height) / clip_format.height,
        ),
    )
