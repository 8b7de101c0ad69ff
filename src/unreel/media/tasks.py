"""The work that can be asked of one opened file. Runs in this process or in a confined child."""

from collections.abc import Mapping
from typing import Any, BinaryIO, Final

import numpy as np

from unreel.media.decode import decode_frames
from unreel.media.normalise import NormalForm
from unreel.media.normalise import normalise as normalise_clip
from unreel.media.payload import Parts, Payload, Task
from unreel.media.picture import fit_longest
from unreel.media.probe import probe as probe_clip
from unreel.media.render import Crop, Cut
from unreel.media.render import render as render_clip
from unreel.media.sampling import parse_plan, plan_frames
from unreel.media.scan import scan as scan_clip
from unreel.media.scan_wire import scan_payload
from unreel.media.sound import NoSound, read_sound
from unreel.media.timeline import read_timeline
from unreel.media.wire import (
    FramesRequest,
    NormaliseRequest,
    ProbeRequest,
    RenderRequest,
    ScanRequest,
    SoundRequest,
    facts_header,
    read_request,
    write_exact,
)


def probe(file: BinaryIO, request: Mapping[str, Any]) -> Payload:
    """The facts of the clip."""
    asked = read_request(ProbeRequest, request)
    return Payload(facts_header(probe_clip(file, max_pixels=asked.max_pixels)))


def frames(file: BinaryIO, request: Mapping[str, Any]) -> Parts:
    """The frames that a sampling takes, each a part with its pixels as rgb24."""
    asked = read_request(FramesRequest, request)
    sampling = parse_plan(asked.sampling)
    timeline = read_timeline(file, max_pixels=asked.max_pixels)
    plan = plan_frames(sampling, timeline)
    for frame in decode_frames(file, timeline, indices=plan.indices, max_pixels=asked.max_pixels):
        rgb = fit_longest(frame.rgb, asked.longest_side, most_pixels=asked.most_pixels)
        height, width, _ = rgb.shape
        at_s = write_exact(frame.at_s)
        header = {"index": frame.index, "at_s": at_s, "width": width, "height": height}
        yield Payload(header, (np.ascontiguousarray(rgb).tobytes(),))
    counts = {"n_clip_frames": timeline.n_frames, "n_frames": len(plan.indices)}
    return Payload({"sampling": plan.sampling, **counts})


def sound(file: BinaryIO, request: Mapping[str, Any]) -> Payload:
    """The sound of the clip as 16-bit little-endian samples; no blob for a mute clip."""
    asked = read_request(SoundRequest, request)
    heard = read_sound(file, max_pixels=asked.max_pixels)
    if isinstance(heard, NoSound):
        return Payload({"sound": None})
    described = {
        "rate_hz": heard.rate_hz,
        "start_s": write_exact(heard.start_s),
        "n_samples": len(heard.samples),
    }
    return Payload({"sound": described}, (heard.samples.astype("<i2", copy=False).tobytes(),))


def normalise(file: BinaryIO, request: Mapping[str, Any]) -> Payload:
    """The clip in a normal form, as an mp4 file."""
    asked = read_request(NormaliseRequest, request)
    form = NormalForm(**{name: value for name, value in asked if name != "max_pixels"})
    data = normalise_clip(file, form, max_pixels=asked.max_pixels)
    return Payload({"size_bytes": len(data)}, (data,))


def render(file: BinaryIO, request: Mapping[str, Any]) -> Payload:
    """A piece of the clip, as an mp4 file."""
    asked = read_request(RenderRequest, request)
    cut = Cut(
        first_frame=asked.first_frame,
        end_frame=asked.end_frame,
        length_s=asked.length_s,
        crop=None if asked.crop is None else Crop(**dict(asked.crop)),
    )
    form = None if asked.form is None else NormalForm(**dict(asked.form))
    data = render_clip(file, cut, form=form, max_pixels=asked.max_pixels)
    return Payload({"size_bytes": len(data)}, (data,))


def scan(file: BinaryIO, request: Mapping[str, Any]) -> Payload:
    """Measures of every frame, and a few pictures."""
    asked = read_request(ScanRequest, request)
    return scan_payload(scan_clip(file, max_pixels=asked.max_pixels))


TASKS: Final[Mapping[str, Task]] = {
    "probe": probe,
    "frames": frames,
    "sound": sound,
    "normalise": normalise,
    "render": render,
    "scan": scan,
}
