"""Search and removal of watermarks in video files."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly

from unreel.core.box import Box
from unreel.core.clip import ClipFacts
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import LazyImport
from unreel.curation.watermark.detection import LEAST_FRAMES, find_watermarks
from unreel.curation.watermark.regions_and_ocr import (
    ReadText,
    WatermarkRegion,
    WatermarkSearchResult,
)
from unreel.media.decode import Rgb
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, SoundTrackSettings, VideoTrackSettings
from unreel.media.reader import MediaReader, SampledFrames
from unreel.media.sound import ClipSound, NoSound

MARGIN: Final = 0.008
"""Fraction of the picture's diagonal by which a box grows: marks have soft edges and shadows."""
_CONTEXT_PIXELS: Final = 12
_RADIUS_PIXELS: Final = 4
_INPAINT: Final = LazyImport("cv2:inpaint", extra="curate")  # a dependency of rapidocr
_TELEA: Final = LazyImport("cv2:INPAINT_TELEA", extra="curate")


def remove_watermarks(frames: Sequence[Rgb], marks: Sequence[WatermarkRegion]) -> list[Rgb]:
    """Inpaint every watermark's box, slightly grown, in each frame separately; other pixels are unchanged."""
    return [_inpaint_boxes(frame, [mark.box for mark in marks]) for frame in frames]


def compute_inpaint_slices(box: Box, *, width: int, height: int) -> tuple[slice, slice]:
    """Return the rows and columns of pixels that the removal of a watermark in `box` may change."""
    margin = max(2, round(MARGIN * float(np.hypot(width, height))))
    top, left = int(box.y0 * height) - margin, int(box.x0 * width) - margin
    bottom, right = np.ceil([box.y1 * height, box.x1 * width]).astype(int) + margin
    return slice(max(0, top), min(height, int(bottom))), slice(max(0, left), min(width, int(right)))


def _inpaint_boxes(frame: Rgb, boxes: Sequence[Box]) -> Rgb:
    inpaint: Any = _INPAINT.load()
    painted = frame.copy()
    height, width, _ = frame.shape
    for box in boxes:
        rows, columns = compute_inpaint_slices(box, width=width, height=height)
        top, left = max(0, rows.start - _CONTEXT_PIXELS), max(0, columns.start - _CONTEXT_PIXELS)
        area = painted[top : rows.stop + _CONTEXT_PIXELS, left : columns.stop + _CONTEXT_PIXELS]
        hole = np.zeros(area.shape[:2], np.uint8)
        hole[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = 255
        filled = inpaint(np.ascontiguousarray(area), hole, _RADIUS_PIXELS, _TELEA.load())
        area[hole > 0] = filled[hole > 0]
    return painted


SAMPLING: Final = "uniform-12"
LONGEST_SIDE: Final = 1280
_TICK_S: Final = Fraction(1, 90_000)
_LATEST_S: Final = 3600
"""Maximum start of the sound: the silence before it is kept in memory."""
_EVERY_FRAME: Final = "fps-1000"
"""Sampling of all frames: no clip in use has a higher frame rate."""


def find_clip_watermarks(
    path: Path, *, reader: MediaReader, read_text: ReadText | None = None
) -> WatermarkSearchResult | Failure:
    """Sample frames of the clip at `path`, and search them for watermarks with `find_watermarks`."""
    sampled = reader.frames(path, sampling=SAMPLING, encoding="rgb24", longest_side=LONGEST_SIDE)
    if isinstance(sampled, Failure):
        return sampled
    if len(sampled.frames) < LEAST_FRAMES:
        few = f"the clip has {len(sampled.frames)} frames: too few to find static marks"
        return WatermarkSearchResult(inconclusive=few)
    return find_watermarks([frame.rgb() for frame in sampled.frames], read_text=read_text)


def write_unmarked_clip(
    path: Path, *, reader: MediaReader, into: Path, read_text: ReadText | None = None
) -> WatermarkSearchResult | Failure:
    """Write a copy of the clip without its fixed watermarks to `into`, and return the search result.

    The copy is H.264 in MP4 at the clip's own size and rate, the same bytes each time. It is also
    written for clips without watermarks, so that re-encoding reveals nothing.
    """
    result = find_clip_watermarks(path, reader=reader, read_text=read_text)
    if isinstance(result, Failure):
        return result
    facts = reader.probe(path)
    if isinstance(facts, Failure):
        return facts
    sampled = reader.frames(path, sampling=_EVERY_FRAME, encoding="jpeg", quality=95)
    if isinstance(sampled, Failure):
        return sampled
    sound = _read_clip_sound(reader, path)
    if isinstance(sound, Failure):
        return sound
    data = _encode_unmarked_clip(sampled, facts, marks=result.found, sound=sound)
    OutputDirectory(into.parent).write(into.name, data)
    return result


def _read_clip_sound(reader: MediaReader, path: Path) -> ClipSound | NoSound | Failure:
    sound = reader.sound(path)
    if isinstance(sound, ClipSound) and sound.start_s > _LATEST_S:
        detail = f"its sound begins more than {_LATEST_S} s after its pictures"
        return Failure(FailureReason.UNDECODABLE, detail)
    return sound


def _encode_unmarked_clip(
    sampled: SampledFrames,
    facts: ClipFacts,
    *,
    marks: Sequence[WatermarkRegion],
    sound: ClipSound | NoSound,
) -> bytes:
    width, height = (length // 2 * 2 for length in (facts.video.width, facts.video.height))
    video = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=facts.video.average_rate,
        time_base=_TICK_S,
        options={"crf": "18", "preset": "veryfast", "bf": "0", "g": "48"},
    )
    track = None if isinstance(sound, NoSound) else SoundTrackSettings(codec="aac", channels=1)
    with ClipWriter("mp4", video, sound=track) as writer:
        for frame in sampled.frames:
            (clean,) = remove_watermarks([frame.rgb()], marks)
            tick = round(frame.at_s / _TICK_S)
            writer.add_picture(np.ascontiguousarray(clean[:height, :width]), tick=tick)
        if not isinstance(sound, NoSound):
            writer.add_sound(_align_sound(sound))
        return writer.finish()


def _align_sound(sound: ClipSound) -> NDArray[np.int16]:
    """Return the clip's sound at the rate of the encoder, starting at the first frame."""
    finer = SOUND_RATE_HZ // sound.rate_hz
    samples = np.clip(resample_poly(sound.as_float(), finer, 1), -1, 1) * ((1 << 15) - 1)
    late = round(sound.start_s * SOUND_RATE_HZ)
    shifted = np.concatenate([np.zeros(max(0, late)), samples[max(0, -late) :]])
    column: NDArray[np.int16] = np.rint(shifted).astype(np.int16).reshape(-1, 1)
    return column
