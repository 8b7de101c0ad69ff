"""Step that crops the filled borders of segments."""

from dataclasses import replace

from unreel.curation.recipe import CropRecipeSection
from unreel.curation.segment import ClipSegment
from unreel.curation.state import CurationJob, CurationState
from unreel.media.render import PixelCrop


def run_crop_step(
    _section: CropRecipeSection, work: CurationJob, state: CurationState
) -> CurationState:
    """Crop the filled borders, such as black bars, of every segment, and return the new state."""
    return state.after(work.shelf.sift("crop", map(_crop_segment_borders, state.pieces)))


def _crop_segment_borders(piece: ClipSegment) -> ClipSegment:
    bars, video = piece.shots[0].borders, piece.clip.facts.video
    if not bars:
        return piece
    crop = PixelCrop(
        left=bars.left,
        top=bars.top,
        width=video.width - bars.left - bars.right,
        height=video.height - bars.top - bars.bottom,
    )
    return replace(piece, cut=replace(piece.cut, crop=crop))
