"""Step that turns files into clips: probe, hash and deduplicate; unusable files get a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import UNKNOWN_CLIP, Clip, ClipId
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.names import read_clip_id
from unreel.curation.piece import ClipSegment, ExcludedSegment
from unreel.curation.pieces import ReiterableStream, StepResult, keep_once
from unreel.curation.source.section import SourceSection
from unreel.curation.source.sorting import read_listing, sift_listing, write_listing
from unreel.curation.source.sources import SourceClip, SourceContext, list_sources
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import Given, StepName, StepSubject
from unreel.media.reader import MediaReader


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFile:
    """Identity of a file: the hash of its content and the properties of its streams."""

    clip: ClipId
    facts: ClipFacts


INGEST: Final = StepName(name="ingest", version=1, finds=TypeAdapter(IngestedFile))


def take(
    sections: Sequence[SourceSection], work: CurationJob, state: CurationState
) -> CurationState:
    """The clips of all sources in the order of their names, each set of bytes once."""
    bench, shelf = work.bench, work.shelf
    around = SourceContext(root=work.root, access=bench.access, place=bench.place)
    listing, rejected = write_listing(list_sources(sections, around), shelf)
    usable, refused = sift_listing(listing, shelf, require_licence=work.recipe.require_licence)
    asked = bench.ask(
        INGEST, ReiterableStream(lambda: map(_subject, read_listing(usable))), look_at_file
    )
    found = zip(read_listing(usable), asked, strict=True)
    ingested = shelf.sift(INGEST.name, starmap(_piece, found))
    kept, doubled = keep_once(ingested.pieces, step=INGEST.name)
    left_out = rejected + refused + ingested.left_out + shelf.leave("ingest-same", doubled)
    return state.after(StepResult(pieces=kept, left_out=left_out))


def _subject(row: SourceClip) -> StepSubject:
    return StepSubject(
        clip=UNKNOWN_CLIP, name=row.entry.name, location=row.location, given={"mark": row.mark}
    )


def look_at_file(reader: MediaReader, file: Path, _given: Given) -> IngestedFile | Failure:
    """The id of the file's bytes and the facts of its streams."""
    facts = reader.probe(file)
    return facts if isinstance(facts, Failure) else IngestedFile(clip=clip_id(file), facts=facts)


def _piece(row: SourceClip, found: IngestedFile | Failure) -> ClipSegment | ExcludedSegment:
    if isinstance(found, Failure):
        name, reason = row.entry.name, found.reason.value
        return ExcludedSegment(name, INGEST.name, reason, found.detail, row.location)
    clip = Clip(id=read_clip_id(found.clip, INGEST.name), location=row.location, facts=found.facts)
    length_s = found.facts.video.duration_s
    return ClipSegment(entry=row.entry, clip=clip, source=clip.id, length_s=length_s)
