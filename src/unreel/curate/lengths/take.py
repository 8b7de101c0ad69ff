"""Real pieces come to last as generated ones do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from pydantic import TypeAdapter

from unreel.core.judgement import Label
from unreel.curate.lengths.matching import TooShort, Trim, match_lengths
from unreel.curate.lengths.section import LengthsSection
from unreel.curate.piece import LeftOut, Piece, sift
from unreel.curate.state import State, Work
from unreel.curate.step import StepName, Subject

LENGTHS: Final = "lengths"


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long a piece is to last; `None` where it stays as it is or is too short for any."""

    length_s: Fraction | None = None
    too_short: bool = False


def take(_section: LengthsSection, work: Work, state: State) -> State:
    """Real pieces trimmed so that they last as the generated ones do; those too short for it go."""
    seed = work.recipe.seed
    step = StepName(name=LENGTHS, version=1, settings={"seed": seed}, finds=TypeAdapter(Length))
    by_id = {piece.id: piece for piece in state.pieces}
    subjects = [
        piece.subject(piece=piece.id, label=piece.entry.label.value, length_s=str(piece.length_s))
        for piece in state.pieces
    ]

    def decide(asked: Sequence[Subject]) -> list[Length]:
        names = [subject.given["piece"] for subject in asked]
        trims = _trims({name: by_id[name] for name in names}, seed=seed)
        return [_length(trims.get(name)) for name in names]

    lengths = work.bench.settle(step, subjects, decide)
    return state.after(sift(LENGTHS, state.pieces, lengths, _trimmed))


def _trims(pieces: Mapping[str, Piece], *, seed: int) -> Mapping[str, Trim | TooShort]:
    real = {
        name: piece.length_s for name, piece in pieces.items() if piece.entry.label is Label.REAL
    }
    wanted = [piece.length_s for name, piece in pieces.items() if name not in real]
    return match_lengths(real, wanted, seed=seed) if real and wanted else {}


def _length(trim: Trim | TooShort | None) -> Length:
    if isinstance(trim, Trim):
        return Length(length_s=trim.length_s)
    return Length(too_short=trim is not None)


def _trimmed(piece: Piece, length: Length) -> Piece | LeftOut:
    if length.too_short:
        detail = f"{float(piece.length_s):.2f} s; the shortest length left over is longer"
        return piece.left_out(LENGTHS, "too-short", detail)
    if length.length_s is None:
        return piece
    shorter = length.length_s < piece.length_s
    cut = replace(piece.cut, length_s=length.length_s) if shorter else piece.cut
    return replace(piece, cut=cut, length_s=length.length_s)
