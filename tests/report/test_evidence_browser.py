"""The evidence page in a real browser: it plays, seeks, and draws boxes where they are."""

import csv
import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from report.reviewed import review_with, trace_text, write
from scenes.ball import read_index
from synthesise import ClipRecipe, synthesise
from unreel.core.answer import Reply
from unreel.core.box import Box
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.media.access import open_media_reader

SECOND = 1_000_000
BALL = ClipRecipe(width=384, height=216, n_frames=48, seed=3)
MOVING = Trace(
    span=TimeSpan(SECOND // 2, 3 * SECOND // 2),
    track=(
        BoxAt(SECOND // 2, Box(0.1, 0.3, 0.3, 0.6)),
        BoxAt(3 * SECOND // 2 - 1, Box(0.5, 0.3, 0.9, 0.8)),
    ),
    categories=frozenset({Category.OBJECT_DISTORTION}),
    explanation="the ball bends",
)
SAID = {
    "recorded:one": {
        "trace": trace_text((96, 54, 192, 162), start_s=1.25),
        "realism": "<answer>2</answer>",
    },
    "recorded:other": {"trace": "REAL", "realism": "no idea"},
}
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\"'`&{{7*7}}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The page of a synthesised clip whose frames carry their index."""
    out = tmp_path_factory.mktemp("evidence")
    file = out / "ball.mp4"
    file.write_bytes(synthesise(BALL))
    write(review_with(file, SAID), out, true_trace=(MOVING,), note="A note.")
    return out


def picture_of(page, selector: str = ".player-stage") -> Image.Image:
    return Image.open(io.BytesIO(page.locator(selector).screenshot())).convert("RGB")


def outline(watched, place: int) -> tuple[Image.Image, tuple[float, float, float, float]]:
    """The stage without a track's box, and where that box is, in parts of the stage."""
    page = watched.page
    page.evaluate("for (const c of document.querySelectorAll('.player-caption')) c.hidden = true")
    boxes = page.locator(".player-name input")
    for other in range(boxes.count()):
        boxes.nth(other).set_checked(other == place)
    drawn = np.asarray(picture_of(page)).astype(int)
    boxes.nth(place).uncheck()
    bare = picture_of(page)
    changed = np.abs(drawn - np.asarray(bare)).sum(axis=-1) > 90
    rows, columns = np.nonzero(changed)
    assert len(rows), "the box is not drawn"
    height, width = changed.shape
    return bare, (
        columns.min() / width,
        rows.min() / height,
        (columns.max() + 1) / width,
        (rows.max() + 1) / height,
    )


def ready(watched, at_us: int = 1_250_000) -> None:
    """Waits until the player stands where it opens: at the first onset."""
    watched.wait("document.querySelector('video').readyState >= 2")
    watched.wait(f"document.querySelector('.player').dataset.atUs === '{at_us}'")


def seek_by_trace(watched, name: str, at_us: int) -> None:
    watched.page.get_by_role("button", name=name).click()
    watched.wait(f"document.querySelector('.player').dataset.atUs === '{at_us}'")
    watched.wait("(v => v.readyState >= 2 && !v.seeking)(document.querySelector('video'))")


@pytest.mark.parametrize("way", ["disk", "server"])
def test_it_plays(watched, serve, folder, way) -> None:
    if way == "disk":
        page = watched.open(folder / "evidence.html")
    else:
        page = watched.open_at(serve(folder) + "evidence.html")
    ready(watched)
    page.evaluate("document.querySelector('video').playbackRate = 0.25")  # not over before Pause
    page.get_by_role("button", name="Play").click()
    watched.wait("Number(document.querySelector('.player').dataset.atUs) > 1300000")
    page.get_by_role("button", name="Pause").click()
    assert page.evaluate("document.querySelector('video').paused")


def test_a_trace_leads_to_its_instant_and_its_box_is_there(watched, folder) -> None:
    watched.open(folder / "evidence.html")
    ready(watched)
    seek_by_trace(watched, "recorded:one: it bends", 1_250_000)
    bare, found = outline(watched, 1)
    assert read_index(np.asarray(bare)) == 30
    assert found == pytest.approx((0.25, 0.25, 0.5, 0.75), abs=0.006)


def test_a_moving_box_is_straight_between_its_marks(watched, folder) -> None:
    page = watched.open(folder / "evidence.html")
    ready(watched)
    seek_by_trace(watched, "ground truth", 500_000)
    _, first = outline(watched, 0)
    assert first == pytest.approx((0.1, 0.3, 0.3, 0.6), abs=0.006)
    for _ in range(12):
        before = page.evaluate("document.querySelector('.player').dataset.atUs")
        page.get_by_role("button", name="Next frame").click()
        watched.wait(f"document.querySelector('.player').dataset.atUs !== '{before}'")
    bare, half = outline(watched, 0)
    assert read_index(np.asarray(bare)) == 24
    assert half == pytest.approx((0.3, 0.3, 0.6, 0.7), abs=0.006)


def test_keys_alone_are_enough(watched, folder) -> None:
    page = watched.open(folder / "evidence.html")
    ready(watched)
    page.get_by_role("button", name="recorded:one: it bends").focus()
    page.keyboard.press("Enter")
    watched.wait("document.querySelector('.player').dataset.atUs === '1250000'")
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    watched.wait("document.querySelector('.player').dataset.atUs === '0'")


def test_a_frame_that_was_sent_leads_to_its_instant(watched, folder) -> None:
    page = watched.open(folder / "evidence.html")
    ready(watched)
    page.locator("details").first.locator("summary").click()
    sent = page.locator("details").first.locator(".thumbs button")
    assert sent.count() == 4
    assert page.locator(".player-tick").count() == 4
    assert page.locator(".thumbs img").count() == 16
    assert page.evaluate("[...document.images].every(i => i.src)")
    sent.nth(3).click()
    watched.wait("document.querySelector('.player').dataset.atUs === '1750000'")
    assert read_index(np.asarray(picture_of(page))) == 42


@pytest.mark.parametrize("form", ["watched", "narrow"])
def test_nobody_is_shut_out(request, folder, form) -> None:
    browser = request.getfixturevalue(form)
    page = browser.open(folder / "evidence.html")
    ready(browser)
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.violations() == []
    # Nothing is wider than the window, so nobody scrolls sideways.
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_nothing_that_was_said_is_run(watched, tmp_path) -> None:
    file = tmp_path / "<img src=x onerror='window.hacked = 3'>.mp4"
    file.write_bytes(synthesise(replace(BALL, n_frames=24)))
    said = {f"recorded:{HOSTILE}": {"trace": trace_text((1, 1, 90, 90), start_s=0, why=HOSTILE)}}
    review = review_with(file, said)
    opinions = tuple(
        replace(one, prompt=HOSTILE, outcome=Reply(text=HOSTILE)) for one in review.opinions
    )
    truth = (replace(MOVING, explanation=HOSTILE),)
    write(replace(review, opinions=opinions), tmp_path, true_trace=truth, note=HOSTILE)
    page = watched.open(tmp_path / "evidence.html")
    ready(watched, 0)
    page.get_by_role("button", name="recorded:").first.click()
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert page.evaluate("window.hacked === undefined")
    assert (
        page.evaluate("document.querySelectorAll('main img:not(.thumbs img, .still img)').length")
        == 0
    )
    assert page.evaluate("document.scripts.length") == 4
    assert page.evaluate("document.body.innerText.includes('{{7*7}}')")


def test_a_form_that_browsers_do_not_play_is_shown_as_a_copy(watched, tmp_path) -> None:
    file = tmp_path / "ball.ts"
    file.write_bytes(synthesise(replace(BALL, container="ts")))
    write(review_with(file, SAID), tmp_path)
    page = watched.open(tmp_path / "evidence.html")
    ready(watched)
    assert "copy in H.264" in page.locator("main").inner_text()
    seek_by_trace(watched, "recorded:one: it bends", 1_250_000)
    bare, found = outline(watched, 0)
    assert read_index(np.asarray(bare)) == 30
    assert found == pytest.approx((0.25, 0.25, 0.5, 0.75), abs=0.006)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("container", "start_s"),
    [
        ("mp4", 7),
        pytest.param("webm", 7, marks=pytest.mark.slow),
        pytest.param("mp4", Fraction(-1, 2), marks=pytest.mark.slow),
    ],
)
def test_a_clip_that_begins_elsewhere_seeks_to_the_frame_that_unreel_marks(
    watched, tmp_path, container, start_s, at_once
) -> None:
    file = tmp_path / f"late.{container}"
    instants = tuple(start_s + Fraction(index, 24) for index in range(48))
    file.write_bytes(synthesise(replace(BALL, container=container, instants_s=instants)))
    said = {"recorded:one": {"trace": trace_text((96, 54, 192, 162), start_s=1.25)}}
    write(review_with(file, said), tmp_path)
    watched.open(tmp_path / "evidence.html")
    if not at_once:
        ready(watched)
    seek_by_trace(watched, "recorded:one: it bends", 1_250_000)
    bare, _ = outline(watched, 0)
    before = 12 if start_s < 0 else 0  # an edit list leaves out what lies before 0
    assert read_index(np.asarray(bare)) == before + 30


@pytest.fixture(scope="module")
def real_page(shared: Path, tmp_path_factory) -> tuple[Path, Path]:
    """The page of the smallest of the shared clips that lasts two seconds, and that clip."""
    with (shared / "clips" / "manifest.csv").open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["bytes"]))
    chosen = next(row for row in rows if row["vcodec"] == "h264" and float(row["duration_s"]) > 2)
    clip = shared / "clips" / chosen["file"]
    out = tmp_path_factory.mktemp("real")
    width, height = int(chosen["width"]), int(chosen["height"])
    box = (width * 0.2, height * 0.3, width * 0.6, height * 0.7)
    write(review_with(clip, {"recorded:real": {"trace": trace_text(box, start_s=1.0)}}), out)
    return out, clip


def test_a_real_clip_seeks_to_the_frame_that_unreel_decodes(watched, real_page) -> None:
    out, clip = real_page
    watched.open(out / "evidence.html")
    watched.wait("Number(document.querySelector('.player').dataset.atUs) >= 998000")
    at_us = int(watched.page.evaluate("document.querySelector('.player').dataset.atUs"))
    bare, found = outline(watched, 0)
    assert found == pytest.approx((0.2, 0.3, 0.6, 0.7), abs=0.008)
    with open_media_reader(EnvironmentSettings(), trusted=False) as reader:
        facts = reader.probe(clip)
        sampled = reader.frames(clip, sampling=f"fps-{facts.video.average_rate}", longest_side=160)
    small = [np.asarray(Image.fromarray(f.rgb())).astype(int) for f in sampled.frames]
    shown = np.asarray(bare.resize((small[0].shape[1], small[0].shape[0]))).astype(int)
    apart = [float(np.abs(shown - one).mean()) for one in small]
    expected = round(at_us / SECOND * facts.video.average_rate)
    assert apart[expected] <= min(apart) + 0.25
    assert apart[expected] < 12
    assert watched.violations() == []
