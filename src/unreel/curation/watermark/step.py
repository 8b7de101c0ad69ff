"""Watermark step: finds the watermarks of each clip and records them in the notes of its segment."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import ClipFacts, ClipId
from unreel.core.failure import Failure
from unreel.curation.normalise import StoredClip, store_clip_by_hash
from unreel.curation.recipe import WatermarkRecipeSection
from unreel.curation.segment import ClipSegment, filter_segments
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import Given, VersionedCurationStep, to_json_values
from unreel.curation.watermark.clip_watermarks import find_clip_watermarks, write_unmarked_clip
from unreel.curation.watermark.regions_and_ocr import (
    ReadText,
    WatermarkSearchResult,
    build_ocr_reader,
)
from unreel.engine.location import StorageLocation
from unreel.media.reader import MediaReader

WATERMARK: Final = "watermark"


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
        """Return the stored copy of the clip without watermarks."""
        return StoredClip(made=self.made, name=self.name, facts=self.facts)


def run_watermark_step(
    section: WatermarkRecipeSection, work: CurationJob, state: CurationState
) -> CurationState:
    """Add the watermarks of every segment to its notes; with `clean`, also a copy without them."""
    media = work.bench.media
    step: VersionedCurationStep[ClipWatermarks] = VersionedCurationStep(
        name=WATERMARK,
        version=1,
        settings={"texts": section.texts, "clean": section.clean},
        finds=TypeAdapter(CleanedClipWatermarks if section.clean else ClipWatermarks),
    )
    look = partial(_search_clip_watermarks, section=section, media=media)
    results = work.bench.ask(step, state.pieces.subjects(), look)

    def marked(piece: ClipSegment, result: ClipWatermarks) -> ClipSegment:
        cleaned = result.copy.below(media) if isinstance(result, CleanedClipWatermarks) else None
        notes = {**piece.notes, WATERMARK: to_json_values(result.marks)}
        return replace(piece, notes=notes, cleaned=cleaned)

    return state.after(
        work.shelf.sift(WATERMARK, filter_segments(WATERMARK, state.pieces, results, marked))
    )


def _search_clip_watermarks(
    reader: MediaReader,
    file: Path,
    _given: Given,
    *,
    section: WatermarkRecipeSection,
    media: StorageLocation,
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
        stored = store_clip_by_hash(into.read_bytes(), media, reader=reader)
    if isinstance(stored, Failure):
        return stored
    return CleanedClipWatermarks(
        made=stored.made, name=stored.name, facts=stored.facts, marks=result
    )


@lru_cache(maxsize=1)
def load_ocr_reader() -> ReadText:
    """Return the text recognition function, which is loaded once per process."""
    return build_ocr_reader()
