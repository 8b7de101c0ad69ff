"""Facts of a clip that guards monitor during a training, such as motion, sharpness and text."""

import atexit
import base64
import zlib
from contextlib import ExitStack
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.curation.clip_screens import MotionScreen, build_scan_screen_input
from unreel.curation.watermark.detection import ReadText, build_ocr_reader
from unreel.media.access import open_media_reader
from unreel.media.fingerprint import find_frame_borders, hash_picked_frames
from unreel.media.reader import MediaReader
from unreel.media.scan import PICKED_SIDE, ClipScan

READ_FRAMES = (1, 4, 6)
"""Indices of the scan's evenly spaced frames that are searched for text."""
READ_EVERY = 8
"""Number of clips of which one, chosen by its pixels, is searched for text, as this takes most of the time."""


def measure_clip_facts(
    path: Path, *, reader: MediaReader | None = None, read_text: bool | None = None
) -> dict[str, Any]:
    """Measure the facts of the video file `path` that guards monitor; empty if it cannot be decoded.

    Args:
        path: Video file.
        reader: Reader of the file; by default one that opens files in a confined process.
        read_text: Whether text in the picture is read; by default in one of `READ_EVERY` clips. It
            needs the extra `review`.

    Returns:
        `motion`: grey levels by which the liveliest hundredth of the picture changes in half a second.
        `saturation`: mean of (max - min) / max over red, green and blue.
        `sharpness`: root mean square of second differences along rows, in grey levels.
        `duration_s`: seconds.
        `static_fraction`: fraction of the frames with less motion than codecs add to a still picture.
        `fingerprint`: frame hashes for near-duplicates; `None` without the extra `curate`.
        `text`: text in the picture, one line after the other; `None` if it was not read.
    """
    scan = (reader or _open_sandboxed_reader()).scan(path)
    if isinstance(scan, Failure):
        return {}
    measured = build_scan_screen_input(scan, clip="")
    return {
        "motion": measured.motion,
        "saturation": _measure_saturation(scan),
        "sharpness": measured.sharpness,
        "duration_s": float(measured.duration_s),
        "static_fraction": _measure_static_fraction(scan),
        "fingerprint": (
            base64.b64encode(hash_picked_frames(scan, find_frame_borders(scan.picked))).decode(
                "ascii"
            )
        )
        if find_spec("pdqhash")
        else None,
        "text": _read_picture_text(scan, wanted=read_text) if find_spec("rapidocr") else None,
    }


def _measure_saturation(scan: ClipScan) -> float:
    values = []
    for frame in scan.picked:
        top, bottom = frame.rgb.max(axis=2).astype(np.float64), frame.rgb.min(axis=2)
        values.append(((top - bottom) / np.maximum(top, 1)).mean())
    return float(np.mean(values))


def _measure_static_fraction(scan: ClipScan) -> float:
    moves = scan.stirs[1:]
    return float((moves < MotionScreen().least).mean()) if len(moves) else 1.0


def _read_picture_text(scan: ClipScan, *, wanted: bool | None) -> str | None:
    if wanted is None:
        pixels = b"".join(frame.rgb.tobytes() for frame in scan.picked)
        wanted = zlib.crc32(pixels) % READ_EVERY == 0
    if not wanted:
        return None
    read = _open_text_reader()
    frames = [scan.picked[index] for index in READ_FRAMES if index < len(scan.picked)]
    lines = [line.text for frame in frames or scan.picked[:1] for line in read(frame.rgb)]
    return "\n".join(dict.fromkeys(lines))


@lru_cache(maxsize=1)
def _open_text_reader() -> ReadText:
    return build_ocr_reader(detect_side=PICKED_SIDE)


@lru_cache(maxsize=1)
def _open_sandboxed_reader() -> MediaReader:
    """Return a media reader that opens files in a confined process, which ends with this process."""
    opened = ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(open_media_reader(read_environment_settings(), trusted=False))
