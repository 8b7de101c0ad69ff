"""Frames as pictures that can be sent and stored."""

import io
from typing import Final

import numpy as np
from PIL import Image

from unreel.core.errors import InvalidValueError
from unreel.media.decode import Rgb

JPEG_QUALITY: Final = 90


def fit_longest(rgb: Rgb, longest_side: int | None) -> Rgb:
    """`rgb`, scaled down so that neither side exceeds `longest_side`; never scaled up."""
    height, width, _ = rgb.shape
    if longest_side is None or max(width, height) <= longest_side:
        return rgb
    scale = longest_side / max(width, height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS))


def encode_jpeg(rgb: Rgb, *, quality: int = JPEG_QUALITY) -> bytes:
    """A JPEG file without metadata: the same bytes for the same pixels and quality."""
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, format="JPEG", quality=quality)
    return out.getvalue()


def decode_jpeg(data: bytes, *, width: int, height: int) -> Rgb:
    """The pixels of a JPEG file of that size; another size is refused before it is decoded."""
    with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
        if picture.size != (width, height):
            msg = f"the JPEG is {picture.size}, not {(width, height)}. Treat its file as hostile"
            raise InvalidValueError(msg)
        return np.asarray(picture.convert("RGB"))
