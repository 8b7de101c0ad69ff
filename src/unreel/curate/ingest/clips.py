"""Files become clips: probed, hashed, each known once; what cannot be used is told why."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from unreel.benchmarks.entry import Rejected
from unreel.core.clip import UNKNOWN_CLIP
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.names import read_clip_id
from unreel.curate.ingest.sources import Listed
from unreel.curate.piece import FACTS, REJECTED, LeftOut, Piece, Sifted, keep_once
from unreel.curate.step import Found, StepName, Subject, Workbench
from unreel.media.reader import MediaReader

INGEST: Final = StepName(name="ingest", version=1)


def ingest(listed: Iterable[Listed | Rejected], bench: Workbench) -> Sifted:
    """The clips of `listed` in the order of their names, each set of bytes once, and what is left out."""
    out: list[LeftOut] = []
    usable: list[Listed] = []
    for one in listed:
        if isinstance(one, Rejected):
            out.append(LeftOut(one.name, INGEST.name, REJECTED, one.why))
        else:
            usable.append(one)
    usable.sort(key=lambda one: one.entry.name)
    subjects = [
        Subject(
            clip=UNKNOWN_CLIP, name=one.entry.name, location=one.location, given={"mark": one.mark}
        )
        for one in usable
    ]
    pieces: list[Piece] = []
    for one, found in zip(usable, bench.ask(INGEST, subjects, look_at_file), strict=True):
        if isinstance(found, Failure):
            out.append(LeftOut(one.entry.name, INGEST.name, found.reason.value, found.detail))
            continue
        clip = read_clip_id(found["clip"], INGEST.name)
        facts = FACTS.validate_python(found["facts"])
        pieces.append(
            Piece(
                entry=one.entry,
                clip=clip,
                location=one.location,
                facts=facts,
                source=clip,
                length_s=facts.video.duration_s,
            )
        )
    kept, doubled = keep_once(pieces, step=INGEST.name)
    return Sifted(pieces=tuple(kept), left_out=(*out, *doubled))


def look_at_file(reader: MediaReader, file: Path, _given: Found) -> Found | Failure:
    """The id of the file's bytes and the facts of its streams."""
    facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    return {"clip": clip_id(file), "facts": FACTS.dump_python(facts, mode="json")}
