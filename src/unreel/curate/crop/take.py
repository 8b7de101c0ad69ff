"""Pieces lose their filled borders."""

from dataclasses import replace

from unreel.curate.crop.section import CropSection
from unreel.curate.piece import Piece
from unreel.curate.state import State, Work
from unreel.media.render import Crop


def take(_section: CropSection, work: Work, state: State) -> State:
    """Every piece without its filled borders."""
    return state.after(work.shelf.sift("crop", map(_cropped, state.pieces)))


def _cropped(piece: Piece) -> Piece:
    bars, video = piece.shots[0].borders, piece.clip.facts.video
    if not bars:
        return piece
    crop = Crop(
        left=bars.left,
        top=bars.top,
        width=video.width - bars.left - bars.right,
        height=video.height - bars.top - bars.bottom,
    )
    return replace(piece, cut=replace(piece.cut, crop=crop))
