"""Marks on scenes that move: found where they are, and nowhere else."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from curation.planted import moving_scene, plant
from synthesise import ClipRecipe, synthesise
from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.curation.watermark.detection import (
    OcrTextLine,
    ReadText,
    WatermarkKind,
    WatermarkRegion,
    WatermarkSearchResult,
    build_ocr_reader,
    compute_pixel_median,
    find_watermarks,
)
from unreel.curation.watermark.step import (
    compute_inpaint_slices,
    find_clip_watermarks,
    remove_watermarks,
    write_unmarked_clip,
)
from unreel.media.access import open_media_reader
from unreel.media.decode import Rgb
from unreel.media.encode import ClipWriter, VideoTrackSettings

N = 40
KINDS = ("text", "logo")
ALPHAS = (1.0, 0.8, 0.6, 0.45)


def marked(seed: int) -> tuple[list[Rgb], list[Rgb], Box]:
    """A scene, the same with a mark, and the mark's box."""
    clean = moving_scene(seed, width=384, height=216)
    kind, alpha = KINDS[seed % 2], ALPHAS[seed // 2 % 4]
    return clean, *plant(clean, seed, kind=kind, alpha=alpha)


def test_marks_are_found_where_they_are_and_nowhere_else() -> None:
    """40 marked scenes and 40 clean ones, marks as faint as 0.45, without a text reader."""
    pytest.importorskip("cv2", reason="needs the extra `curate`")
    n_right = n_found = n_clean_marked = 0
    overlaps, painted_over = [], 0
    for seed in range(N):
        clean, shown, box = marked(seed)
        n_clean_marked += bool(find_watermarks(clean).found)
        found = find_watermarks(shown).found
        best = max((mark.box.iou(box) for mark in found), default=0.0)
        n_right += best > 0.5
        n_found += len(found)
        overlaps += [best] if best > 0.5 else []
        if seed % 4 == 0 and found:
            painted_over += 1
            assert find_watermarks(remove_watermarks(shown, found)).found == ()
    recall = n_right / N
    precision = n_right / (n_found + n_clean_marked)
    assert recall >= 0.9, f"recall {recall}"
    assert precision >= 0.9, f"precision {precision}"
    assert np.mean(overlaps) >= 0.7, f"mean IoU {np.mean(overlaps)}"
    assert painted_over >= 8


def test_painting_over_changes_nothing_outside_the_grown_box() -> None:
    pytest.importorskip("cv2", reason="needs the extra `curate`")
    clean, shown, box = marked(1)
    mark = WatermarkRegion(box=box, kind=WatermarkKind.TEXT, stability=1.0)
    painted = remove_watermarks(shown, [mark])
    rows, columns = compute_inpaint_slices(box, width=384, height=216)
    outside = np.ones((216, 384), bool)
    outside[rows, columns] = False
    for before, after, truth in zip(shown, painted, clean, strict=True):
        assert np.array_equal(before[outside], after[outside])
        ink = np.abs(before.astype(int) - truth) > 30
        away = np.abs(after.astype(int) - truth)[ink].mean()
        assert away < np.abs(before.astype(int) - truth)[ink].mean() / 2, "nearer to the scene"


@pytest.mark.parametrize("kind", KINDS)
def test_a_scene_that_stands_still_cannot_tell(kind: str) -> None:
    shown, _ = plant(moving_scene(1, pace=0), 1, kind=kind, alpha=1.0)
    told = find_watermarks(shown)
    assert told.found == ()
    assert told.inconclusive is not None
    assert "is still" in told.inconclusive


def says(text: str, box: Box) -> ReadText:
    """A reader that reads the same line off every picture."""
    return lambda picture: (OcrTextLine(text=text, box=box, confidence=0.9),)


def test_a_line_read_off_what_stays_is_a_mark_with_its_words() -> None:
    _, shown, box = marked(3)
    told = find_watermarks(shown, read_text=says("made by AI", box))
    assert [(mark.kind, mark.text) for mark in told.found] == [(WatermarkKind.TEXT, "made by AI")]
    assert told.found[0].box.iou(box) > 0.5


def test_a_line_near_the_border_of_a_still_scene_is_only_suspected() -> None:
    shown, box = plant(moving_scene(1, pace=0), 1, kind="text", alpha=1.0)
    told = find_watermarks(shown, read_text=says("Veo", box))
    assert told.found == ()
    assert [mark.text for mark in told.suspected] == ["Veo"]
    middle = find_watermarks(shown, read_text=says("SHOP", Box(0.4, 0.4, 0.6, 0.5)))
    assert middle.suspected == ()


def test_rapidocr_reads_a_mark_without_the_network() -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `curate`")
    shown, box = plant(moving_scene(9), 9, kind="text", alpha=1.0)
    lines = build_ocr_reader()(compute_pixel_median(shown))
    told = find_watermarks(shown, read_text=lambda picture: lines)
    assert len(told.found) == 1
    assert told.found[0].text is not None
    assert told.found[0].box.iou(box) > 0.5


def write(path: Path, frames: list[Rgb]) -> Path:
    height, width, _ = frames[0].shape
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=Fraction(12),
        time_base=Fraction(1, 12),
        options={"crf": "16", "preset": "veryfast"},
    )
    with ClipWriter("mp4", track) as writer:
        for tick, frame in enumerate(frames):
            writer.add_picture(frame, tick=tick)
        path.write_bytes(writer.finish())
    return path


def test_a_cleaned_file_has_no_mark_left_and_the_same_frames(tmp_path: Path) -> None:
    pytest.importorskip("cv2", reason="needs the extra `curate`")
    _, shown, box = marked(2)
    path, into, again = write(tmp_path / "a.mp4", shown), tmp_path / "b.mp4", tmp_path / "c.mp4"
    with open_media_reader(EnvironmentSettings(), trusted=False) as reader:
        told = write_unmarked_clip(path, reader=reader, into=into)
        assert not isinstance(told, Failure)
        assert told.found[0].box.iou(box) > 0.5
        left = find_clip_watermarks(into, reader=reader)
        assert not isinstance(left, Failure)
        assert left.found == ()
        write_unmarked_clip(path, reader=reader, into=again)
        before, after = reader.probe(path), reader.probe(into)
        assert not isinstance(before, Failure)
        assert not isinstance(after, Failure)
        assert after.video.n_frames == before.video.n_frames == len(shown)
        assert after.video.duration_s == before.video.duration_s
    assert into.read_bytes() == again.read_bytes()


def test_sound_stays_beside_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("cv2", reason="needs the extra `curate`")
    path, into = tmp_path / "a.mp4", tmp_path / "b.mp4"
    path.write_bytes(synthesise(ClipRecipe(tone_hz=440, n_frames=24)))
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        assert not isinstance(write_unmarked_clip(path, reader=reader, into=into), Failure)
        before, after = reader.sound(path), reader.sound(into)
    assert not isinstance(before, Failure)
    assert not isinstance(after, Failure)
    assert abs(after.duration_s - before.duration_s) < 0.1  # type: ignore[union-attr]
    n = 8_000
    some, other = (x.as_float()[4_000 : 4_000 + n] for x in (before, after))  # type: ignore[union-attr]
    assert np.abs(some).mean() == pytest.approx(np.abs(other).mean(), rel=0.1)


def test_a_clip_of_few_frames_is_inconclusive_and_a_broken_one_a_failure(tmp_path: Path) -> None:
    short = tmp_path / "short.mp4"
    short.write_bytes(synthesise(ClipRecipe(n_frames=3)))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no clip")
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        told = find_clip_watermarks(short, reader=reader)
        assert isinstance(told, WatermarkSearchResult)
        assert "too few" in str(told.inconclusive)
        assert isinstance(find_clip_watermarks(broken, reader=reader), Failure)
        assert isinstance(write_unmarked_clip(broken, reader=reader, into=tmp_path / "x"), Failure)
