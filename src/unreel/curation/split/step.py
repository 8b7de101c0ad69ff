"""Clips become pieces, one for each shot."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from unreel.curation.measures import MeasuredShot
from unreel.curation.piece import ClipSegment, ExcludedSegment
from unreel.curation.recipe import SplitSection
from unreel.curation.state import CurationJob, CurationState
from unreel.media.render import FrameRange


def run_step(section: SplitSection, work: CurationJob, state: CurationState) -> CurationState:
    """Return one segment for each shot that lasts at least `shortest_s`.

    Segments of a cut clip have `#` and the number of the shot at the end of their names.
    """
    return state.after(work.shelf.sift("split", _iter_shot_segments(state.pieces, section)))


def _iter_shot_segments(
    pieces: Iterable[ClipSegment], section: SplitSection
) -> Iterator[ClipSegment | ExcludedSegment]:
    for piece in pieces:
        for number, shot in enumerate(piece.shots, start=1):
            part = shot_piece(piece, shot, number=number if len(piece.shots) > 1 else None)
            if part.length_s >= section.shortest_s:
                yield part
                continue
            detail = f"{float(part.length_s):.2f} s is less than {float(section.shortest_s):g} s"
            yield part.left_out("split", "too-short", detail)


def shot_piece(piece: ClipSegment, shot: MeasuredShot, *, number: int | None) -> ClipSegment:
    """Return the segment of one shot; the whole clip if `number` is `None`."""
    if number is None:
        return piece
    return replace(
        piece,
        entry=replace(piece.entry, name=f"{piece.entry.name}#{number}"),
        cut=FrameRange(first_frame=shot.first_frame, end_frame=shot.end_frame),
        start_s=shot.start_s,
        length_s=shot.length_s,
        shots=(shot,),
    )
