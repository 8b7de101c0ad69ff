"""Watermark step: finds the watermarks of each clip and records or removes them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from scipy.signal import resample_poly

from unreel.core.box import Box
from unreel.core.clip import ClipFacts, ClipId
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import LazyImport
from unreel.curation.normalise import StoredClip, store_clip_by_hash
from unreel.curation.recipe import WatermarkRecipeSection
from unreel.curation.segment import ClipSegment, CurationJob, CurationState, filter_segments
from unreel.curation.step_execution import Given, VersionedCurationStep, to_json_values
from unreel.curation.watermark.detection import (
    MIN_FRAMES,
    ReadText,
    WatermarkRegion,
    WatermarkSearchResult,
    build_ocr_reader,
    find_watermarks,
)
from unreel.engine.location import StorageLocation
from unreel.media.decode import Rgb
from unreel.media.encode import SOUND_RATE_HZ, ClipWriter, VideoTrackSettings
from unreel.media.reader import MediaReader, SampledFrames
from unreel.media.sound import ClipSound

MARGIN = 0.008
"""Fraction of the picture's diagonal by which a box grows: marks have soft edges and shadows."""
_CONTEXT_PIXELS = 12
_RADIUS_PIXELS = 4
_INPAINT = LazyImport("cv2:inpaint", extra="curate")  # a dependency of rapidocr
_TELEA = LazyImport("cv2:INPAINT_TELEA", extra="curate")


def remove_watermarks(frames: Sequence[Rgb], regions: Sequence[WatermarkRegion]) -> list[Rgb]:
    """Inpaint every watermark's box, slightly grown, in each frame separately; other pixels are unchanged."""
    inpaint: Any = _INPAINT.load()
    painted_frames = [frame.copy() for frame in frames]
    for painted in painted_frames:
        height, width, _ = painted.shape
        for region in regions:
            rows, columns = compute_inpaint_slices(region.box, width=width, height=height)
            top = max(0, rows.start - _CONTEXT_PIXELS)
            left = max(0, columns.start - _CONTEXT_PIXELS)
            area = painted[top : rows.stop + _CONTEXT_PIXELS, left : columns.stop + _CONTEXT_PIXELS]
            hole = np.zeros(area.shape[:2], np.uint8)
            hole[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = (
                255
            )
            filled = inpaint(np.ascontiguousarray(area), hole, _RADIUS_PIXELS, _TELEA.load())
            area[hole > 0] = filled[hole > 0]
    return painted_frames


def compute_inpaint_slices(box: Box, *, width: int, height: int) -> tuple[slice, slice]:
    """Return the rows and columns of pixels that the removal of a watermark in `box` may change."""
    margin = max(2, round(MARGIN * float(np.hypot(width, height))))
    top, left = int(box.y0 * height) - margin, int(box.x0 * width) - margin
    bottom, right = np.ceil([box.y1 * height, box.x1 * width]).astype(int) + margin
    return slice(max(0, top), min(height, int(bottom))), slice(max(0, left), min(width, int(right)))


SAMPLING = "uniform-12"
LONGEST_SIDE = 1280
_TICK_S = Fraction(1, 90_000)
_LATEST_S = 3600
"""Maximum start of the sound: the silence before it is kept in memory."""
_EVERY_FRAME = "fps-1000"
"""Sampling of all frames: no clip in use has a higher frame rate."""


def find_clip_watermarks(
    path: Path, *, reader: MediaReader, read_text: ReadText | None = None
) -> WatermarkSearchResult | Failure:
    """Sample frames of the clip at `path`, and search them for watermarks with `find_watermarks`."""
    sampled = reader.frames(path, sampling=SAMPLING, encoding="rgb24", longest_side=LONGEST_SIDE)
    if isinstance(sampled, Failure):
        return sampled
    if len(sampled.frames) < MIN_FRAMES:
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
    sound = reader.sound(path)
    if isinstance(sound, Failure):
        return sound
    if isinstance(sound, ClipSound) and sound.start_s > _LATEST_S:
        detail = f"the sound begins more than {_LATEST_S} s after its pictures"
        return Failure(FailureReason.UNDECODABLE, detail)
    data = _encode_unmarked_clip(sampled, facts, regions=result.found, sound=sound)
    OutputDirectory(into.parent).write(into.name, data)
    return result


def _encode_unmarked_clip(
    sampled: SampledFrames,
    facts: ClipFacts,
    *,
    regions: Sequence[WatermarkRegion],
    sound: ClipSound | None,
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
    with ClipWriter("mp4", video, n_channels=0 if sound is None else 1) as writer:
        for frame in sampled.frames:
            (clean,) = remove_watermarks([frame.rgb()], regions)
            tick = round(frame.at_s / _TICK_S)
            writer.add_picture(np.ascontiguousarray(clean[:height, :width]), tick=tick)
        if sound is not None:
            # At the rate of the encoder, starting at the first frame.
            finer = SOUND_RATE_HZ // sound.rate_hz
            samples = np.clip(resample_poly(sound.as_float(), finer, 1), -1, 1) * ((1 << 15) - 1)
            late = round(sound.start_s * SOUND_RATE_HZ)
            shifted = np.concatenate([np.zeros(max(0, late)), samples[max(0, -late) :]])
            writer.add_sound(np.rint(shifted).astype(np.int16).reshape(-1, 1))
        return writer.finish()


WATERMARK = "watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipWatermarks:
    """Result of the watermark step for one clip: the watermarks found."""

    marks: WatermarkSearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedClipWatermarks(ClipWatermarks):
    """Result of the watermark step for one clip: the watermarks, and its stored copy without them."""

    made: ClipId
    name: str
    facts: ClipFacts

    @property
    def copy(self) -> StoredClip:
        return StoredClip(made=self.made, name=self.name, facts=self.facts)


def run_watermark_step(
    section: WatermarkRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Add the watermarks of every segment to its notes; with `clean`, also a copy without them."""
    media = job.context.media
    step: VersionedCurationStep[ClipWatermarks] = VersionedCurationStep(
        name=WATERMARK,
        version=1,
        settings={"texts": section.texts, "clean": section.clean},
        finds=TypeAdapter(CleanedClipWatermarks if section.clean else ClipWatermarks),
    )
    look = partial(_search_clip_watermarks, section=section, media_location=media)
    results = job.context.ask(step, state.segments.subjects(), look)

    def marked(segment: ClipSegment, watermarks: ClipWatermarks) -> ClipSegment:
        cleaned = (
            watermarks.copy.below(media) if isinstance(watermarks, CleanedClipWatermarks) else None
        )
        notes = {**segment.notes, WATERMARK: to_json_values(watermarks.marks)}
        return replace(segment, notes=notes, cleaned=cleaned)

    return state.after(
        job.directory.write(WATERMARK, filter_segments(WATERMARK, state.segments, results, marked))
    )


def _search_clip_watermarks(
    reader: MediaReader,
    file: Path,
    _given: Given,
    *,
    section: WatermarkRecipeSection,
    media_location: StorageLocation,
) -> ClipWatermarks | Failure:
    read_text = load_ocr_reader() if section.texts else None
    if not section.clean:
        result = find_clip_watermarks(file, reader=reader, read_text=read_text)
        return result if isinstance(result, Failure) else ClipWatermarks(marks=result)
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "clean.mp4"
        result = write_unmarked_clip(file, reader=reader, into=into, read_text=read_text)
        if isinstance(result, Failure):
            return result
        stored = store_clip_by_hash(into.read_bytes(), media_location, reader=reader)
    if isinstance(stored, Failure):
        return stored
    return CleanedClipWatermarks(
        made=stored.made, name=stored.name, facts=stored.facts, marks=result
    )


@lru_cache(maxsize=1)
def load_ocr_reader() -> ReadText:
    """Return the text recognition function, which is loaded once per process."""
    return build_ocr_reader()
