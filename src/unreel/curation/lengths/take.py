"""Real pieces come to last as generated ones do."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from pydantic import TypeAdapter

from unreel.core.judgement import Label
from unreel.curation.lengths.matching import TOO_SHORT, ClipLengths, draw_lengths
from unreel.curation.lengths.section import LengthsSection
from unreel.curation.piece import ClipSegment, ExcludedSegment, sift
from unreel.curation.pieces import SegmentTable
from unreel.curation.state import CurationJob, CurationState
from unreel.curation.step import Given, StepName
from unreel.engine.stage import Row

LENGTHS: Final = "lengths"
_STAYS: Final = -2
"""In the place of a length: that of a generated clip, which nobody changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLength:
    """Target length of a segment; `None` if it is unchanged or too short for any."""

    length_s: Fraction | None = None
    too_short: bool = False


def take(_section: LengthsSection, work: CurationJob, state: CurationState) -> CurationState:
    """Real pieces trimmed so that they last as the generated ones do; those too short for it go."""
    seed = work.recipe.seed
    step = StepName(
        name=LENGTHS, version=1, settings={"seed": seed}, finds=TypeAdapter(TargetLength)
    )
    pieces = state.pieces
    subjects = pieces.subjects(_given, ("id", "label", "length_s"))
    lengths = work.bench.settle(step, subjects, lambda: _decide(pieces, seed=seed))
    return state.after(work.shelf.sift(LENGTHS, sift(LENGTHS, pieces, lengths, _trimmed)))


def _given(row: Row) -> Given:
    return {"piece": row["id"].hex(), "label": row["label"], "length_s": row["length_s"]}


def _decide(pieces: SegmentTable, *, seed: int) -> Callable[[int], TargetLength]:
    real = pieces.strings("label") == Label.REAL.value
    own, spelled = pieces.codes("length_s")
    lengths_s = [Fraction(text) for text in spelled.to_pylist()]
    if real.all() or not real.any():
        return lambda _: TargetLength()
    ids = pieces.rows.digests("id")
    lasting = ClipLengths(lengths_s=lengths_s, own=own[real], names=ids[real])
    given = np.full(len(pieces), _STAYS)
    given[real] = draw_lengths(lasting, own[~real], seed=seed)

    def found(place: int) -> TargetLength:
        if given[place] == _STAYS:
            return TargetLength()
        too_short = bool(given[place] == TOO_SHORT)
        return TargetLength(
            length_s=None if too_short else lengths_s[given[place]], too_short=too_short
        )

    return found


def _trimmed(piece: ClipSegment, length: TargetLength) -> ClipSegment | ExcludedSegment:
    if length.too_short:
        detail = f"{float(piece.length_s):.2f} s; the shortest length left over is longer"
        return piece.left_out(LENGTHS, "too-short", detail)
    if length.length_s is None:
        return piece
    shorter = length.length_s < piece.length_s
    cut = replace(piece.cut, length_s=length.length_s) if shorter else piece.cut
    return replace(piece, cut=cut, length_s=length.length_s)
