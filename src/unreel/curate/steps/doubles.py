"""Near-duplicates: those of one label are kept once, and all of one family stay in one split."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from unreel.curate.duplicates import Fingerprint, find_matches, group_duplicates
from unreel.curate.piece import LeftOut, Piece, Sifted
from unreel.curate.step import StepName, Subject, Workbench

DUPLICATES: Final = "duplicates"


def sort_duplicates(bench: Workbench, pieces: Sequence[Piece], *, drop: bool) -> Sifted:
    """Pieces with their families; with `drop`, one of each label and family: the largest picture."""
    step = StepName(name=DUPLICATES, version=1)
    subjects = [
        piece.subject(
            fingerprint=piece.measures["fingerprint"],
            pixels=piece.facts.video.width * piece.facts.video.height,
        )
        for piece in pieces
    ]
    found = bench.settle(step, subjects, _families)
    families = [one["family"] for one in found]
    named = [replace(piece, family=family) for piece, family in zip(pieces, families, strict=True)]
    if not drop:
        return Sifted(pieces=tuple(named))
    best = {
        (piece.family, piece.entry.label): piece
        for piece in sorted(named, key=_worth)
        if piece.family
    }
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece in named:
        other = best.get((piece.family, piece.entry.label), piece)
        if other is piece:
            kept.append(piece)
        else:
            detail = f"shows the same as {other.entry.name}"
            out.append(LeftOut(piece.entry.name, DUPLICATES, "near-duplicate", detail))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def _worth(piece: Piece) -> tuple[int, int, str]:
    video = piece.facts.video
    return video.width * video.height, piece.facts.size_bytes, piece.clip


def _families(asked: Sequence[Subject]) -> list[dict[str, Any]]:
    ids = sorted(one.clip for one in asked)
    prints = {one.clip: Fingerprint.from_json(one.given["fingerprint"]) for one in asked}
    matches = find_matches([(clip, prints[clip]) for clip in ids])
    groups = group_duplicates(ids, [(match.first, match.second) for match in matches])
    family = {
        member: group.canonical for group in groups for member in (group.canonical, *group.others)
    }
    return [{"family": family.get(one.clip, "")} for one in asked]
