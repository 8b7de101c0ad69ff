"""Stills of the reported faults, and what is told of them."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from report.reviewed import review_with, trace_text, write
from scenes.ball import read_index
from synthesise import ClipRecipe, planted_trace, synthesise
from unreel.core.box import Box
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import UnsafeTargetError
from unreel.media.overlay import NARROWEST, PALETTE
from unreel.report.review.evidence_page import MAX_STILLS, FaultOutline, draw_fault_crop

CLIP = ClipRecipe(n_frames=24, width=500, height=300, seed=3)
PLACED = trace_text((250, 150, 375, 225), start_s=0.5)


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("clips") / "clip.mp4"
    file.write_bytes(synthesise(CLIP))
    return file


def pixels(file: Path) -> np.ndarray:
    return np.asarray(Image.open(file).convert("RGB"))


def test_a_marked_fault_is_shown_whole_and_cut_out_with_instant_and_hashes(clip, tmp_path) -> None:
    evidence = write(review_with(clip, {"one": {"trace": PLACED}}), tmp_path)
    (still,) = evidence.stills.stills
    row = still.to_json()
    assert (row["reviewer"], row["frame"], row["at_us"], row["at_s"]) == ("one", 12, 500_000, 0.5)
    assert row["box"] == {"x0": 0.5, "y0": 0.5, "x1": 0.75, "y1": 0.75}
    assert row["category"] is None
    assert row["source_sha256"] == compute_clip_id(clip)
    for picture in (row["whole"], row["crop"]):
        data = (tmp_path / picture["file"]).read_bytes()
        assert picture["sha256"] == hashlib.sha256(data).hexdigest()
    whole = pixels(tmp_path / row["whole"]["file"])
    assert read_index(whole[:300, :500]) == 12
    assert whole.shape[0] > 300
    red = np.abs(whole[:300].astype(int) - PALETTE[0]).sum(-1) < 30
    assert red[150:225, 245:250].any()
    assert not red[152:223, 252:373].any()


def test_the_page_shows_the_stills_and_their_hashes(clip, tmp_path) -> None:
    evidence = write(review_with(clip, {"one": {"trace": PLACED}}), tmp_path)
    html = evidence.page.read_text(encoding="utf-8")
    (still,) = evidence.stills.stills
    assert "Stills of the reported faults" in html
    assert still.whole is not None
    assert still.crop is not None
    for told in (still.whole.file, still.crop.file, still.whole.sha256, "0.50 s, frame 12"):
        assert told in html


def test_a_mark_without_a_place_gives_the_whole_frame_alone(clip, tmp_path) -> None:
    text = "FAKE <start_time>0.25</start_time> <explanation>it bends</explanation>"
    (still,) = write(review_with(clip, {"one": {"trace": text}}), tmp_path).stills.stills
    assert (still.frame, still.crop) == (6, None)
    assert still.whole is not None


def test_a_mark_without_an_instant_gives_the_first_frame_and_says_so(clip, tmp_path) -> None:
    (still,) = write(review_with(clip, {"one": {"trace": "FAKE"}}), tmp_path).stills.stills
    assert (still.frame, still.fault.start_us) == (0, None)


def test_a_box_that_leaves_the_picture_is_shown_as_far_as_it_is_in_it(clip, tmp_path) -> None:
    text = trace_text((400, 200, 900, 700), start_s=0.5)
    (still,) = write(review_with(clip, {"one": {"trace": text}}), tmp_path).stills.stills
    assert still.fault.box == Box(0.8, 2 / 3, 1, 1)
    assert still.crop is not None


def test_a_box_beside_the_picture_is_no_place(clip, tmp_path) -> None:
    text = trace_text((600, 400, 900, 700), start_s=0.5)
    (still,) = write(review_with(clip, {"one": {"trace": text}}), tmp_path).stills.stills
    assert still.fault.box is None
    assert still.crop is None


def test_who_calls_it_real_or_says_nothing_leaves_no_still(clip, tmp_path) -> None:
    evidence = write(review_with(clip, {"one": {"trace": "REAL"}, "two": {}}), tmp_path)
    assert evidence.stills.stills == ()
    assert not (tmp_path / "stills").exists()
    assert "Stills of the reported faults" not in evidence.page.read_text(encoding="utf-8")


def test_what_is_known_has_its_category(tmp_path) -> None:
    recipe = ClipRecipe(scene="street", flawed=True, width=320, height=180, n_frames=60, seed=4)
    file = tmp_path / "street.mp4"
    file.write_bytes(synthesise(recipe))
    review = review_with(file, {"one": {"trace": "REAL"}})
    known = write(review, tmp_path / "out", true_trace=(planted_trace(recipe),)).stills.stills[0]
    assert known.to_json()["category"] == "object splitting"
    assert known.fault.kind == "truth"


def test_there_are_twelve_at_most_and_the_page_tells_how_many_are_not_there(clip, tmp_path) -> None:
    said = {f"reviewer-{n:02d}": {"trace": PLACED} for n in range(MAX_STILLS + 3)}
    evidence = write(review_with(clip, said), tmp_path)
    assert len(evidence.stills.stills) == MAX_STILLS
    assert evidence.stills.to_json()["left_out"] == 3
    assert "3 more marks are not shown" in evidence.page.read_text(encoding="utf-8")


def test_a_clip_that_cannot_be_read_again_is_a_reason_and_not_a_picture(clip, tmp_path) -> None:
    review = review_with(clip, {"one": {"trace": PLACED}})
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(clip.read_bytes()[:2000])
    evidence = write(
        replace(review, clip=replace(review.clip, location=str(broken))), tmp_path / "out"
    )
    (still,) = evidence.stills.stills
    assert still.whole is None
    assert still.to_json()["failure"]["reason"] == "undecodable"
    assert "No still could be made: undecodable" in evidence.page.read_text(encoding="utf-8")


def test_stills_of_an_earlier_review_go_and_other_files_stay(clip, tmp_path) -> None:
    (tmp_path / "stills").mkdir()
    (tmp_path / "stills" / "07-gone-frame-3.png").write_bytes(b"old")
    (tmp_path / "stills" / "holiday.png").write_bytes(b"mine")
    write(review_with(clip, {"one": {"trace": "REAL"}}), tmp_path)
    assert [path.name for path in (tmp_path / "stills").iterdir()] == ["holiday.png"]


def test_a_link_in_the_place_of_the_folder_is_not_followed(clip, tmp_path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "07-gone-frame-3.png").write_bytes(b"mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "stills").symlink_to(elsewhere)
    with pytest.raises(UnsafeTargetError):
        write(review_with(clip, {"one": {"trace": PLACED}}), tmp_path / "out")
    assert [path.name for path in elsewhere.iterdir()] == ["07-gone-frame-3.png"]


@pytest.mark.parametrize(
    "box", [Box(0, 0, 0.01, 0.01), Box(0.9, 0.9, 1, 1), Box(0, 0, 1, 1), Box(0.5, 0.1, 0.501, 0.9)]
)
@pytest.mark.parametrize("size", [(640, 360), (33, 17), (90, 1600)])
def test_any_box_of_any_picture_can_be_cut_out(box, size) -> None:
    rgb = np.full((size[1], size[0], 3), 128, np.uint8)
    drawn = draw_fault_crop(rgb, FaultOutline(box=box, colour=2), ["words"])
    assert drawn.shape[1] >= NARROWEST
    assert (np.abs(drawn.astype(int) - PALETTE[2]).sum(-1) < 30).any()
