"""A large report: small enough to send, and quick to open."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra report: pip install 'unreel[report]'")

from report.reported import write_large_run
from unreel.report.site import write_report

LIMIT_S = 3.0


@pytest.mark.volume
@pytest.mark.parametrize("n_answers", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_answers_open_within_three_seconds_of_work(
    tmp_path: Path, request: pytest.FixtureRequest, n_answers: int
) -> None:
    written = write_report([write_large_run(tmp_path, n_answers=n_answers)], tmp_path / "out")
    assert (written.n_clips, written.n_answers, written.n_media) == (n_answers, n_answers, 0)
    assert written.size_bytes < 20e6
    watched = request.getfixturevalue("watched")
    # Ticks of the page's own thread: a busy machine makes them come later, not more of them.
    session = watched.page.context.new_cdp_session(watched.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    sheet = watched.open(written.page)
    sheet.locator("[data-drawn]").first.wait_for()
    sheet.locator(".clip-row").first.wait_for(state="attached")
    assert 0 < seconds_of_work(session) < LIMIT_S
    sheet.locator(".clip-row").nth(30).click()
    sheet.locator("#clip .answer").wait_for()


def seconds_of_work(session: Any) -> float:
    """What the page's thread has worked since it was opened."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))
