"""Clips become pieces: one for each shot, without borders, real ones as long as generated ones."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from unreel.core.judgement import Label
from unreel.curate.lengths import Trim, match_lengths
from unreel.curate.piece import LeftOut, Piece, Sifted
from unreel.curate.step import Found, StepName, Subject, Workbench
from unreel.media.render import Crop, Cut

SHOT: Final = "shot"
"""The shot of its file's scan that a piece is."""


def split_pieces(pieces: Sequence[Piece], *, shortest_s: Fraction) -> Sifted:
    """A piece for each shot that lasts `shortest_s`; pieces of a cut clip have their number behind `#`."""
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece in pieces:
        shots = piece.measures["shots"]
        for number, shot in enumerate(shots, start=1):
            part = shot_piece(piece, shot, number=number if len(shots) > 1 else None)
            if part.length_s >= shortest_s:
                kept.append(part)
                continue
            detail = f"{float(part.length_s):.2f} s is less than {float(shortest_s):g} s"
            out.append(LeftOut(part.entry.name, "split", "too-short", detail))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def shot_piece(piece: Piece, shot: Found, *, number: int | None) -> Piece:
    """One shot of a whole clip; without a `number` it is all of it."""
    if number is None:
        return replace(piece, measures={**piece.measures, SHOT: shot})
    cut = Cut(first_frame=shot["first_frame"], end_frame=shot["end_frame"])
    return replace(
        piece,
        entry=replace(piece.entry, name=f"{piece.entry.name}#{number}"),
        cut=cut,
        start_s=Fraction(shot["start_s"]),
        length_s=Fraction(shot["length_s"]),
        measures={**piece.measures, SHOT: shot},
    )


def crop_pieces(pieces: Sequence[Piece]) -> Sifted:
    """Every piece without its filled borders."""
    return Sifted(pieces=tuple(map(_cropped, pieces)))


def _cropped(piece: Piece) -> Piece:
    found = piece.measures.get(SHOT) or piece.measures["shots"][0]
    left, top, right, bottom = (
        found["borders"][side] for side in ("left", "top", "right", "bottom")
    )
    if not any((left, top, right, bottom)):
        return piece
    video = piece.facts.video
    crop = Crop(
        left=left,
        top=top,
        width=video.width - left - right,
        height=video.height - top - bottom,
    )
    return replace(piece, cut=replace(piece.cut, crop=crop))


def match_piece_lengths(bench: Workbench, pieces: Sequence[Piece], *, seed: int) -> Sifted:
    """Real pieces trimmed so that they last as the generated ones do; those too short for it go."""
    step = StepName(name="lengths", version=1, settings={"seed": seed})
    subjects = [
        piece.subject(piece=piece.id, label=piece.entry.label.value, length_s=str(piece.length_s))
        for piece in pieces
    ]
    found = bench.settle(step, subjects, lambda asked: _trims(asked, seed=seed))
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece, trim in zip(pieces, found, strict=True):
        if trim["too_short"]:
            detail = f"{float(piece.length_s):.2f} s; the shortest length left over is longer"
            out.append(LeftOut(piece.entry.name, step.name, "too-short", detail))
        elif trim["length_s"] is None:
            kept.append(piece)
        else:
            length_s = Fraction(trim["length_s"])
            cut = replace(piece.cut, length_s=length_s) if length_s < piece.length_s else piece.cut
            kept.append(replace(piece, cut=cut, length_s=length_s))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def _trims(asked: Sequence[Subject], *, seed: int) -> list[dict[str, Any]]:
    lengths_s = {one.given["piece"]: Fraction(one.given["length_s"]) for one in asked}
    label_of = {one.given["piece"]: one.given["label"] for one in asked}
    real = {name: s for name, s in lengths_s.items() if label_of[name] == Label.REAL.value}
    wanted = [s for name, s in lengths_s.items() if label_of[name] != Label.REAL.value]
    trims = match_lengths(real, wanted, seed=seed) if real and wanted else {}
    return [_told(trims.get(one.given["piece"])) for one in asked]


def _told(trim: object) -> dict[str, Any]:
    if trim is None:
        return {"length_s": None, "too_short": False}
    if isinstance(trim, Trim):
        return {"length_s": str(trim.length_s), "too_short": False}
    return {"length_s": None, "too_short": True}
