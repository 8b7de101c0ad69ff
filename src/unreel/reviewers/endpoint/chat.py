"""A sheet as the body of a chat request: built once, the same bytes for every attempt."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from unreel.core.failure import Failure, FailureReason
from unreel.protocols.protocol import asks_to_think
from unreel.protocols.showing import (
    TimeFormat,
    around_clips,
    mark_clip,
    mark_instant,
    shows_times,
)
from unreel.reviewers.contract import Exhibit, Material, Sheet
from unreel.reviewers.endpoint.families import Family, switch_thinking


def build_body(
    sheet: Sheet, *, family: Family, show: Material, fields: Mapping[str, Any]
) -> bytes | Failure:
    """The request for `sheet`, with `fields` beside its messages, or why it cannot be asked."""
    condition = sheet.condition
    if condition.audio == "on" and not family.audio:
        return _cannot(f"the {family.name} family takes no sound")
    if condition.thinking != "default":
        switched = switch_thinking(family, condition.thinking, asked=asks_to_think(sheet.prompt))
        if isinstance(switched, str):
            return _cannot(switched)
        fields = {**fields, **switched}
    parts: list[bytes] = []
    for number, exhibit in enumerate(sheet.exhibits, start=1):
        if len(sheet.exhibits) > 1:
            parts.append(_text(mark_clip(number)))
        shown = list(_show(exhibit, show=show, times=_times(sheet, family)))
        if not shown:
            return _cannot(f"no {show.value} of clip {exhibit.clip.id[:12]} came with the sheet")
        parts += shown
        if condition.audio == "on":
            if exhibit.sound_wav is None:
                return _cannot(f"clip {exhibit.clip.id[:12]} has no sound")
            parts.append(_sound(exhibit.sound_wav))
    head = json.dumps(fields)[:-1].encode()
    message = b'"messages": [{"role": "user", "content": '
    content = json.dumps(sheet.prompt).encode()
    if parts:
        before, after = ([_text(said)] if said else [] for said in around_clips(sheet.prompt))
        content = b"".join((b"[", b", ".join([*before, *parts, *after]), b"]"))
    return b"".join((head, b", ", message, content, b"}]}"))


def _times(sheet: Sheet, family: Family) -> TimeFormat | None:
    marked = shows_times(sheet.instrument.protocol, sheet.condition.marks)
    return family.times if marked else None


def _show(exhibit: Exhibit, *, show: Material, times: TimeFormat | None) -> Iterator[bytes]:
    if show is Material.CLIP:
        if exhibit.whole is not None:
            yield _url("video_url", exhibit.whole.mime, exhibit.whole.data)
        return
    for frame in exhibit.frames:
        if times is not None:
            yield _text(mark_instant(frame.at_s, times))
        yield _url("image_url", "image/jpeg", frame.jpeg)


def _text(text: str) -> bytes:
    return json.dumps({"type": "text", "text": text}).encode()


def _url(kind: str, mime: str, data: bytes) -> bytes:
    # Base64 needs no JSON escapes, so megabytes are joined as they are instead of being scanned.
    head = f'{{"type": "{kind}", "{kind}": {{"url": "data:{mime};base64,'
    return b"".join((head.encode(), b64encode(data), b'"}}'))


def _sound(wav: bytes) -> bytes:
    head = b'{"type": "input_audio", "input_audio": {"format": "wav", "data": "'
    return b"".join((head, b64encode(wav), b'"}}'))


def _cannot(why: str) -> Failure:
    return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {why}")
