"""A clip on its way through a curation: what its makers say, the file it is cut from, and the cut."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.benchmarks.entry import Entry
from unreel.core.clip import ClipId
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.names import read_clip_id
from unreel.curate.step import Found, Subject, to_json
from unreel.engine.place import Place
from unreel.media.render import WHOLE, Cut

FACTS: Final = TypeAdapter(ClipFacts)
CUT: Final = TypeAdapter(Cut)

REJECTED: Final = "rejected"
CONTRADICTION: Final = "contradiction"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeClip:
    """A file that a step made, named by its content."""

    clip: ClipId
    location: str
    facts: ClipFacts

    @classmethod
    def of(cls, made: Found, media: Place) -> "MadeClip":
        """The file that a finding tells of."""
        clip = read_clip_id(made["made"], media.uri)
        facts = FACTS.validate_python(made["facts"])
        return cls(clip=clip, location=(media / stored_name(clip, ".mp4")).uri, facts=facts)


def stored_name(sha256: ClipId, suffix: str) -> str:
    """Where bytes lie below the folder of media: by their hash."""
    return f"{sha256[:2]}/{sha256}{suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """Bytes that are published: their hash and where they lie."""

    sha256: str
    location: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One clip of the benchmark to be: a file, or the part of it that `cut` names."""

    entry: Entry
    clip: ClipId
    """The file's bytes."""
    location: str
    facts: ClipFacts
    """Of the whole file."""
    source: ClipId
    """The ingested file that it comes from: its unique source video."""
    cut: Cut = WHOLE
    start_s: Fraction = Fraction(0)
    """When the piece begins, from the file's first frame."""
    length_s: Fraction
    """How long the piece lasts."""
    cleaned: MadeClip | None = None
    """A copy without its watermarks."""
    first_frame: MadeFile | None = None
    family: str = ""
    """Near-duplicates share one; "" where it has none."""
    measures: Found = field(default_factory=dict)
    """What the scan measured, for the steps that decide by it."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What steps found out about it, by step: JSON that goes into the manifest."""

    @property
    def id(self) -> str:
        """Identity of the piece: the same bytes and the same cut are the same piece."""
        return digest("piece", self.clip, to_json(CUT.dump_python(self.cut, mode="json")))

    def subject(self, **given: Any) -> Subject:
        """What a step is asked about the piece's file."""
        return Subject(clip=self.clip, name=self.entry.name, location=self.location, given=given)


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """A file or clip that does not come into the benchmark, by which step and why."""

    name: str
    step: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """What a step makes of the pieces that it was given."""

    pieces: tuple[Piece, ...]
    left_out: tuple[LeftOut, ...] = ()


def failed_piece(piece: Piece, step: str, failure: Failure) -> LeftOut:
    """The piece as one that `step` could not deal with."""
    return LeftOut(piece.entry.name, step, failure.reason.value, failure.detail)


def keep_once(pieces: Sequence[Piece], *, step: str) -> tuple[list[Piece], list[LeftOut]]:
    """The first of all pieces with the same bytes; none of them where their labels contradict."""
    same: defaultdict[ClipId, list[Piece]] = defaultdict(list)
    for piece in pieces:
        same[piece.clip].append(piece)
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for first, *others in same.values():
        names = [piece.entry.name for piece in (first, *others)]
        if len({piece.entry.label for piece in (first, *others)}) > 1:
            told = f"real under one of these names and generated under another: {', '.join(names)}"
            out += [LeftOut(name, step, CONTRADICTION, told) for name in names]
            continue
        kept.append(first)
        out += [LeftOut(name, step, "duplicate", f"the bytes of {names[0]}") for name in names[1:]]
    return kept, out
