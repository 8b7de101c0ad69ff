"""What lies over a clip's picture, and whether it names a generator."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from curation.planted import moving_scene
from footage import write_clip
from synthesise import ClipRecipe, synthesise
from unreel.core.box import Box
from unreel.core.settings import EnvironmentSettings
from unreel.curation.watermark.detection import (
    WatermarkKind,
    WatermarkRegion,
    WatermarkSearchResult,
)
from unreel.media.access import open_media_reader
from unreel.report.review.provenance import FileOriginCheckOutcome
from unreel.report.review.visible_watermarks import (
    build_watermark_check,
    check_visible_watermarks,
    find_generator_name,
)

CORNER = Box(0.8, 0.85, 0.95, 0.92)


def mark(text: str | None) -> WatermarkRegion:
    kind = WatermarkKind.TEXT if text else WatermarkKind.LOGO
    return WatermarkRegion(box=CORNER, kind=kind, text=text, stability=1.0)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("KlingAI", "Kling"),
        ("KlingAl", "Kling"),  # as a reader of pictures takes it
        ("KLING AI 2.1", "Kling"),
        ("made with Sora", "Sora"),
        ("@someone sora", "Sora"),
        ("Veo", "Veo"),
        ("\u901a\u4e49\u00b7AI\u751f\u6210", "AI-generated"),
        ("AI-generated content", "AI-generated"),
        ("Pikachu", None),
        ("Sorafenib", None),
        ("video", None),
        ("", None),
    ],
)
def test_a_generators_name_is_known_by_its_letters(text, named) -> None:
    assert find_generator_name(text) == named


def test_a_mark_that_names_a_generator_is_the_files_own_claim() -> None:
    told = build_watermark_check(WatermarkSearchResult(found=(mark(None), mark("KlingAl"))))
    assert told.found is FileOriginCheckOutcome.SOMETHING
    assert told.claim == (
        "The words \u201cKlingAl\u201d can be read in its lower right corner, as on clips made with Kling."
    )
    assert "A logo stays in the lower right corner" in told.says


@pytest.mark.parametrize("text", ["Veo la lluvia", "Sora", "Luma Street", "HeyGen raises $60M"])
def test_a_mere_name_is_a_hint_and_no_claim(text: str) -> None:
    told = build_watermark_check(WatermarkSearchResult(found=(mark(text),)))
    assert told.claim == ""
    assert "or words of the scene" in told.hint
    assert told.hint in told.says


@pytest.mark.parametrize("text", ["KLING AI 2.1", "made with Sora", "AI-generated content"])
def test_a_known_mark_or_a_statement_is_a_claim(text: str) -> None:
    told = build_watermark_check(WatermarkSearchResult(found=(mark(text),)))
    assert text in told.claim
    assert told.hint == ""


def test_a_known_mark_that_may_be_of_the_scene_is_a_hint() -> None:
    told = build_watermark_check(WatermarkSearchResult(suspected=(mark("KlingAI"),)))
    assert (told.claim, "Kling" in told.hint) == ("", True)


def test_other_words_claim_nothing() -> None:
    told = build_watermark_check(
        WatermarkSearchResult(found=(mark("CHANNEL 4"),), suspected=(mark("EXIT"),))
    )
    assert told.claim == ""
    assert "\u201cCHANNEL 4\u201d stay" in told.says
    assert (
        "\u201cEXIT\u201d can be read near the border: a mark, or words of the scene." in told.says
    )


def test_what_could_not_be_told_is_said() -> None:
    why = "70% of the picture is still"
    told = build_watermark_check(WatermarkSearchResult(inconclusive=why))
    assert told.found is FileOriginCheckOutcome.NOTHING
    assert "None was found in the part of the picture that moves." in told.says
    assert why in told.says


def test_strangers_words_stay_on_one_short_line() -> None:
    told = build_watermark_check(WatermarkSearchResult(found=(mark("sora\x1b[31m " + "x" * 500),)))
    assert "\x1b" not in told.claim + told.says
    assert len(told.claim) < 200


def write_marked_clip(path: Path) -> Path:
    canvas = Image.new("L", (480, 270))
    ImageDraw.Draw(canvas).text((360, 235), "KlingAI", fill=255, font=ImageFont.load_default(22))
    ink = np.asarray(canvas)[..., None] / 255
    frames = [(f * (1 - ink) + 245 * ink).astype(np.uint8) for f in moving_scene(4)]
    path.write_bytes(write_clip(frames, rate=12, crf=16))
    return path


def test_a_mark_is_read_off_a_file_that_a_confined_child_opens(tmp_path: Path) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `review`")
    path = write_marked_clip(tmp_path / "kling.mp4")
    with open_media_reader(EnvironmentSettings(), trusted=False) as reader:
        found = check_visible_watermarks(path, reader)
    assert found.found is FileOriginCheckOutcome.SOMETHING
    assert "as on clips made with Kling" in found.claim
    assert "lower right corner" in found.claim


def test_words_that_were_not_searched_are_never_none_found(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)  # as if it were not installed
    path = write_marked_clip(tmp_path / "kling.mp4")
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        check = check_visible_watermarks(path, reader)
    assert check.says.startswith("Text on the picture was not searched: ")
    assert "pip install 'unreel[review]'" in check.says
    assert "None was found" not in check.says

    empty = build_watermark_check(
        WatermarkSearchResult(), unread="Text on the picture was not searched: why."
    )
    assert empty.found is FileOriginCheckOutcome.NOT_SEARCHED
    assert "No logo was found." in empty.says
    assert "None was found" not in empty.says


def test_a_clip_of_few_frames_or_none_is_told_as_not_looked_at(tmp_path: Path) -> None:
    short = tmp_path / "short.mp4"
    short.write_bytes(synthesise(ClipRecipe(n_frames=3)))
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        found = [check_visible_watermarks(path, reader) for path in (short, tmp_path / "gone.mp4")]
    assert [one.found for one in found] == [
        FileOriginCheckOutcome.NOT_SEARCHED,
        FileOriginCheckOutcome.NOT_SEARCHED,
    ]
    assert "has 3 frames" in found[0].says
    assert "not-a-file" in found[1].says
