"""Clips in pages: read as one scrolls, from disk and from a server, found by filters, and listed without a script."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import write_large_run
from unreel.report.clips.clip_files import CHUNK
from unreel.report.site import write_report

N = 2 * CHUNK + 3
LAST = f"clip-{N - 1:06d}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "out" / "clips").mkdir(parents=True)
    (folder / "out" / "clips" / "0009.html").write_text("of an earlier report")
    (folder / "out" / "clips" / "mine.txt").write_text("of somebody")
    write_report([write_large_run(folder, n_answers=N)], folder / "out", media="none")
    return folder / "out"


def test_each_page_lists_its_clips_and_leads_to_the_next(report: Path) -> None:
    names = sorted(path.name for path in (report / "clips").iterdir())
    assert names == ["0001.html", "0002.html", "0003.html", "mine.txt"]
    first, last = (report / "clips" / names[i] for i in (0, 2))
    assert LAST not in first.read_text(encoding="utf-8")
    assert 'href="0002.html" rel="next"' in first.read_text(encoding="utf-8")
    assert 'rel="next"' not in last.read_text(encoding="utf-8")
    assert f"<td>{LAST}</td>" in last.read_text(encoding="utf-8")
    assert LAST not in (report / "index.html").read_text(encoding="utf-8")


def test_without_a_script_the_report_leads_to_every_page(report: Path, chromium: Any) -> None:
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto((report / "index.html").as_uri())
    page.locator("noscript a").last.click()
    assert page.locator("tbody tr").count() == 3
    page.get_by_text("Previous page").click()
    assert page.locator("tbody tr").count() == CHUNK


def test_pages_are_read_as_one_scrolls_and_searches_from_disk_and_from_a_server(
    report: Path, watched: Any, serve: Callable[[Path], str]
) -> None:
    for address in ((report / "index.html").as_uri(), serve(report) + "index.html"):
        sheet = watched.open_at(address)
        assert sheet.locator("#found").inner_text() == f"{N:,} of {N:,} clips"
        for _ in range(CHUNK // 60 + 1):
            sheet.locator("#more").scroll_into_view_if_needed()
            sheet.wait_for_timeout(50)
        watched.wait(f"document.querySelectorAll('.clip-row').length > {CHUNK}")
        sheet.locator("input[name=name]").fill(LAST)
        watched.wait("document.querySelectorAll('.clip-row').length === 1")
        assert "page=3" in sheet.locator(".clip-row a").get_attribute("href")
        sheet.locator(".clip-row a").click()
        sheet.locator("#clip .answer").wait_for()
        assert "page=3" in sheet.url
        assert sheet.locator("#found").inner_text() == f"1 of {N:,} clips"


def test_an_address_leads_to_a_clip_of_a_page_that_was_not_read(report: Path, watched: Any) -> None:
    for more in ("&page=3", "", "&page=77", "&page=2"):
        watched.open_at("about:blank")
        address = (report / "index.html").as_uri() + f"#clip={first_clip(report, page=3)}{more}"
        sheet = watched.open_at(address)
        sheet.locator("#clip .answer").wait_for()
        assert sheet.locator("#clip-title").inner_text() == f"clip-{2 * CHUNK:06d}"


def test_sorting_goes_over_all_pages_and_a_page_that_is_gone_is_told(
    report: Path, narrow: Any, tmp_path: Path
) -> None:
    sheet = narrow.open(report / "index.html")
    sheet.locator("#list thead button").first.dispatch_event("click")
    sheet.locator("#list thead button").first.dispatch_event("click")
    narrow.wait(f"document.querySelector('.clip-name')?.textContent === '{LAST}'")
    (tmp_path / "index.html").write_bytes((report / "index.html").read_bytes())
    sheet = narrow.open(tmp_path / "index.html")
    sheet.locator("input[name=name]").fill(LAST)
    narrow.wait("document.querySelector('#found').textContent.includes('could not be read')")
    narrow.complaints.clear()  # the browser's own words for a file that is not there


def test_what_a_page_brings_late_replaces_nothing_that_was_chosen_meanwhile(
    report: Path, watched: Any, serve: Callable[[Path], str]
) -> None:
    held: list[Any] = []
    watched.page.route("**/clips/*.html*", lambda route: held.insert(0, route))
    address = serve(report) + "index.html"
    watched.open_at(address)
    sheet = watched.open_at(f"{address}#clip={first_clip(report, page=3)}&page=3")
    sheet.locator(".clip-row a").nth(2).click()
    let_go(watched, held)
    assert sheet.locator("#clip-title").inner_text() == "clip-000002"
    sheet.locator("input[name=name]").fill("clip-000002")
    sheet.locator(".clip-row a").press("j")  # the next one may be on a page that is not read yet
    sheet.locator("input[name=name]").fill("")
    sheet.locator(".clip-row a").nth(4).click()
    let_go(watched, held)
    assert sheet.locator("#clip-title").inner_text() == "clip-000004"


def test_a_page_of_another_report_is_told_and_its_clips_take_their_places_once_it_is_ours(
    report: Path, watched: Any, serve: Callable[[Path], str]
) -> None:
    page = (report / "clips" / "0002.html").read_text(encoding="utf-8")
    other = page.replace('"made":"', '"made":"0')
    watched.page.route("**/clips/0002.html*", lambda route: route.fulfill(body=other))
    address = serve(report) + f"index.html#clip={first_clip(report, page=3)}&page=2"
    sheet = watched.open_at(address)
    sheet.locator("#clip-title", has_text=f"clip-{2 * CHUNK:06d}").wait_for()
    for _ in ("ascending", "descending"):
        sheet.locator("#list thead button").first.click()
    sheet.locator("#found", has_text="clips/0002.html, which is next to this page").wait_for()
    names = sheet.locator(".clip-name")
    assert names.first.inner_text() == f"clip-{CHUNK - 1:06d}"
    watched.page.unroute("**/clips/0002.html*")
    sheet.locator("#more").dispatch_event("click")
    watched.wait(f"document.querySelector('.clip-name').textContent === '{LAST}'")
    listed = names.all_text_contents()
    assert listed == [f"clip-{N - 1 - i:06d}" for i in range(len(listed))]


def first_clip(report: Path, *, page: int) -> str:
    """The id of the clip that the page of that number begins with."""
    text = (report / "clips" / f"{page:04d}.html").read_text(encoding="utf-8")
    return text.partition('"clips":[["')[2][:12]


def let_go(watched: Any, held: list[Any]) -> None:
    """Let the pages arrive that were asked for, and wait until each was heard."""
    watched.wait("document.querySelector('#frames iframe')")
    while watched.page.evaluate("document.querySelector('#frames iframe') !== null"):
        while held:
            held.pop().continue_()
        watched.page.wait_for_timeout(50)
