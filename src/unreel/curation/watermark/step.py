"""Overlaid marks: found on each clip and written down."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import ClipId
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.normalise.stored_clips import StoredClip, store_clip
from unreel.curation.piece import ClipSegment, apply_filter
from unreel.curation.recipe import WatermarkSection
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import Given, StepName, as_plain
from unreel.curation.watermark.clip import clean_clip, find_clip_watermarks
from unreel.curation.watermark.mark import WatermarkSearch
from unreel.curation.watermark.text import ReadText, build_text_reader
from unreel.engine.location import StorageLocation
from unreel.media.reader import MediaReader

WATERMARK: Final = "watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedClip:
    """The marks of a clip."""

    marks: WatermarkSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedClip(MarkedClip):
    """The marks of a clip, and its copy without them, as `StoredClip` has it."""

    made: ClipId
    name: str
    facts: ClipFacts

    @property
    def copy(self) -> StoredClip:
        """Return the copy without watermarks."""
        return StoredClip(made=self.made, name=self.name, facts=self.facts)


def run_step(section: WatermarkSection, work: CurationJob, state: CurationState) -> CurationState:
    """Return every segment with its watermarks in its notes.

    With `clean`, each segment also gets a copy without watermarks.
    """
    media = work.bench.media
    step: StepName[MarkedClip] = StepName(
        name=WATERMARK,
        version=1,
        settings={"texts": section.texts, "clean": section.clean},
        finds=TypeAdapter(CleanedClip if section.clean else MarkedClip),
    )
    look = partial(_search_watermarks, section=section, media=media)
    found = work.bench.ask(step, state.pieces.subjects(), look)

    def marked(piece: ClipSegment, own: MarkedClip) -> ClipSegment:
        cleaned = own.copy.below(media) if isinstance(own, CleanedClip) else None
        notes = {**piece.notes, WATERMARK: as_plain(own.marks)}
        return replace(piece, notes=notes, cleaned=cleaned)

    return state.after(
        work.shelf.sift(WATERMARK, apply_filter(WATERMARK, state.pieces, found, marked))
    )


def _search_watermarks(
    reader: MediaReader,
    file: Path,
    _given: Given,
    *,
    section: WatermarkSection,
    media: StorageLocation,
) -> MarkedClip | Failure:
    read_text = read_texts() if section.texts else None
    if not section.clean:
        marks = find_clip_watermarks(file, reader=reader, read_text=read_text)
        return marks if isinstance(marks, Failure) else MarkedClip(marks=marks)
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "clean.mp4"
        marks = clean_clip(file, reader=reader, into=into, read_text=read_text)
        if isinstance(marks, Failure):
            return marks
        stored = store_clip(into.read_bytes(), media, reader=reader)
    if isinstance(stored, Failure):
        return stored
    return CleanedClip(made=stored.made, name=stored.name, facts=stored.facts, marks=marks)


@lru_cache(maxsize=1)
def read_texts() -> ReadText:
    """Return the text reader, which is loaded once per process."""
    return build_text_reader()
