"""A report on paper: everything that the screen can show is there, dark on white, and nothing is cut."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from pdf import n_sheets, words_of
from report.reported import accuse, ask, entry, lay_out, record, trace
from unreel.report.site import write_report

A4_PX = 703
"""Width of a sheet of A4 between its margins."""
ENTRIES = [
    *(entry(f"film-{i}") for i in range(2)),
    *(entry(f"veo-{i}", "Veo", traces=[trace("object-merging")]) for i in range(10)),
    *(entry(f"sora-{i}", "Sora", traces=[trace("other")]) for i in range(2)),
]
SAID = {row["name"]: accuse() if i % 3 else "REAL" for i, row in enumerate(ENTRIES)}
TOLD = """(selector) => {
  const said = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    const style = getComputedStyle(node);
    const unseen = style.display === 'none' || style.clipPath !== 'none';
    return unseen ? '' : [...node.childNodes].map(said).join('');
  };
  return [...document.querySelectorAll(selector)].map((node) => said(node).replace(/\\s+/g, ''));
}"""
CUT = """() => [...document.querySelectorAll('main *')]
  .filter((one) => getComputedStyle(one).clipPath === 'none' && !one.closest('svg, .unseen'))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1
    || (getComputedStyle(one).overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 1))
  .map((one) => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on one recorded reviewer and a floor asked in so many ways that tables are wide."""
    root = tmp_path_factory.mktemp("print")
    bench = lay_out(root / "bench", ENTRIES)
    told = record(root / "seer.jsonl", SAID)
    ways = [{"sampling": f"uniform-{n}"} for n in range(1, 11)]
    runs = [
        ask(root / "a", bench, protocol="trace", model="recorded", recorded=str(told)),
        ask(root / "b", bench, protocol="trace", model="coin", condition=ways),
    ]
    return write_report(runs, root / "out").page


@pytest.mark.slow
def test_a_printed_report_holds_every_table_chart_and_clip(narrow: Any, page: Path) -> None:
    sheet = narrow.open(page)
    closed = sheet.locator("details:not([open])").count()
    printed = sheet.pdf(format="A4")
    words = words_of(printed)
    assert n_sheets(printed) > 3
    for kind in (
        "td",
        "th",
        "caption",
        "figcaption",
        "h2",
        "h3:not(#clip-title)",
        "summary",
        "dd li",
        "#list td a",
    ):
        told = sheet.evaluate(TOLD, f"main {kind}")
        assert told, kind
        assert [each for each in told if each not in words] == []
    drawn = sheet.evaluate(TOLD, "[data-chart] svg text")
    assert sheet.locator("[data-chart]:not(:has(svg))").count() == 0
    assert [each for each in drawn if "…" not in each and each not in words] == []
    assert sheet.locator("details:not([open])").count() == closed
    assert sheet.locator("main table:not(.cards)").count() == 0  # a phone again


def test_paper_tells_which_clips_were_chosen(watched: Any, page: Path) -> None:
    sheet = watched.open(page)
    sheet.select_option("[name=creator]", "Sora")
    sheet.select_option("[name=show]", "wrong")
    sheet.locator(".clip-name", has_text="sora-0").click()
    sheet.locator("#clip .player").wait_for()
    words = words_of(sheet.pdf(format="A4"))
    assert "Chosen:Showwrongonly,CreatorSora." in words
    assert "2of14clips" in words
    assert "Truthgenerated" in words


def test_paper_is_light_and_as_wide_as_what_stands_on_it(narrow: Any, page: Path) -> None:
    sheet = narrow.open(page)
    colours = "['--ink', '--card'].map((n) => getComputedStyle(document.body).getPropertyValue(n))"
    dark = sheet.evaluate(colours)
    sheet.set_viewport_size({"width": A4_PX, "height": 1000})
    sheet.emulate_media(media="print", color_scheme="dark")
    sheet.evaluate("dispatchEvent(new Event('beforeprint'))")
    narrow.wait("!document.querySelector('[data-chart]:not([data-drawn])')")
    assert sheet.evaluate(colours) == ["#191c22", "#ffffff"] != dark
    assert sheet.locator("main table.cards").count() > 0
    assert sheet.evaluate(CUT) == []


def test_the_page_of_one_reviewer_is_printed_whole(watched: Any, page: Path) -> None:
    sheet = watched.open(page.parent / "reviewers" / "0.html")
    words = words_of(sheet.pdf(format="A4"))
    told = sheet.evaluate(TOLD, "main td")
    assert told
    assert [each for each in told if each not in words] == []
