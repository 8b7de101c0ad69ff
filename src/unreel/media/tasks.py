"""Media tasks that run on one opened file, in this process or in a sandboxed child.

Each task imports its own modules, so that a zygote loads only the modules of the tasks that it
warms up.
"""

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.core.span import MICROSECONDS
from unreel.media.messages import (
    INCOMPLETE,
    INSTANTS,
    MAX_PIXELS,
    Parts,
    Task,
    TaskReplyPayload,
    convert_to_json_fields,
    format_fraction,
)
from unreel.media.task_schemas import (
    AnnotateTaskRequest,
    ClipReadRequest,
    NormaliseTaskRequest,
    RenderTaskRequest,
    SampledFramesRequest,
    TimestampFramesRequest,
    parse_task_request,
)

if TYPE_CHECKING:
    from unreel.media.decode import DecodedFrame, Rgb


def run_probe_task(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Run the task `probe`: return the facts of the clip in `file`."""
    from unreel.media.probe import probe_clip

    args = parse_task_request(ClipReadRequest, request)
    facts = probe_clip(file, max_pixels=args.max_pixels)
    return TaskReplyPayload({"facts": convert_to_json_fields(facts)})


def run_frames_task(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """Run the task `frames`: yield the sampled frames of a clip, each as one part with rgb24 pixels."""
    from unreel.media.container import open_clip
    from unreel.media.decode import decode_frames
    from unreel.media.picture import scale_down_picture
    from unreel.media.sampling import parse_sampling, plan_frames
    from unreel.media.timeline import read_open_clip_timeline

    args = parse_task_request(SampledFramesRequest, request)
    sampling = parse_sampling(args.sampling)
    with closing(ExitStack()) as stack:  # other errors then do not become `MediaError`
        clip = stack.enter_context(open_clip(file, max_pixels=args.max_pixels))
        timeline = read_open_clip_timeline(clip, file, max_pixels=args.max_pixels)
        plan = plan_frames(sampling, timeline)
        for frame in decode_frames(
            file, timeline, indices=plan.indices, max_pixels=args.max_pixels, clip=clip
        ):
            rgb = scale_down_picture(frame.rgb, args.longest_side, most_pixels=args.most_pixels)
            yield _build_frame_payload(frame, rgb)
    counts = {"n_clip_frames": timeline.n_frames, "n_frames": len(plan.indices)}
    return TaskReplyPayload({"sampling": plan.sampling, **counts})


def run_instants_task(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """Run the task `instants`: yield the frames at the requested times, each once, in original size."""
    from unreel.media.decode import decode_frames
    from unreel.media.timeline import read_frame_timeline

    args = parse_task_request(TimestampFramesRequest, request)
    timeline = read_frame_timeline(file, max_pixels=args.max_pixels)
    # A frame's time, rounded to microseconds, may be up to half a microsecond too early.
    moments = (Fraction(2 * at_us + 1, 2 * MICROSECONDS) for at_us in args.at_us)
    indices = sorted({timeline.shown_at(moment) for moment in moments})
    for frame in decode_frames(file, timeline, indices=indices, max_pixels=args.max_pixels):
        yield _build_frame_payload(frame, frame.rgb)
    counts = {"n_clip_frames": timeline.n_frames, "n_frames": len(indices)}
    return TaskReplyPayload({"sampling": INSTANTS, **counts})


def _build_frame_payload(frame: "DecodedFrame", rgb: "Rgb") -> TaskReplyPayload:
    import numpy as np

    height, width, _ = rgb.shape
    at_s = format_fraction(frame.at_s)
    header = {"index": frame.index, "at_s": at_s, "width": width, "height": height}
    return TaskReplyPayload(header, (np.ascontiguousarray(rgb).tobytes(),))


def run_sound_task(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Return the clip's samples as 16-bit little-endian numbers; no blob without sound."""
    from unreel.media.sound import read_mono_sound

    args = parse_task_request(ClipReadRequest, request)
    sound = read_mono_sound(file, max_pixels=args.max_pixels)
    if sound is None:
        return TaskReplyPayload({"sound": None})
    start_s, n_samples = format_fraction(sound.start_s), len(sound.samples)
    header = {"rate_hz": sound.rate_hz, "start_s": start_s, "n_samples": n_samples}
    samples = sound.samples.astype("<i2", copy=False).tobytes()
    return TaskReplyPayload({"sound": header}, (samples,))


def run_normalise_task(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Run the task `normalise`: return the clip re-encoded in a common format, as an mp4 file."""
    from unreel.media.render import NormalisedClipFormat, normalise_clip

    args = parse_task_request(NormaliseTaskRequest, request)
    clip_format = parse_task_request(NormalisedClipFormat, args.form)
    data = normalise_clip(file, clip_format, max_pixels=args.max_pixels)
    return TaskReplyPayload({"size_bytes": len(data)}, (data,))


def run_render_task(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Run the task `render`: return a part of the clip as an mp4 file."""
    from unreel.media.render import CroppedFrameRange, NormalisedClipFormat, render_clip_segment

    args = parse_task_request(RenderTaskRequest, request)
    data = render_clip_segment(
        file,
        parse_task_request(CroppedFrameRange, args.frame_range),
        clip_format=None
        if args.form is None
        else parse_task_request(NormalisedClipFormat, args.form),
        speed=args.speed,
        max_pixels=args.max_pixels,
    )
    return TaskReplyPayload({"size_bytes": len(data)}, (data,))


def run_annotate_task(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """Run the task `annotate`: yield the clip with drawn annotations, as chunks of an mp4 file."""
    from unreel.media.annotated_copy import iter_annotated_copy
    from unreel.media.overlay import OverlayCommentary

    args = parse_task_request(AnnotateTaskRequest, request)
    commentary = parse_task_request(OverlayCommentary, args.commentary)
    return (yield from iter_annotated_copy(file, commentary, max_pixels=args.max_pixels))


def run_scan_task(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Run the task `scan`: return measurements of every frame, and a few frames as pictures."""
    from unreel.media.scan import build_scan_payload, scan_clip

    args = parse_task_request(ClipReadRequest, request)
    return build_scan_payload(scan_clip(file, max_pixels=args.max_pixels))


def is_cut_off(file: BinaryIO) -> bool:
    """Return whether the last box of an MP4 file reaches beyond its end, as after an aborted download."""
    size_bytes, at = file.seek(0, os.SEEK_END), 0
    for _ in range(10_000):
        file.seek(at)
        head = file.read(16)
        if at == 0 and head[4:8] != b"ftyp":
            return False
        length = int.from_bytes(head[8:16] if head[:4] == b"\0\0\0\1" else head[:4], "big")
        if length < len(head[:8]):  # 0: to the end of the file
            return False
        at += length
        if at >= size_bytes:
            return at > size_bytes
    return False


@contextmanager
def _describe_cut_off_file(file: BinaryIO, request: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except MediaError as error:
        if error.failure.reason is not FailureReason.UNDECODABLE or not is_cut_off(file):
            raise
        from unreel.media.timeline import read_frame_timeline

        readable = "none of it can be read"
        with suppress(MediaError):
            timeline = read_frame_timeline(file, max_pixels=request.get("max_pixels", MAX_PIXELS))
            # The last frame is cut off.
            readable = f"{float(timeline.at_s(timeline.n_frames - 1)):.1f} s can be read"
        detail = f"{INCOMPLETE}: {readable}"
        raise MediaError(FailureReason.UNDECODABLE, detail) from error


def _describe_cut_off_files(task: Task) -> Task:
    """Return `task` with an error that says so if the file that it fails on is cut off."""

    def run(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
        with _describe_cut_off_file(file, request):
            return cast("TaskReplyPayload", task(file, request))

    def run_in_parts(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
        with _describe_cut_off_file(file, request):
            return (yield from cast("Parts", task(file, request)))

    return run_in_parts if inspect.isgeneratorfunction(task) else run


_TASKS: Mapping[str, Task] = {
    "probe": run_probe_task,
    "frames": run_frames_task,
    "sound": run_sound_task,
    "normalise": run_normalise_task,
    "render": run_render_task,
    "instants": run_instants_task,
    "annotate": run_annotate_task,
    "scan": run_scan_task,
}
TASKS: Mapping[str, Task] = {name: _describe_cut_off_files(task) for name, task in _TASKS.items()}
