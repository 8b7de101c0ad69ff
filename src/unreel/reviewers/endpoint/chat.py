"""A sheet as the body of a chat request: built once, the same bytes for every attempt."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from unreel.core.failure import Failure
from unreel.protocols.protocol import asks_to_think
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.endpoint.families import ModelFamily, switch_thinking
from unreel.reviewers.frame_times import explain_missing_video, get_timing
from unreel.reviewers.message_parts import (
    AudioPart,
    FilePart,
    ImagePart,
    Part,
    PromptText,
    Showing,
    VideoPart,
    compose_message,
    request_rejected,
)


def build_body(
    sheet: ReviewRequest, *, family: ModelFamily, show: Showing, fields: Mapping[str, Any]
) -> bytes | Failure:
    """Build the request body for `sheet`, with `fields` next to its messages, or return a failure."""
    condition = sheet.condition
    if condition.audio == "on" and not family.audio:
        return request_rejected(f"the {family.name} family takes no sound")
    if condition.thinking != "default":
        switched = switch_thinking(family, condition.thinking, asked=asks_to_think(sheet.prompt))
        if isinstance(switched, str):
            return request_rejected(switched)
        fields = {**fields, **switched}
    parts = compose_message(sheet, form=show, times=family.times)
    if isinstance(parts, Failure):
        return parts
    if show == "video":
        told = _format_times(sheet, family)
        if isinstance(told, Failure):
            return told
        fields = {**fields, **told}
    head = json.dumps(fields)[:-1].encode()
    message = b'"messages": [{"role": "user", "content": '
    content = json.dumps(sheet.prompt).encode()
    if sheet.exhibits:
        content = b"".join((b"[", b", ".join(map(_encode_part, parts)), b"]"))
    return b"".join((head, b", ", message, content, b"}]}"))


def _format_times(sheet: ReviewRequest, family: ModelFamily) -> Mapping[str, Any] | Failure:
    """Return the fields that give vLLM the times of the frames, or the reason why vLLM cannot take them."""
    if why := explain_missing_video(family.kind, sheet):
        return request_rejected(why)
    timings = {get_timing(family.kind, exhibit.frames) for exhibit in sheet.exhibits}
    if len(timings) > 1:
        return request_rejected(
            "vLLM takes one set of instants for all videos, and the clips' differ"
        )
    told = [
        {
            "fps": float(timing.fps),
            "frames_indices": list(timing.indices),
            "total_num_frames": timing.indices[-1] + 1,
            "num_frames": -1,  # all that are sent; by itself it keeps the first 32
            "do_sample_frames": False,
        }
        for timing in timings
    ]
    return {"media_io_kwargs": {"video": told[0]}} if told else {}


def _encode_part(part: Part) -> bytes:
    match part:
        case PromptText(text):
            return json.dumps({"type": "text", "text": text}).encode()
        case ImagePart(frame):
            return _encode_data_url("image_url", "image/jpeg", b64encode(frame.jpeg))
        case VideoPart(frames):
            return _encode_data_url(
                "video_url", "video/jpeg", b",".join(b64encode(f.jpeg) for f in frames)
            )
        case FilePart(whole):
            return _encode_data_url("video_url", whole.mime, b64encode(whole.data))
        case AudioPart(wav):
            head = b'{"type": "input_audio", "input_audio": {"format": "wav", "data": "'
            return b"".join((head, b64encode(wav), b'"}}'))


def _encode_data_url(kind: str, mime: str, base64: bytes) -> bytes:
    # Base64 needs no JSON escapes, so megabytes are joined as they are instead of being scanned.
    head = f'{{"type": "{kind}", "{kind}": {{"url": "data:{mime};base64,'
    return b"".join((head.encode(), base64, b'"}}'))
