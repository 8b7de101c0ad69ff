"""Files become clips: probed, hashed, each known once; what cannot be used is told why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import Rejected
from unreel.core.clip import UNKNOWN_CLIP, Clip, ClipId
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.names import read_clip_id
from unreel.curate.piece import (
    GIVE_LICENCE,
    NO_LICENCE,
    REJECTED,
    LeftOut,
    Piece,
    Sifted,
    keep_once,
)
from unreel.curate.source.section import SourceSection
from unreel.curate.source.sources import Listed, Surroundings, list_sources
from unreel.curate.state import State, Work
from unreel.curate.step import Given, StepName, Subject, Workbench
from unreel.media.reader import MediaReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What a file is: the id of its bytes and the facts of its streams."""

    clip: ClipId
    facts: ClipFacts


INGEST: Final = StepName(name="ingest", version=1, finds=TypeAdapter(Ingested))


def take(sections: Sequence[SourceSection], work: Work, state: State) -> State:
    """The clips of all sources."""
    bench = work.bench
    around = Surroundings(root=work.root, access=bench.access, place=bench.place)
    listed = list_sources(sections, around)
    return state.after(ingest(listed, bench, require_licence=work.recipe.require_licence))


def ingest(
    listed: Iterable[Listed | Rejected], bench: Workbench, *, require_licence: bool
) -> Sifted:
    """The clips of `listed` in the order of their names, each set of bytes once, and what is left out."""
    out: list[LeftOut] = []
    usable: list[Listed] = []
    for row in listed:
        if isinstance(row, Rejected):
            out.append(LeftOut(row.name, INGEST.name, REJECTED, row.why))
        elif require_licence and not row.entry.licence:
            name = row.entry.name
            why = f"nothing names its licence. {GIVE_LICENCE}"
            out.append(LeftOut(name, INGEST.name, NO_LICENCE, why, row.location))
        else:
            usable.append(row)
    usable.sort(key=lambda row: row.entry.name)
    subjects = [
        Subject(
            clip=UNKNOWN_CLIP, name=row.entry.name, location=row.location, given={"mark": row.mark}
        )
        for row in usable
    ]
    pieces: list[Piece] = []
    asked = bench.ask(INGEST, subjects, look_at_file)
    for row, found in zip(usable, asked, strict=True):
        if isinstance(found, Failure):
            name, reason = row.entry.name, found.reason.value
            out.append(LeftOut(name, INGEST.name, reason, found.detail, row.location))
        else:
            pieces.append(_piece(row, found))
    kept, doubled = keep_once(pieces, step=INGEST.name)
    return Sifted(pieces=tuple(kept), left_out=(*out, *doubled))


def look_at_file(reader: MediaReader, file: Path, _given: Given) -> Ingested | Failure:
    """The id of the file's bytes and the facts of its streams."""
    facts = reader.probe(file)
    return facts if isinstance(facts, Failure) else Ingested(clip=clip_id(file), facts=facts)


def _piece(row: Listed, found: Ingested) -> Piece:
    clip = Clip(id=read_clip_id(found.clip, INGEST.name), location=row.location, facts=found.facts)
    length_s = found.facts.video.duration_s
    return Piece(entry=row.entry, clip=clip, source=clip.id, length_s=length_s)
