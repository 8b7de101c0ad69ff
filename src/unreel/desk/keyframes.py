"""Keyframes of a clip: the first frame of each shot, then the most distinct frames, as JPEG."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.span import convert_to_microseconds, format_seconds
from unreel.curation.shots import find_colour_cuts
from unreel.media.picture import encode_jpeg, scale_down_picture
from unreel.media.reader import MediaReader
from unreel.media.scan import FULL

KEYFRAMES = "keyframes"
THUMB = "thumb.jpg"
_N_KEYFRAMES = 8
_SAME_FRAME_DISTANCE = 0.05
"""Minimum distance of colours for a further keyframe."""
_THUMB_SIDE = 240


def write_keyframes(clip: Path, out: Path, *, reader: MediaReader) -> list[dict[str, Any]]:
    """Write the keyframes of `clip` and a thumbnail into `out`; nothing if the clip cannot be read."""
    folder = OutputDirectory(out)
    folder.remove_folder(KEYFRAMES)
    scan = reader.scan(clip)
    if isinstance(scan, Failure):
        return []
    cuts = [0, *find_colour_cuts(scan.histograms)]
    indices = select_distinct_frames(scan.histograms, cuts)
    frames = reader.frames_at(
        clip, [convert_to_microseconds(scan.instants_s[index]) for index in indices]
    )
    if isinstance(frames, Failure):
        return []
    rows = []
    for number, frame in enumerate(frames.frames, start=1):
        name = f"{KEYFRAMES}/{number:02d}-frame-{frame.index}.jpg"
        folder.write(name, encode_jpeg(frame.rgb(), quality=92))
        at = format_seconds(convert_to_microseconds(frame.at_s))
        rows.append({"file": name, "index": frame.index, "at": at, "is_cut": frame.index in cuts})
    middle = scale_down_picture(frames.frames[len(frames.frames) // 2].rgb(), _THUMB_SIDE)
    folder.write(THUMB, encode_jpeg(middle, quality=72))
    return rows


def select_distinct_frames(histograms: NDArray[np.uint8], cuts: list[int]) -> list[int]:
    """Return the indices of up to 8 frames with distinct colours (Hellinger distance), sorted.

    Each frame is the one that is farthest from those before it: first among the `cuts`, then among all.
    """
    roots = histograms.astype(np.float32) / FULL
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    indices = [cuts[0]]
    for pool in (np.array(cuts), np.arange(len(roots))):
        while len(indices) < _N_KEYFRAMES:
            distances = np.sqrt(np.clip(1 - (roots[pool] @ roots[indices].T).max(axis=1), 0, 1))
            if distances.max() < _SAME_FRAME_DISTANCE:
                break
            indices.append(int(pool[distances.argmax()]))
    return sorted(indices)
