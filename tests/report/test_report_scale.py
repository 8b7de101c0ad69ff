"""A large report: small enough to send, and quick to open."""

import time
from pathlib import Path

import pytest

from pace import slowness

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from report.reported import write_large_run
from stalls import Stalls
from unreel.report.site import write_report

LIMIT_S = 3.0


@pytest.mark.alone
def test_ten_thousand_answers_open_within_three_seconds(
    tmp_path: Path, request: pytest.FixtureRequest, stalls: Stalls
) -> None:
    written = write_report([write_large_run(tmp_path, n_answers=10_000)], tmp_path / "out")
    assert (written.n_clips, written.n_answers, written.n_media) == (10_000, 10_000, 0)
    assert written.size_bytes < 20e6
    watched = request.getfixturevalue("watched")
    stalled_s, began_s = stalls.seconds(), time.monotonic()
    sheet = watched.open(written.page)
    sheet.locator("[data-drawn]").first.wait_for()
    sheet.locator(".clip-row").first.wait_for(state="attached")
    took_s = time.monotonic() - began_s
    assert took_s < LIMIT_S * slowness() + stalls.seconds() - stalled_s
    sheet.locator(".clip-row").nth(30).click()
    sheet.locator("#clip .answer").wait_for()
