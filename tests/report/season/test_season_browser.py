"""A season's pages in a real browser: looked at, opened cell by cell, played, printed and attacked."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pace import slowness

pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from footage import film, write_clip
from pdf import words_of
from report.season.seasons import ABILITIES, CREATORS, HOSTILE, LONG, season
from report.test_report_print import CUT, TOLD
from unreel.arena.boards.ablations import measure_ablation_effects, measure_reviewer_biases
from unreel.pages.player import PlayerSpec
from unreel.report.season.page_data import SeasonClipDetails, SeasonPageData, get_entrant_page_name
from unreel.report.season.site import write_season_site

A4_PX = 703
LIMIT_S = 3.0
LARGEST_BYTES = 5e6


def everything(name: str = "spring", **told: Any) -> SeasonPageData:
    """A season with ablations and all else that a page can show."""
    abilities = {who: ABILITIES[who] for who in ("coin", "gpt-5.2", "seer", "tiny")}
    more = {"abilities": abilities, "creators": CREATORS[2:], "conditions": ("silent", "heard")}
    shown = season(name, n_scenes=5, **more, **told)
    return replace(
        shown,
        ablations=measure_ablation_effects(shown.answer_tables),
        leanings=measure_reviewer_biases(shown.answer_tables[0]),
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A season; the first clip of one creator can be watched."""
    root = tmp_path_factory.mktemp("season")
    now = everything(notes=("seer and tiny err alike.",))
    clip = "scene-0000/Wan 2.2"
    (root / "media").mkdir()
    (root / "media" / "one.mp4").write_bytes(write_clip(film(1)))
    spec = PlayerSpec(
        src="../media/one.mp4",
        width=192,
        height=128,
        duration_us=666_667,
        first_us=0,
        instants=(),
        shown_us=(),
        tracks=(),
        title=clip,
    )
    watched = {**now.clips, clip: SeasonClipDetails(player=spec)}
    return write_season_site(replace(now, clips=watched), root).page


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A season in which every text that a stranger can write is markup, turned round, or long."""
    names = (f"maker {HOSTILE}", f"maker {LONG}", "صانع", "$--accent")
    shown = season(
        HOSTILE,
        abilities={f"judge {HOSTILE}": 1.0, LONG: 0.5, "__proto__": 0.2},
        creators=names,
        n_scenes=4,
        conditions=(HOSTILE, "two"),
        notes=(HOSTILE,),
        plan=((HOSTILE, HOSTILE),),
        creation_failures={names[0]: {HOSTILE: HOSTILE}},
    )
    words = {
        (play.condition, reviewer, clip): HOSTILE
        for play in shown.answer_tables
        for reviewer in play.reviewers
        for clip in play.clips.names
    }
    told = replace(
        shown,
        words=words,
        facts=((HOSTILE, HOSTILE),),
        ablations=measure_ablation_effects(shown.answer_tables),
    )
    root = tmp_path_factory.mktemp("attacked")
    return write_season_site(told, root).page


def see_all_charts(sheet: Any) -> None:
    """Scroll past every chart until it is drawn."""
    for chart in sheet.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg").wait_for()


def test_a_cell_opens_its_clips_by_keyboard_and_a_clip_opens_the_player(
    watched: Any, page: Path
) -> None:
    sheet = watched.open(page)
    row = sheet.locator("#c0-matrix tbody tr", has_text="gpt-5.2")
    row.locator('td[data-label="Wan 2.2"] a').press("Enter")
    sheet.wait_for_url(f"**/{get_entrant_page_name('creator', 'Wan 2.2')}.html#*")
    opened = sheet.locator("#answers details[open]")
    assert opened.count() == 1
    assert "gpt-5.2, silent" in opened.locator("summary").inner_text()
    opened.locator("a", has_text="scene-0000/Wan 2.2").press("Enter")
    sheet.locator("#player .player").wait_for()
    assert sheet.inner_text("#watch-title") == "scene-0000/Wan 2.2"
    assert "says " in sheet.inner_text("#player")  # each reviewer's answer below the clip
    watched.wait("document.querySelector('video').readyState >= 2")
    sheet.locator(".eyebrow a").press("Enter")
    sheet.locator("#c0-matrix").wait_for()
    sheet.locator("#c0-reviewers td a", has_text="seer").first.click()
    sheet.locator("h1", has_text="seer").wait_for()
    assert sheet.locator("#badge img").evaluate("one => one.naturalWidth") > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_keeps_people_out(watched: Any, page: Path, scheme: str) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    sheet = watched.open(page)
    see_all_charts(sheet)
    for details in sheet.locator("main details").all():
        details.evaluate("element => { element.open = true; }")
    assert watched.violations() == []
    name = ("creator", "Wan 2.2") if scheme == "light" else ("reviewer", "seer")
    watched.open(page.parent / "entrants" / f"{get_entrant_page_name(*name)}.html")
    assert watched.violations() == []


def test_a_narrow_page_scrolls_down_and_the_matrix_in_its_own_box(narrow: Any, page: Path) -> None:
    sheet = narrow.open(page)
    see_all_charts(sheet)
    assert sheet.evaluate("document.documentElement.scrollWidth") == 360
    assert sheet.locator("main table:not(.cards):not(.heat)").count() == 0
    box = sheet.locator(".scroll:has(.heat)").first
    assert box.evaluate("one => one.scrollWidth > one.clientWidth && one.tabIndex === 0")
    box.evaluate("one => { one.scrollLeft = 200; }")
    head = box.locator("tbody th").first.bounding_box()
    assert abs(head["x"] - box.bounding_box()["x"]) < 4  # whose row it is stays in sight
    sheet = narrow.open(
        page.parent / "entrants" / f"{get_entrant_page_name('creator', 'Wan 2.2')}.html"
    )
    assert sheet.evaluate("document.documentElement.scrollWidth") == 360


def test_words_of_strangers_are_shown_and_never_run(narrow: Any, attacked: Path) -> None:
    sheet = narrow.open(attacked)
    see_all_charts(sheet)
    assert sheet.locator("main img, main script, main [onerror]").count() == 0
    assert sheet.locator("h1").inner_text().startswith('Season "><img src=x')
    assert sheet.evaluate("document.documentElement.scrollWidth") == 360
    assert "49" not in sheet.locator("h1").inner_text()
    pages = sorted((attacked.parent / "entrants").glob("*.html"))
    assert len(pages) == 3 + 4 + 2 + 1
    for file in pages:
        sheet = narrow.open(file)
        assert sheet.locator("main script, main [onerror]").count() == 0
        assert sheet.evaluate("document.documentElement.scrollWidth") == 360


def test_paper_holds_every_column_and_chart(watched: Any, page: Path) -> None:
    sheet = watched.open(page)
    words = words_of(sheet.pdf(format="A4"))
    for kind in ("td", "th", "caption", "figcaption", "h2", "h3", "summary", "dd"):
        told = sheet.evaluate(TOLD, f"main {kind}")
        assert told, kind
        assert [each for each in told if each not in words] == []
    assert sheet.locator("[data-chart]:not(:has(svg))").count() == 0
    sheet.set_viewport_size({"width": A4_PX, "height": 1000})
    sheet.emulate_media(media="print", color_scheme="dark")
    sheet.evaluate("dispatchEvent(new Event('beforeprint'))")
    watched.wait("!document.querySelector('[data-chart]:not([data-drawn])')")
    assert sheet.evaluate(CUT) == []
    own = watched.open(
        page.parent / "entrants" / f"{get_entrant_page_name('creator', 'Wan 2.2')}.html"
    )
    words = words_of(own.pdf(format="A4"))
    told = own.evaluate(TOLD, "main td")
    assert [each for each in told if each not in words] == []


def test_fifty_by_fifty_is_small_opens_at_once_and_is_printed_whole(
    watched: Any, tmp_path: Path
) -> None:
    many = season(
        abilities={f"reviewer-{n:02}": n / 40 for n in range(50)},
        creators=tuple(f"creator-{n:02}" for n in range(50)),
        n_scenes=20,
    )
    written = write_season_site(many, tmp_path)
    assert written.size_bytes < LARGEST_BYTES
    began_s = time.monotonic()
    sheet = watched.open(written.page)
    sheet.locator("[data-drawn]").first.wait_for()
    assert time.monotonic() - began_s < LIMIT_S * slowness()
    assert sheet.locator("#c0-matrix td").count() == 50 * 52
    sheet.set_viewport_size({"width": A4_PX, "height": 1000})
    sheet.emulate_media(media="print")
    sheet.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert sheet.evaluate(CUT) == []
