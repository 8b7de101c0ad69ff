"""Request to a video service: its body filled from a brief, and values looked up in replies."""

import base64
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final
from urllib.parse import quote

import numpy as np
from PIL import Image, ImageOps

from unreel.core.span import MICROSECONDS
from unreel.creators.contract import ClipBrief, CreatorInput
from unreel.creators.endpoint.service import VideoServiceApi
from unreel.media.picture import encode_png

_PLACE: Final = re.compile(r"\{(\w+)\}")
_DEEPEST: Final = 16
_LONGEST_ID: Final = 400
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoGenerationRequest:
    """Request to a video service for one brief, in a size and length that the service supports."""

    brief: ClipBrief
    model: str
    width: int
    height: int
    seconds: int | str

    @property
    def n_seconds(self) -> int:
        """Return the length of the requested clip in seconds."""
        return int(self.seconds)

    @property
    def lacks(self) -> str:
        """Return the input that the brief should contain and lacks: first frame or text; "" if none."""
        setting, brief = self.brief.setting, self.brief
        if setting is not CreatorInput.TEXT and brief.first_frame is None:
            return "first frame"
        return "text" if setting is not CreatorInput.IMAGE and not brief.text.strip() else ""

    def values(self) -> Mapping[str, Any]:
        """Return the values for the placeholders of the request body; `None` for one that the brief lacks."""
        return {
            "text": self.brief.text or None,
            "image": self._image(),
            "seconds": self.seconds,
            "size": f"{self.width}x{self.height}",
            "width": self.width,
            "height": self.height,
            "seed": self.brief.seed,
            "model": self.model or None,
        }

    def _image(self) -> str | None:
        """Return the first frame as data URL in the requested size; `None` if there is none or it is unused."""
        frame = self.brief.first_frame
        if frame is None or self.brief.setting is CreatorInput.TEXT:
            return None
        with Image.open(io.BytesIO(frame), formats=["PNG"]) as picture:
            if picture.size != (self.width, self.height):
                fitted = ImageOps.fit(picture.convert("RGB"), (self.width, self.height))
                frame = encode_png(np.asarray(fitted))
        return f"data:image/png;base64,{base64.b64encode(frame).decode()}"


def build_video_generation_request(
    brief: ClipBrief, api: VideoServiceApi, *, model: str
) -> VideoGenerationRequest:
    """Build the request: the `api`'s size of nearest shape, and its shortest sufficient length."""
    width, height = _select_nearest_size(brief, api.sizes)
    return VideoGenerationRequest(
        brief=brief,
        model=model,
        width=width,
        height=height,
        seconds=_select_clip_length(brief, api.seconds),
    )


def fill_body_template(template: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body `template` with its placeholders filled in; keys without a value are omitted."""
    filled = _fill_template_part(dict(template), values, _DEEPEST)
    return filled if isinstance(filled, dict) else {}


def _fill_template_part(part: Any, values: Mapping[str, Any], depth: int) -> Any:
    if isinstance(part, str):
        return _fill_text_placeholders(part, values)
    if not depth or not isinstance(part, dict | list) or not part:
        return part
    if isinstance(part, list):
        filled: Any = [
            value
            for item in part
            if (value := _fill_template_part(item, values, depth - 1)) is not _ABSENT
        ]
    else:
        pairs = ((key, _fill_template_part(item, values, depth - 1)) for key, item in part.items())
        filled = {key: item for key, item in pairs if item is not _ABSENT}
    return filled or _ABSENT


def _fill_text_placeholders(text: str, values: Mapping[str, Any]) -> Any:
    names = [name for name in _PLACE.findall(text) if name in values]
    if any(values[name] is None for name in names):
        return _ABSENT
    if len(names) == 1 and text == f"{{{names[0]}}}":
        return values[names[0]]
    return _PLACE.sub(lambda at: str(values.get(at[1], at[0])), text)


def look_up_reply_value(reply: Any, location: str) -> Any:
    """Return the value at the dotted path `location` in a service's reply; `None` if there is none."""
    value = reply
    for part in location.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part[:6]) < len(value):
            value = value[int(part[:6])]
        else:
            return None
    return value


def parse_replied_job_id(reply: Any, location: str) -> str | None:
    """Return the id of a job; `None` if it is missing, invalid, or would change the path of a URL."""
    value = look_up_reply_value(reply, location)
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    parts = text.split("/")
    sound = text.isprintable() and text.isascii() and len(text) <= _LONGEST_ID
    return text if text and sound and not {"", ".", ".."} & set(parts) else None


def fill_job_path(template: str, job: str) -> str:
    """Return the URL path `template` with the job's id filled in."""
    return template.replace("{id}", quote(job, safe="/:"))


def _select_nearest_size(brief: ClipBrief, sizes: tuple[str, ...]) -> tuple[int, int]:
    options = [(int(w), int(h)) for w, _, h in (size.partition("x") for size in sizes)]
    ratio = Fraction(brief.width, brief.height)

    def strangeness(size: tuple[int, int]) -> tuple[float, int]:
        shape = abs(math.log(Fraction(*size) / ratio))
        return round(shape, 6), abs(size[0] * size[1] - brief.width * brief.height)

    return min(options, key=strangeness, default=(brief.width, brief.height))


def _select_clip_length(brief: ClipBrief, lengths: tuple[int | str, ...]) -> int | str:
    needed = max(1, math.ceil(Fraction(brief.duration_us, MICROSECONDS)))
    enough = [length for length in lengths if int(length) >= needed]
    if not lengths:
        return needed
    return min(enough, key=int) if enough else max(lengths, key=int)
