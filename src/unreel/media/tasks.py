"""Tasks that can be run on one opened file, in this process or in a sandboxed child.

Each task imports its own modules, so that a zygote loads only the modules of the tasks that it
warms up.
"""

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from unreel.core.span import MICROSECONDS
from unreel.media.payload import Parts, Task, TaskPayload
from unreel.media.requests import (
    INSTANTS,
    FramesRequest,
    InstantsRequest,
    ReadRequest,
    read_fields,
    write_exact,
)

if TYPE_CHECKING:
    from unreel.media.annotated_copy import AnnotatedCopy
    from unreel.media.decode import DecodedFrame, Rgb


def probe(file: BinaryIO, request: Mapping[str, Any]) -> TaskPayload:
    """Return the facts of the clip."""
    from unreel.media.probe import probe as probe_clip

    asked = read_fields(ReadRequest, request)
    facts = probe_clip(file, max_pixels=asked.max_pixels)
    return TaskPayload({"facts": _convert_to_json_value(asdict(facts))})


def frames(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """Yield the frames that a sampling takes, each as one part with rgb24 pixels."""
    from unreel.media.container import open_clip
    from unreel.media.decode import decode_frames
    from unreel.media.picture import fit_longest
    from unreel.media.sampling import parse_plan, plan_frames
    from unreel.media.timeline import walk_timeline

    asked = read_fields(FramesRequest, request)
    sampling = parse_plan(asked.sampling)
    with closing(ExitStack()) as held:  # so that no error of this code is taken for one of the clip
        clip = held.enter_context(open_clip(file, max_pixels=asked.max_pixels))
        timeline = walk_timeline(clip, file, max_pixels=asked.max_pixels)
        plan = plan_frames(sampling, timeline)
        for frame in decode_frames(
            file, timeline, indices=plan.indices, max_pixels=asked.max_pixels, clip=clip
        ):
            rgb = fit_longest(frame.rgb, asked.longest_side, most_pixels=asked.most_pixels)
            yield _build_frame_payload(frame, rgb)
    counts = {"n_clip_frames": timeline.n_frames, "n_frames": len(plan.indices)}
    return TaskPayload({"sampling": plan.sampling, **counts})


def instants(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """Yield the frames shown at the requested instants, each once, as one part in original size."""
    from unreel.media.decode import decode_frames
    from unreel.media.timeline import read_timeline

    asked = read_fields(InstantsRequest, request)
    timeline = read_timeline(file, max_pixels=asked.max_pixels)
    # A frame's instant in whole microseconds may lie half of one before it.
    moments = (Fraction(2 * at_us + 1, 2 * MICROSECONDS) for at_us in asked.at_us)
    indices = sorted({timeline.shown_at(moment) for moment in moments})
    for frame in decode_frames(file, timeline, indices=indices, max_pixels=asked.max_pixels):
        yield _build_frame_payload(frame, frame.rgb)
    counts = {"n_clip_frames": timeline.n_frames, "n_frames": len(indices)}
    return TaskPayload({"sampling": INSTANTS, **counts})


def _build_frame_payload(frame: "DecodedFrame", rgb: "Rgb") -> TaskPayload:
    import numpy as np

    height, width, _ = rgb.shape
    at_s = write_exact(frame.at_s)
    header = {"index": frame.index, "at_s": at_s, "width": width, "height": height}
    return TaskPayload(header, (np.ascontiguousarray(rgb).tobytes(),))


def sound(file: BinaryIO, request: Mapping[str, Any]) -> TaskPayload:
    """Return the clip's sound as 16-bit little-endian samples; no blob for a clip without sound."""
    from unreel.media.sound import NoSound, read_sound

    asked = read_fields(ReadRequest, request)
    heard = read_sound(file, max_pixels=asked.max_pixels)
    if isinstance(heard, NoSound):
        return TaskPayload({"sound": None})
    described = {
        "rate_hz": heard.rate_hz,
        "start_s": write_exact(heard.start_s),
        "n_samples": len(heard.samples),
    }
    return TaskPayload({"sound": described}, (heard.samples.astype("<i2", copy=False).tobytes(),))


def normalise(file: BinaryIO, request: Mapping[str, Any]) -> TaskPayload:
    """Return the clip in a normal form, as an mp4 file."""
    from unreel.media.normalise import NormalForm
    from unreel.media.normalise import normalise as normalise_clip
    from unreel.media.wire import NormaliseRequest, read_request

    asked = read_request(NormaliseRequest, request)
    form = NormalForm(**{name: value for name, value in asked if name != "max_pixels"})
    data = normalise_clip(file, form, max_pixels=asked.max_pixels)
    return TaskPayload({"size_bytes": len(data)}, (data,))


def render(file: BinaryIO, request: Mapping[str, Any]) -> TaskPayload:
    """Return a part of the clip, as an mp4 file."""
    from unreel.media.normalise import NormalForm
    from unreel.media.render import FrameRange, PixelCrop
    from unreel.media.render import render as render_clip
    from unreel.media.wire import RenderRequest, read_request

    asked = read_request(RenderRequest, request)
    cut = FrameRange(
        first_frame=asked.first_frame,
        end_frame=asked.end_frame,
        length_s=asked.length_s,
        crop=None if asked.crop is None else PixelCrop(**dict(asked.crop)),
    )
    form = None if asked.form is None else NormalForm(**dict(asked.form))
    data = render_clip(file, cut, form=form, speed=asked.speed, max_pixels=asked.max_pixels)
    return TaskPayload({"size_bytes": len(data)}, (data,))


def annotate(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """Yield the clip with a commentary drawn on it, as pieces of an mp4 file."""
    from unreel.media.annotated_copy import annotate as annotate_clip
    from unreel.media.annotated_copy_wire import AnnotateRequest
    from unreel.media.wire import read_request

    asked = read_request(AnnotateRequest, request)
    copy = annotate_clip(file, asked.as_commentary(), max_pixels=asked.max_pixels)
    while True:
        try:
            piece = next(copy)
        except StopIteration as end:
            made: AnnotatedCopy = end.value
            return TaskPayload(asdict(made))
        yield TaskPayload({"at": piece.at, "n_frames": piece.n_frames}, (piece.data,))


def scan(file: BinaryIO, request: Mapping[str, Any]) -> TaskPayload:
    """Return measurements of every frame, and a few frames as pictures."""
    from unreel.media.scan import scan as scan_clip
    from unreel.media.scan_wire import scan_payload

    asked = read_fields(ReadRequest, request)
    return scan_payload(scan_clip(file, max_pixels=asked.max_pixels))


def _convert_to_json_value(value: object) -> object:
    """Return `value` as JSON can hold it."""
    match value:
        case Fraction():
            return write_exact(value)
        case dict():
            return {key: _convert_to_json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_convert_to_json_value(item) for item in value]
        case _:
            return value


TASKS: Final[Mapping[str, Task]] = {
    "probe": probe,
    "frames": frames,
    "sound": sound,
    "normalise": normalise,
    "render": render,
    "instants": instants,
    "annotate": annotate,
    "scan": scan,
}
