"""A report on the screen of a telephone does not scroll sideways."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import accuse, ask, entry, lay_out, record, trace
from unreel.report.site import write_report

WIDE = """(() => {
  const cut = one => {
    for (let at = one.parentElement; at && at !== document.body; at = at.parentElement)
      if (getComputedStyle(at).overflowX !== 'visible') return true;
    return false;
  };
  return [...document.body.querySelectorAll('*')]
    .filter(one => one.getBoundingClientRect().right > 391 && !cut(one))
    .map(one => `${one.tagName}.${one.getAttribute('class')} ${one.getBoundingClientRect().right}`).slice(0, 9);
})()"""
"""The elements that reach beyond the screen, without those inside a box that scrolls by itself."""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of reviewers with the long names that models have, over long names of clips."""
    root = tmp_path_factory.mktemp("narrow")
    names = ["a-film-of-a-street-with-a-very-long-name-0123456789-0123456789-0123456789", "veo-1"]
    entries = [entry(names[0]), entry(names[1], "Veo", traces=[trace("other")])]
    bench = lay_out(root / "bench-with-a-long-name-of-its-own-0123456789", entries)
    said = {names[0]: accuse(why="word" * 60), names[1]: "REAL"}
    runs = []
    for number in range(2):
        told = record(
            root / f"organisation-of-models-video-reasoner-72b-instruct-{number}.jsonl", said
        )
        place = root / f"run-{number}"
        runs.append(ask(place, bench, protocol="trace", model="recorded", recorded=str(told)))
    return write_report(runs, root / "out").page.parent


def test_no_page_of_a_report_scrolls_sideways_at_390_pixels(out: Path, watched: Any) -> None:
    pages = sorted(out.rglob("*.html"))
    assert len(pages) >= 3
    for file in pages:
        watched.page.set_viewport_size({"width": 390, "height": 800})
        sheet = watched.open(file)
        sheet.wait_for_timeout(500)
        width = sheet.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, (file.name, sheet.evaluate(WIDE))
