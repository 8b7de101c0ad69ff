"""A sheet as the body of a chat request: built once, the same bytes for every attempt."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from unreel.core.failure import Failure
from unreel.protocols.protocol import asks_to_think
from unreel.reviewers.contract import Material, Sheet
from unreel.reviewers.endpoint.families import Family, switch_thinking
from unreel.reviewers.parts import (
    Enclosed,
    Filmed,
    Heard,
    Part,
    Pictured,
    Said,
    Showing,
    cannot,
    compose,
)


def build_body(
    sheet: Sheet, *, family: Family, show: Material, fields: Mapping[str, Any]
) -> bytes | Failure:
    """The request for `sheet`, with `fields` beside its messages, or why it cannot be asked."""
    condition = sheet.condition
    if condition.audio == "on" and not family.audio:
        return cannot(f"the {family.name} family takes no sound")
    if condition.thinking != "default":
        switched = switch_thinking(family, condition.thinking, asked=asks_to_think(sheet.prompt))
        if isinstance(switched, str):
            return cannot(switched)
        fields = {**fields, **switched}
    form: Showing = "clip" if show is Material.CLIP else "frames"
    parts = compose(sheet, form=form, times=family.times)
    if isinstance(parts, Failure):
        return parts
    head = json.dumps(fields)[:-1].encode()
    message = b'"messages": [{"role": "user", "content": '
    content = json.dumps(sheet.prompt).encode()
    if sheet.exhibits:
        content = b"".join((b"[", b", ".join(map(_write, parts)), b"]"))
    return b"".join((head, b", ", message, content, b"}]}"))


def _write(part: Part) -> bytes:
    match part:
        case Said(text):
            return json.dumps({"type": "text", "text": text}).encode()
        case Pictured(frame):
            return _url("image_url", "image/jpeg", b64encode(frame.jpeg))
        case Filmed(frames):
            return _url("video_url", "video/jpeg", b",".join(b64encode(f.jpeg) for f in frames))
        case Enclosed(whole):
            return _url("video_url", whole.mime, b64encode(whole.data))
        case Heard(wav):
            head = b'{"type": "input_audio", "input_audio": {"format": "wav", "data": "'
            return b"".join((head, b64encode(wav), b'"}}'))


def _url(kind: str, mime: str, base64: bytes) -> bytes:
    # Base64 needs no JSON escapes, so megabytes are joined as they are instead of being scanned.
    head = f'{{"type": "{kind}", "{kind}": {{"url": "data:{mime};base64,'
    return b"".join((head.encode(), base64, b'"}}'))
