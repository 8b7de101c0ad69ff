"""Sandbox task that decodes PNG and JPEG files with Pillow; a confined process loads it."""

import io
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import PIL.TiffImagePlugin  # noqa: F401  Pillow loads it at the first EXIF, a confined process cannot
from PIL import Image

from unreel.core.errors import MediaError
from unreel.core.failure import FailureReason
from unreel.media.messages import Parts, Task, TaskReplyPayload
from unreel.media.picture import encode_jpeg, encode_png

COLOURS = 3
LENGTH_BYTES = 8
_FORMATS = ("PNG", "JPEG")
_MAX_PIXELS = 4096 * 4096


def decode_picture_bundle(file: BinaryIO, _request: Mapping[str, Any]) -> Parts:
    """Yield the rgb24 pixels of each PNG or JPEG file in `file`; a length precedes each file."""
    while head := file.read(LENGTH_BYTES):
        data = file.read(int.from_bytes(head, "little"))
        try:
            yield _decode_picture(data)
        except (MediaError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  Pillow raises errors of many kinds
            raise MediaError(
                FailureReason.UNDECODABLE,
                f"a frame is not a readable PNG or JPEG: {type(error).__name__}: {error}"[:300],
            ) from None
    return TaskReplyPayload({})


def _decode_picture(data: bytes) -> TaskReplyPayload:
    with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
        width, height = picture.size
        if width * height > _MAX_PIXELS:
            raise MediaError(FailureReason.TOO_MANY_PIXELS, f"a frame of {width} x {height} pixels")
        pixels = picture.convert("RGB").tobytes()
    return TaskReplyPayload({"width": width, "height": height}, (pixels,))


def _warm_up_pillow() -> None:
    """Load the modules that Pillow loads at first use, because a confined process can load nothing."""
    pixels = np.zeros((8, 8, COLOURS), np.uint8)
    for data in (encode_png(pixels), encode_jpeg(pixels)):
        _decode_picture(data)
    for mode in ("L", "P", "RGBA"):
        Image.new(mode, (8, 8)).convert("RGB").tobytes()


_warm_up_pillow()
TASKS: Mapping[str, Task] = {"decode": decode_picture_bundle}
