"""Near-duplicates: those of one label are kept once, and all of one family stay in one split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from unreel.core.clip import ClipId
from unreel.curate.duplicates.section import DuplicatesSection
from unreel.curate.piece import LeftOut, Piece, Sifted, sift
from unreel.curate.state import State, Work
from unreel.curate.step import StepName, Subject, Workbench, as_plain
from unreel.media.fingerprint import Fingerprint
from unreel.media.matching import find_matches
from unreel.stats.joining import join

DUPLICATES: Final = "duplicates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kin:
    """The family of a clip: the first of those that show the same, or "" where none does."""

    family: str


def take(section: DuplicatesSection, work: Work, state: State) -> State:
    """Pieces with their families; with `drop`, one of each label and family: the largest picture."""
    named = name_families(work.bench, state.pieces)
    if section.near == "keep":
        return state.after(Sifted(pieces=tuple(named)))
    best = {
        (piece.family, piece.entry.label): piece
        for piece in sorted(named, key=_worth)
        if piece.family
    }
    return state.after(
        sift(
            DUPLICATES,
            named,
            [best.get((piece.family, piece.entry.label)) for piece in named],
            _unless_worse,
        )
    )


def name_families(bench: Workbench, pieces: Sequence[Piece]) -> list[Piece]:
    """Every piece with its family."""
    step = StepName(name=DUPLICATES, version=1, finds=TypeAdapter(Kin))
    prints = {p.clip.id: p.fingerprint for p in pieces if p.fingerprint is not None}
    subjects = [
        piece.subject(
            fingerprint=as_plain(prints[piece.clip.id]),
            pixels=_pixels(piece),
        )
        for piece in pieces
    ]
    kin = bench.settle(step, subjects, lambda asked: _families(asked, prints))
    return [replace(piece, family=own.family) for piece, own in zip(pieces, kin, strict=True)]


def _families(asked: Sequence[Subject], prints: Mapping[ClipId, Fingerprint]) -> list[Kin]:
    ids = sorted(subject.clip for subject in asked)
    matches = find_matches([(clip, prints[clip]) for clip in ids])
    groups = join(ids, [(match.first, match.second) for match in matches])
    family = {member: group[0] for group in groups if len(group) > 1 for member in group}
    return [Kin(family=family.get(subject.clip, "")) for subject in asked]


def _unless_worse(piece: Piece, best: Piece) -> Piece | LeftOut:
    if best is piece:
        return piece
    detail = f"shows the same as {best.entry.name}"
    return piece.left_out(DUPLICATES, "near-duplicate", detail)


def _worth(piece: Piece) -> tuple[int, int, str]:
    return _pixels(piece), piece.clip.facts.size_bytes, piece.clip.id


def _pixels(piece: Piece) -> int:
    video = piece.clip.facts.video
    return video.width * video.height
