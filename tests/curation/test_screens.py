import io
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from footage import film, write_clip
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.curation.clip_screens import (
    SCREENS,
    ClipScreenInput,
    KeepClipDecision,
    MotionScreen,
    QualityScreen,
    RemoveClipDecision,
    apply_clip_screens,
    build_clip_screen,
    build_scan_screen_input,
)
from unreel.media.messages import MAX_PIXELS
from unreel.media.scan import scan_clip

GOOD = ClipScreenInput(
    clip="c",
    duration_s=Fraction(5),
    n_frames=120,
    width=640,
    height=360,
    motion=8.0,
    sharpness=6.0,
    noise=1.0,
    lightness=110.0,
    extra={},
)


def measured(pictures) -> ClipScreenInput:
    data = write_clip(pictures)
    return build_scan_screen_input(scan_clip(io.BytesIO(data), max_pixels=MAX_PIXELS), clip="c")


@pytest.mark.parametrize("seed", range(4))
def test_a_clip_that_moves_passes_every_screen(seed) -> None:
    findings = measured(film(seed, n_frames=36))
    assert (
        apply_clip_screens(findings, [build_clip_screen(name) for name in SCREENS.entries])
        == KeepClipDecision()
    )


def test_a_still_picture_is_removed_for_its_lack_of_motion() -> None:
    judgement = MotionScreen().judge(measured([film(1)[0]] * 36))
    assert isinstance(judgement, RemoveClipDecision)
    assert judgement.screen == "motion"
    assert "below 5" in judgement.reason


@pytest.mark.parametrize(
    ("pictures", "word"),
    [
        ([np.zeros((96, 128, 3), np.uint8)] * 24, "sharpness"),
        ([picture // 60 for picture in film(1, n_frames=24)], "lightness"),
    ],
    ids=["blank", "black"],
)
def test_what_cannot_be_seen_is_removed(pictures, word) -> None:
    judgement = QualityScreen(least_sharpness=0.1).judge(measured(pictures))
    assert isinstance(judgement, RemoveClipDecision)
    assert word in judgement.reason


@pytest.mark.parametrize(
    "change",
    [{"sharpness": 0.1}, {"noise": 30.0}, {"lightness": 3.0}, {"lightness": 253.0}],
    ids=str,
)
def test_each_limit_of_quality_removes_alone(change) -> None:
    assert QualityScreen().judge(GOOD) == KeepClipDecision()
    assert isinstance(QualityScreen().judge(replace(GOOD, **change)), RemoveClipDecision)


def test_people_overrule_screens_both_ways() -> None:
    still = replace(GOOD, motion=0.0)
    screens = [MotionScreen()]
    assert apply_clip_screens(still, screens, decided="keep") == KeepClipDecision()
    assert apply_clip_screens(GOOD, screens, decided="remove") == RemoveClipDecision(
        "people", "a person removed it"
    )
    assert isinstance(apply_clip_screens(still, screens), RemoveClipDecision)


def test_the_first_screen_that_objects_gives_the_reason() -> None:
    bad = replace(GOOD, motion=0.0, lightness=0.0)
    judgement = apply_clip_screens(bad, [QualityScreen(), MotionScreen()])
    assert isinstance(judgement, RemoveClipDecision)
    assert judgement.screen == "quality"


def test_a_policy_of_another_package_is_found_by_its_entry_point(tmp_path, monkeypatch) -> None:
    module = tmp_path / "house_policy.py"
    module.write_text(
        "from unreel.curation.clip_screens import KeepClipDecision, RemoveClipDecision\n"
        "class Landscape:\n"
        "    name = 'landscape'\n"
        "    def judge(self, findings):\n"
        "        wide = findings.width >= findings.height\n"
        "        return KeepClipDecision() if wide else RemoveClipDecision(self.name, 'taller than wide')\n"
    )
    about = tmp_path / "house_policy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: house-policy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[unreel.screens]\nlandscape = house_policy:Landscape\nmotion = house_policy:Landscape\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    screen = build_clip_screen("landscape")
    assert screen.judge(GOOD) == KeepClipDecision()
    assert screen.judge(replace(GOOD, width=10)) == RemoveClipDecision(
        "landscape", "taller than wide"
    )
    assert isinstance(build_clip_screen("motion"), MotionScreen), "our names cannot be taken"


def test_an_unknown_screen_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="length, motion, quality"):
        build_clip_screen("motoin")


def test_a_setting_that_a_screen_lacks_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"screen\.motion"):
        build_clip_screen("motion", {"speed": 3})
