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
    """Bhattacharyya distance (0 to 1) of each frame of a scan to the one before; 0 for the first."""
    roots = histograms.astype(np.float64) / FULL
    roots /= np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    alike = np.einsum("ij,ij->i", roots[1:], roots[:-1])
    return np.concatenate([[0.0], np.sqrt(np.clip(1 - alike, 0, 1))])


def find_cuts(
    histograms: NDArray[np.uint8], *, threshold: float = THRESHOLD, peak: float | None = PEAK
) -> tuple[int, ...]:
    """Indices of the frames with which a new shot begins; the clip's first frame is not among them.

    A frame begins a shot when its distance to the one before is above `threshold`, or above `peak` and
    `PEAK_RATIO` times as large as any other near it: a cut between scenes of like colours. `None` for
    `peak` leaves the rule of Video Reality Test alone.
    """
    distances = colour_distances(histograms)
    cuts = distances > threshold
    if peak is not None:
        cuts |= (distances > peak) & (
            distances >= PEAK_RATIO * _compute_neighbour_maxima(distances)
        )
    return tuple(int(place) for place in np.flatnonzero(cuts))


def split_shots(scan: ClipScan, cuts: Sequence[int]) -> tuple[FrameShot, ...]:
    """The shots between `cuts`, at exact times, in order; together they are the whole clip."""
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
    """For each distance the largest of its neighbours; infinite where it has none."""
    beside = np.full(len(distances), -np.inf)
    for step in range(1, PEAK_FRAMES + 1):
        beside[step:] = np.maximum(beside[step:], distances[:-step])
        beside[:-step] = np.maximum(beside[:-step], distances[step:])
    beside[beside < 0] = np.inf
    return beside
