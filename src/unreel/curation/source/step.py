"""Source step: probes, hashes and deduplicates the input files; unusable files are excluded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.unique_names import NAMED_BEFORE
from unreel.core.clip import UNKNOWN_CLIP, Clip, ClipFacts, ClipId
from unreel.core.content_ids import compute_clip_id
from unreel.core.failure import Failure
from unreel.core.safe_names import read_clip_id
from unreel.curation.recipe import SourceRecipeSection
from unreel.curation.segment import (
    GIVE_LICENCE,
    NO_LICENCE,
    REJECTED,
    ClipSegment,
    ExcludedSegment,
    ExcludedSegmentWriter,
    SegmentExclusions,
)
from unreel.curation.segment_table import (
    CurationStepResult,
    ReiterableStream,
    SegmentWorkDirectory,
    deduplicate_segments,
)
from unreel.curation.source.source_clips import SourceClip, SourceReadContext, list_source_clips
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step_execution import CurationStepRequest, Given, VersionedCurationStep
from unreel.curation.working_table import WorkingTable, write_working_table
from unreel.media.reader import MediaReader

_STEP: Final = "ingest"
_ENTRY: Final = TypeAdapter(Entry)
_TEXTS: Final = ("name", "location", "mark", "licence")


def write_source_listing(
    listed: Iterable[SourceClip | Rejected], shelf: SegmentWorkDirectory
) -> tuple[WorkingTable, SegmentExclusions]:
    """Write the `listed` clips to a table sorted by name, and the rejected ones as exclusions."""
    leaving = ExcludedSegmentWriter(shelf.folder, "listing")
    rows = write_working_table(
        shelf.folder,
        "listing.rows",
        _iter_listing_rows(listed, leaving),
        _build_listing_schema(),
    )
    return rows.by_name(), leaving.end()


def filter_source_listing(
    listing: WorkingTable, shelf: SegmentWorkDirectory, *, require_licence: bool
) -> tuple[WorkingTable, SegmentExclusions]:
    """Select the first clip of each name, with a licence if `require_licence`; also return the exclusions."""
    leaving = ExcludedSegmentWriter(shelf.folder, "listing-sifted")
    keep = np.ones(len(listing), np.bool_)
    index, before = 0, None
    for batch in listing.batches(("name", "location", "licence")):
        for row in batch.to_pylist():
            name, location = row["name"], row["location"]
            if name == before:
                leaving.add(ExcludedSegment(name, _STEP, REJECTED, NAMED_BEFORE))
                keep[index] = False
            elif require_licence and not row["licence"]:
                detail = f"it has no licence. {GIVE_LICENCE}"
                leaving.add(ExcludedSegment(name, _STEP, NO_LICENCE, detail, location))
                keep[index] = False
            index, before = index + 1, name
    return listing.where(keep), leaving.end()


def read_source_listing(listing: WorkingTable) -> Iterator[SourceClip]:
    """Read the listing table and yield its rows as source clips."""
    for batch in listing.batches(("entry", "location", "mark")):
        for row in batch.to_pylist():
            yield SourceClip(_ENTRY.validate_json(row["entry"]), row["location"], row["mark"])


def _build_listing_schema() -> Any:
    import pyarrow as pa

    return pa.schema([*((name, pa.string()) for name in _TEXTS), ("entry", pa.binary())])


def _iter_listing_rows(
    listed: Iterable[SourceClip | Rejected], leaving: ExcludedSegmentWriter
) -> Iterator[dict[str, Any]]:
    for row in listed:
        if isinstance(row, Rejected):
            leaving.add(ExcludedSegment(row.name, _STEP, REJECTED, row.why))
        else:
            yield {
                "name": row.entry.name,
                "location": row.location,
                "mark": row.mark,
                "licence": row.entry.licence,
                "entry": _ENTRY.dump_json(row.entry),
            }


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedFile:
    """Result of ingesting a file: the hash of its bytes and the properties of its streams."""

    clip: ClipId
    facts: ClipFacts


INGEST: Final = VersionedCurationStep(name="ingest", version=1, finds=TypeAdapter(IngestedFile))


def run_source_step(
    sections: Sequence[SourceRecipeSection], work: CurationJob, state: CurationState
) -> CurationState:
    """Ingest the clips of all sources as segments, sorted by name and deduplicated by content."""
    context, shelf = work.bench, work.shelf
    reading = SourceReadContext(root=work.root, access=context.access, place=context.place)
    listing, rejected = write_source_listing(list_source_clips(sections, reading), shelf)
    usable, refused = filter_source_listing(
        listing, shelf, require_licence=work.recipe.require_licence
    )
    results = context.ask(
        INGEST,
        ReiterableStream(lambda: map(_build_ingest_request, read_source_listing(usable))),
        probe_and_hash_file,
    )
    pairs = zip(read_source_listing(usable), results, strict=True)
    ingested = shelf.sift(INGEST.name, starmap(_build_ingested_segment, pairs))
    unique, doubled = deduplicate_segments(ingested.pieces, step=INGEST.name)
    excluded = rejected + refused + ingested.left_out + shelf.leave("ingest-same", doubled)
    return state.after(CurationStepResult(pieces=unique, left_out=excluded))


def _build_ingest_request(row: SourceClip) -> CurationStepRequest:
    return CurationStepRequest(
        clip=UNKNOWN_CLIP, name=row.entry.name, location=row.location, given={"mark": row.mark}
    )


def probe_and_hash_file(reader: MediaReader, file: Path, _given: Given) -> IngestedFile | Failure:
    """Return the hash of the file's bytes and the properties of its streams."""
    facts = reader.probe(file)
    return (
        facts
        if isinstance(facts, Failure)
        else IngestedFile(clip=compute_clip_id(file), facts=facts)
    )


def _build_ingested_segment(
    row: SourceClip, file: IngestedFile | Failure
) -> ClipSegment | ExcludedSegment:
    if isinstance(file, Failure):
        name, reason = row.entry.name, file.reason.value
        return ExcludedSegment(name, INGEST.name, reason, file.detail, row.location)
    clip = Clip(id=read_clip_id(file.clip, INGEST.name), location=row.location, facts=file.facts)
    length_s = file.facts.video.duration_s
    return ClipSegment(entry=row.entry, clip=clip, source=clip.id, length_s=length_s)
