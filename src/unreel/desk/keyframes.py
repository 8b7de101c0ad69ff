"""Keyframes of a clip: the first frame of each shot, then the most distinct frames, as JPEG."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.small_documents import parse_object
from unreel.core.span import format_seconds, to_us
from unreel.curation.split.shots import find_cuts
from unreel.media.picture import encode_jpeg, fit_longest
from unreel.media.reader import MediaReader

FOLDER: Final = "keyframes"
_LIST: Final = "keyframes.json"
_N_KEYFRAMES: Final = 8
_ALIKE: Final = 0.05
"""Distance of colours below which a further frame shows nothing new."""
_QUALITY: Final = 92
THUMB: Final = "thumb.jpg"
_THUMB_SIDE: Final = 240
_THUMB_QUALITY: Final = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyframePicture:
    """One keyframe in its file."""

    file: str
    index: int
    at_us: int
    is_shot: bool
    """Whether a shot begins there."""

    @property
    def at(self) -> str:
        """Return the time as text."""
        return format_seconds(self.at_us)


def write_keyframes(clip: Path, out: Path, *, reader: MediaReader) -> str:
    """Write the keyframes of `clip`, and a thumbnail, into `out`; return the reason if there are none."""
    scan = reader.scan(clip)
    if isinstance(scan, Failure):
        return _write_list(out, [], str(scan))
    cuts = {0, *find_cuts(scan.histograms)}
    chosen = select_distinct_frames(scan.histograms, sorted(cuts))
    frames = reader.frames_at(clip, [to_us(scan.instants_s[index]) for index in chosen])
    if isinstance(frames, Failure):
        return _write_list(out, [], str(frames))
    pictures = []
    for number, frame in enumerate(frames.frames, start=1):
        name = f"{FOLDER}/{number:02d}-frame-{frame.index}.jpg"
        OutputDirectory(out).write(name, encode_jpeg(frame.rgb(), quality=_QUALITY))
        picture = KeyframePicture(
            file=name, index=frame.index, at_us=to_us(frame.at_s), is_shot=frame.index in cuts
        )
        pictures.append(picture)
    middle = frames.frames[len(frames.frames) // 2].rgb()
    thumb = encode_jpeg(fit_longest(middle, _THUMB_SIDE), quality=_THUMB_QUALITY)
    OutputDirectory(out).write(THUMB, thumb)
    return _write_list(out, pictures, "")


def read_keyframes(out: Path) -> tuple[list[KeyframePicture], str]:
    """Return the keyframes in `out`, and the reason if there are none."""
    folder = OutputDirectory(out)
    if folder.size(_LIST) is None:
        return [], "they are not made yet"
    with folder.read(_LIST) as file:
        found = parse_object(file.read())
    return [KeyframePicture(**each) for each in found["keyframes"]], str(found["problem"])


def select_distinct_frames(histograms: NDArray[np.uint8], shots: list[int]) -> list[int]:
    """Return up to 8 frames: the beginnings of shots, then the frame farthest from all chosen ones.

    The distance is the Hellinger distance of the colours. If there are more shots, the most distinct
    beginnings are taken.
    """
    roots = histograms.astype(np.float32) / 255
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-9)
    chosen = [shots[0]]
    for pool in (shots, range(len(roots))):
        candidates = np.array(pool)
        while len(chosen) < _N_KEYFRAMES:
            alike = (roots[candidates] @ roots[chosen].T).max(axis=1)
            far = np.sqrt(np.clip(1 - alike, 0, 1))
            best = int(far.argmax())
            if far[best] < _ALIKE:
                break
            chosen.append(int(candidates[best]))
    return sorted(chosen)


def _write_list(out: Path, pictures: list[KeyframePicture], problem: str) -> str:
    document: dict[str, Any] = {"keyframes": [*map(asdict, pictures)], "problem": problem}
    OutputDirectory(out).write(_LIST, json.dumps(document).encode())
    return problem
