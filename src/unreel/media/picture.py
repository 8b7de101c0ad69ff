"""Frames as pictures that can be sent and stored."""

import io
from typing import Final

import numpy as np
from PIL import Image

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


def decode_jpeg(data: bytes) -> Rgb:
    """The pixels of a JPEG file that this process made: never one that a child or a stranger sent.

    A hostile JPEG of 364 kB decodes for over a minute.
    """
    with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
        return np.asarray(picture.convert("RGB"))
