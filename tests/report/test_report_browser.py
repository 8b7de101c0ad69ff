"""A report in a real browser: looked at, filtered, linked to, played, and attacked."""

import csv
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from pages.specs import read_spec
from report.reported import (
    BOX,
    HOSTILE,
    START_US,
    accuse,
    ask,
    entry,
    lay_out,
    record,
    trace,
    write_rows,
)
from unreel.report.site import write_report

NEAR = 0.006
"""Parts of the stage: about three pixels."""
TRUTH_COLOUR = (0x2E, 0xC4, 0xB6)
ENTRIES = [
    entry("film"),
    entry("veo-1", "Veo", traces=[trace("object-merging")]),
    entry("veo-2", "Veo", traces=[trace("other")]),
    entry("sora-1", "Sora", traces=[trace("other")]),
]
SAID = {
    "film": accuse(),
    "veo-1": accuse(box="[96, 0, 192, 64]", start="0.75"),
    "veo-2": "REAL",
    "sora-1": {"failure": "rate-limited", "detail": "429"},
}


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on one recorded reviewer and one floor."""
    root = tmp_path_factory.mktemp("browser")
    bench = lay_out(root / "bench", ENTRIES)
    told = record(root / "seer.jsonl", SAID)
    runs = [
        ask(root / "a", bench, protocol="trace", model="recorded", recorded=str(told)),
        ask(root / "b", bench, protocol="trace", model="always-real"),
    ]
    return write_report(runs, root / "out").page


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every text that a stranger can write is markup."""
    root = tmp_path_factory.mktemp("attacked")
    file = "<img src=x onerror=alert(1)>"
    rows = [
        entry(file, f"maker {HOSTILE}", traces=[trace("other", explanation=HOSTILE)]),
        entry("film", group=HOSTILE, split=HOSTILE, prompt=HOSTILE, difficulty=HOSTILE),
    ]
    bench = lay_out(root / "bench", rows)
    (bench / "metadata.jsonl").write_text(
        (bench / "metadata.jsonl").read_text().replace(f'"name": "{file}"', '"name": "x</script>"'),
        encoding="utf-8",
    )
    rows = {file: accuse(why=HOSTILE) + HOSTILE, "film": {"failure": "refused", "detail": HOSTILE}}
    told = record(root / f"{file}.jsonl", rows)
    run = ask(root / "run", bench, protocol="trace", model="recorded", recorded=str(told))
    return write_report([run], root / "out").page


def test_filters_narrow_the_list_and_the_address_leads_back(watched: Any, page: Path) -> None:
    sheet = watched.open(page)
    names = sheet.locator(".clip-name")
    assert names.all_text_contents() == ["film", "veo-1", "veo-2", "sora-1"]
    sheet.select_option("[name=reviewer]", label="recorded:seer")
    sheet.select_option("[name=show]", "wrong")
    assert names.all_text_contents() == ["film", "veo-2"]
    sheet.select_option("[name=show]", "failed")
    assert names.all_text_contents() == ["sora-1"]
    sheet.select_option("[name=show]", "")
    sheet.select_option("[name=creator]", "Veo")
    sheet.select_option("[name=category]", "other")
    assert names.all_text_contents() == ["veo-2"]
    assert sheet.inner_text("#found") == "1 of 4 clips"
    sheet.click(".clip-row")
    sheet.locator("#clip .player").wait_for()
    address = sheet.evaluate("location.href")
    assert "clip=" in address
    assert "creator=Veo" in address
    sheet.goto("about:blank")
    sheet.goto(address)
    sheet.locator("#clip .player").wait_for()
    assert names.all_text_contents() == ["veo-2"]
    assert sheet.inner_text("#clip-title") == "veo-2"
    sheet.click("button[type=reset]")
    watched.wait("document.querySelectorAll('.clip-name').length === 4")


def test_the_list_has_a_headed_column_for_each_reviewer_and_sorts_by_it(
    watched: Any, page: Path
) -> None:
    sheet = watched.open(page)
    heads = sheet.locator("#list thead th")
    assert heads.all_inner_texts() == ["Clip", "Made by", "recorded:seer", "always-real"]
    signs = sheet.locator(".clip-row:has-text('sora-1') td").all_inner_texts()
    assert [sign.split()[0] for sign in signs] == ["sora-1", "Sora", "!", "✗"]
    names = sheet.locator(".clip-name")
    heads.nth(2).locator("button").click()
    assert names.all_text_contents() == ["film", "veo-2", "sora-1", "veo-1"]  # wrong, failed, right
    assert heads.nth(2).get_attribute("aria-sort") == "ascending"
    heads.nth(0).locator("button").click()
    heads.nth(0).locator("button").click()
    assert names.all_text_contents() == ["veo-2", "veo-1", "sora-1", "film"]
    assert heads.nth(0).get_attribute("aria-sort") == "descending"
    assert heads.nth(2).get_attribute("aria-sort") is None
    sheet.locator(".list").evaluate(
        "frame => { frame.style.maxHeight = '14rem'; frame.scrollTop = 99; }"
    )
    frame, head = (sheet.locator(s).bounding_box() for s in (".list", "#list thead th >> nth=0"))
    assert abs(frame["y"] - head["y"]) < 3  # it stays where it is


def test_the_browser_of_clips_tells_the_player_what_its_spec_says(watched: Any, page: Path) -> None:
    sheet = watched.open(page)
    sheet.evaluate(
        "() => { const mount = unreelPlayer.mount;"
        " unreelPlayer.mount = (place, spec) => mount(place, (window.told = spec)); }"
    )
    sheet.click(".clip-row:has-text('veo-1')")
    spec = read_spec(watched.wait("window.told"))
    assert (spec.title, len(spec.instants)) == ("veo-1", 24)
    truth, answer, floor = spec.tracks
    assert (truth.kind, truth.traces[0].label) == ("truth", "object-merging")
    assert (answer.kind, answer.traces[0].boxes[0].at_us) == ("answer", 750_000)
    assert (floor.traces, floor.note, floor.failed) == ((), "calls it real", False)
    assert spec.opens_us == 750_000
    sheet.evaluate("window.told = null")
    sheet.click(".clip-row:has-text('sora-1')")
    _, failed, _ = read_spec(watched.wait("window.told")).tracks
    assert (failed.note, failed.failed) == ("rate-limited", True)
    sheet.evaluate("window.told = null")
    sheet.click(".clip-row:has-text('film')")
    assert [track.kind for track in read_spec(watched.wait("window.told")).tracks] == ["answer"] * 2


def test_a_clip_plays_seeks_and_shows_both_boxes_in_their_places(
    watched: Any, serve: Callable[[Path], str], page: Path
) -> None:
    sheet = watched.open_at(serve(page.parent))
    sheet.keyboard.press("j")
    sheet.keyboard.press("j")
    sheet.locator("#clip-title", has_text="veo-1").wait_for()
    sheet.locator(".player-trace.truth").click()
    arrive(sheet, START_US)
    assert place_of(sheet, ".player-box.truth") == pytest.approx(BOX, abs=NEAR)
    shot = Image.open(io.BytesIO(sheet.locator(".player-stage").screenshot())).convert("RGB")
    edge = (round(BOX["x0"] * shot.width) + 1, round(0.5 * shot.height))
    assert shot.getpixel(edge) == pytest.approx(TRUTH_COLOUR, abs=40)
    assert sheet.locator(".player-box.c0").is_hidden()
    sheet.locator(".player-trace.c0").click()
    arrive(sheet, 750_000)
    answer = {"x0": 0.5, "y0": 0.0, "x1": 1.0, "y1": 0.5}
    assert place_of(sheet, ".player-box.c0") == pytest.approx(answer, abs=NEAR)
    assert "box IoU 0.00, 0.25 s late" in sheet.inner_text(".answer.right")
    sheet.locator(".player-controls button", has_text="Play").click()
    watched.wait("document.querySelector('video').currentTime > 0.8")
    sheet.keyboard.press("k")
    sheet.locator("#clip-title", has_text="film").wait_for()


@pytest.mark.parametrize("served", [True, False])
def test_tables_and_charts_are_saved_and_a_figure_is_defined_by_one_key(
    watched: Any, serve: Callable[[Path], str], page: Path, *, served: bool
) -> None:
    sheet = watched.open_at(serve(page.parent)) if served else watched.open(page)
    board = sheet.locator("#board-0-leaderboard")
    for ending, word in (("csv", "CSV"), ("tex", "LaTeX")):
        with sheet.expect_download() as table:
            board.locator("a[download]", has_text=word).first.click()
        assert table.value.suggested_filename == f"board-0-leaderboard.{ending}"
        beside = page.parent / "tables" / f"board-0-leaderboard.{ending}"
        assert Path(table.value.path()).read_bytes() == beside.read_bytes()
    for name in ("leaderboard", "coverage"):  # one that is drawn, and one far below
        with sheet.expect_download() as chart:
            sheet.locator(f"[data-save=board-0-{name}]").press("Enter")
        assert chart.value.suggested_filename == f"board-0-{name}.svg"
        picture = ET.fromstring(Path(chart.value.path()).read_bytes())
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        assert "always-real" in "".join(picture.itertext())
        assert "var(" not in ET.tostring(picture, encoding="unicode")
    board.locator("a.define", has_text="Accuracy").first.press("Enter")
    defined = sheet.locator("#board-0-figure-accuracy")
    assert "100 * right labels / annotation rows" in defined.inner_text()
    assert sheet.evaluate("document.querySelector(':target').id") == "board-0-figure-accuracy"
    watched.wait(
        "(() => { const box = document.querySelector(':target').getBoundingClientRect();"
        " return box.top >= 0 && box.bottom <= innerHeight; })()"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_keeps_people_out(watched: Any, page: Path, scheme: str) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    sheet = watched.open(page)
    for details in sheet.locator("main details").all():
        details.evaluate("element => { element.open = true; }")
    see_all_charts(sheet)
    sheet.keyboard.press("j")
    sheet.locator("#clip .player").wait_for()
    assert watched.violations() == []


def test_a_narrow_page_scrolls_down_only(narrow: Any, page: Path) -> None:
    sheet = narrow.open(page)
    see_all_charts(sheet)
    sheet.keyboard.press("j")
    sheet.locator("#clip .player").wait_for()
    assert sheet.evaluate("document.documentElement.scrollWidth") == 360
    for details in sheet.locator("main details").all():
        details.evaluate("element => { element.open = true; }")
    assert sheet.locator("main table:not(.cards)").count() == 0
    for region in sheet.locator(".scroll, .list").all():
        assert region.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert narrow.violations() == []


def test_markup_from_strangers_is_shown_and_never_run(watched: Any, attacked: Path) -> None:
    sheet = watched.open(attacked)
    see_all_charts(sheet)
    for status in ("right", "failed"):
        sheet.keyboard.press("j")
        sheet.locator(f"#clip .answer.{status}").wait_for()
    sheet.goto(sheet.url.split("#")[0] + "#creator=" + HOSTILE)
    assert sheet.locator("main img, main script").count() == 0
    assert sheet.title() == "unreel report"
    assert "onerror" in sheet.inner_text("#clip")


def test_clips_of_the_world_are_reported_on(
    shared: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with (shared / "clips" / "manifest.csv").open(encoding="utf-8", newline="") as file:
        known = [row for row in csv.DictReader(file) if row["vcodec"] == "h264"]
    chosen = sorted(known, key=lambda row: float(row["bytes"]))
    sides = {side: [r for r in chosen if r["label"] == side][:2] for side in ("real", "generated")}
    picked = [*sides["real"], *sides["generated"]]
    bench = tmp_path / "bench"
    bench.mkdir()
    for row in picked:
        shutil.copyfile(shared / "clips" / row["file"], bench / f"{row['clip_id']}.mp4")
    makers = {r["clip_id"]: r["generator"] if r["label"] == "generated" else "" for r in picked}
    write_rows(bench, [entry(name, maker) for name, maker in makers.items()])
    told = record(tmp_path / "one.jsonl", {r["clip_id"]: "<answer>0</answer>" for r in picked})
    runs = [
        ask(tmp_path / "a", bench, protocol="reality", model="coin"),
        ask(tmp_path / "b", bench, protocol="reality", model="recorded", recorded=str(told)),
    ]
    page = write_report(runs, tmp_path / "out").page
    watched = request.getfixturevalue("watched")
    sheet = watched.open(page)
    sheet.select_option("[name=reviewer]", label="recorded:one")
    sheet.select_option("[name=show]", "wrong")
    assert sheet.locator(".clip-name").all_text_contents() == [r["clip_id"] for r in picked[:2]]
    sheet.click(".clip-row")
    sheet.locator(".player-controls button", has_text="Play").click()
    watched.wait("document.querySelector('video').currentTime > 0.2")


def see_all_charts(sheet: Any) -> None:
    """Scroll past every chart until it is drawn."""
    for chart in sheet.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg").wait_for()


def arrive(sheet: Any, at_us: int) -> None:
    """Wait until the frame of that instant is on the screen."""
    sheet.locator(f'.player[data-at-us="{at_us}"]').wait_for()


def place_of(sheet: Any, selector: str) -> dict[str, float]:
    """A rectangle of the page in parts of the stage."""
    stage, box = (sheet.locator(s).bounding_box() for s in (".player-stage", selector))
    x0, y0 = (box["x"] - stage["x"]) / stage["width"], (box["y"] - stage["y"]) / stage["height"]
    return {
        "x0": x0,
        "y0": y0,
        "x1": x0 + box["width"] / stage["width"],
        "y1": y0 + box["height"] / stage["height"],
    }
