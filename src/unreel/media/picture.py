"""Resizing of frames, and their encoding as JPEG and PNG."""

import io
import math
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from unreel.media.messages import JPEG_QUALITY

if TYPE_CHECKING:
    from unreel.media.decode import Rgb


def scale_down_picture(
    rgb: "Rgb", longest_side: int | None, *, most_pixels: int | None = None
) -> "Rgb":
    """Scale `rgb` down, never up, to `longest_side` pixels and `most_pixels`; `None` means no limit."""
    height, width, _ = rgb.shape
    size = compute_scaled_size(width, height, longest_side, most_pixels=most_pixels)
    if size == (width, height):
        return rgb
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS))


def compute_scaled_size(
    width: int, height: int, longest_side: int | None, *, most_pixels: int | None = None
) -> tuple[int, int]:
    """Return the width and height of a picture after `scale_down_picture`."""
    size = width, height
    if longest_side is not None and max(size) > longest_side:
        scale = longest_side / max(size)
        size = max(1, round(width * scale)), max(1, round(height * scale))
    if most_pixels is not None and size[0] * size[1] > most_pixels:
        scale = math.sqrt(most_pixels / (width * height))
        high = max(1, int(height * scale))
        size = max(1, min(int(width * scale), most_pixels // high)), high
        size = size[0], min(high, most_pixels // size[0])
    return size


def encode_jpeg(rgb: "Rgb", *, quality: int = JPEG_QUALITY) -> bytes:
    """Return a JPEG file without metadata: the same pixels and quality always give the same bytes."""
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, format="JPEG", quality=quality)
    return out.getvalue()


def encode_png(rgb: "Rgb") -> bytes:
    """Encode `rgb` as PNG without metadata."""
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, format="PNG", compress_level=4)
    return out.getvalue()


def decode_jpeg(data: bytes) -> "Rgb":
    """Return a JPEG's pixels; only for this process's own files: a hostile one of 364 kB takes over a minute."""
    with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
        return np.asarray(picture.convert("RGB"))
