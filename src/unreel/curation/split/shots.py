"""Single-theme shots: a clip is cut where the colours of two frames in a row differ too much."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from unreel.media.scan import FULL, ClipScan

THRESHOLD: Final = 0.5
"""Bhattacharyya distance above which two frames belong to different shots, as in Video Reality Test."""

PEAK: Final = 0.25
PEAK_RATIO: Final = 3.0
PEAK_FRAMES: Final = 4
"""How many distances on either side a lonely peak is compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameShot:
    """A run of frames without a cut."""

    first_frame: int
    n_frames: int
    start_s: Fraction
    """When its first frame appears, after the clip's first."""
    end_s: Fraction

    @property
    def length_s(self) -> Fraction:
        """Return the length."""
        return self.end_s - self.start_s


def colour_distances(histograms: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the Bhattacharyya distance (0 to 1) of each frame to the previous frame; 0 for the first."""
    roots = histograms.astype(np.float64) / FULL
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    alike = np.einsum("ij,ij->i", roots[1:], roots[:-1])
    return np.concatenate([[0.0], np.sqrt(np.clip(1 - alike, 0, 1))])


def find_cuts(
    histograms: NDArray[np.uint8], *, threshold: float = THRESHOLD, peak: float | None = PEAK
) -> tuple[int, ...]:
    """Return the indices of the frames that begin a new shot, without the first frame of the clip.

    A frame begins a shot if its distance to the previous frame is above `threshold`. It also begins
    a shot if the distance is above `peak` and at least `PEAK_RATIO` times every other distance near
    the frame: a cut between scenes of similar colours. With `None` for `peak`, only the first rule
    applies, as in Video Reality Test.
    """
    distances = colour_distances(histograms)
    cuts = distances > threshold
    if peak is not None:
        cuts |= (distances > peak) & (
            distances >= PEAK_RATIO * _compute_neighbour_maxima(distances)
        )
    return tuple(int(place) for place in np.flatnonzero(cuts))


def split_shots(scan: ClipScan, cuts: Sequence[int]) -> tuple[FrameShot, ...]:
    """Return the shots between `cuts` in order, with exact times; together they cover the whole clip."""
    edges = [0, *cuts, scan.n_frames]
    instants_s = (*scan.instants_s, scan.end_s)
    return tuple(
        FrameShot(
            first_frame=first,
            n_frames=after - first,
            start_s=instants_s[first],
            end_s=instants_s[after],
        )
        for first, after in pairwise(edges)
    )


def _compute_neighbour_maxima(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest neighbour of each distance; infinite if the distance has no neighbour."""
    beside = np.full(len(distances), -np.inf)
    for step in range(1, PEAK_FRAMES + 1):
        beside[step:] = np.maximum(beside[step:], distances[:-step])
        beside[:-step] = np.maximum(beside[:-step], distances[step:])
    beside[beside < 0] = np.inf
    return beside
