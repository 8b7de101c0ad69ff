"""First frames of clips as JPEG files, the input of image-to-video generators."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import ClipId
from unreel.core.failure import Failure
from unreel.core.identity import bytes_id
from unreel.core.names import read_clip_id
from unreel.curation.piece import ClipSegment, MadeFile, apply_filter, stored_name
from unreel.curation.recipe import FreezeSection
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import Given, StepName
from unreel.engine.location import StorageLocation
from unreel.media.reader import MediaReader, SampledFrame

FIRST_FRAME: Final = "first_frame"
FIRST_FRAME_PLAN: Final = "fps-1/86400"
"""One frame a day: the first one of any clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFrame:
    """Stored first frame of a clip: hash, file name and size in bytes."""

    sha256: ClipId
    name: str
    bytes: int


def run_step(_section: FreezeSection, work: CurationJob, state: CurationState) -> CurationState:
    """Return the state with the first frame of every segment stored as a full-size JPEG."""
    step = StepName(name=FIRST_FRAME, version=1, finds=TypeAdapter(FirstFrame))
    media = work.bench.media
    look = partial(_store_first_frame, media=media)
    found = work.bench.ask(step, state.pieces.subjects(), look)
    pictured = apply_filter(
        FIRST_FRAME, state.pieces, found, partial(_add_first_frame, media=media)
    )
    return state.after(work.shelf.sift(FIRST_FRAME, pictured))


def first_frame(reader: MediaReader, path: Path) -> SampledFrame | Failure:
    """Return the first frame of the clip as a full-size JPEG."""
    found = reader.frames(path, sampling=FIRST_FRAME_PLAN)
    return found if isinstance(found, Failure) else found.frames[0]


def _store_first_frame(
    reader: MediaReader, file: Path, _given: Given, *, media: StorageLocation
) -> FirstFrame | Failure:
    frame = first_frame(reader, file)
    if isinstance(frame, Failure):
        return frame
    sha256 = bytes_id(frame.data)
    name = stored_name(sha256, ".jpg")
    media.put(name, frame.data)
    return FirstFrame(sha256=sha256, name=name, bytes=len(frame.data))


def _add_first_frame(
    piece: ClipSegment, picture: FirstFrame, *, media: StorageLocation
) -> ClipSegment:
    sha256 = read_clip_id(picture.sha256, FIRST_FRAME)
    location = (media / stored_name(sha256, ".jpg")).uri
    made = MadeFile(sha256=sha256, location=location, size_bytes=picture.bytes)
    return replace(piece, first_frame=made)
