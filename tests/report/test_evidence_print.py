"""The evidence page on paper: what the screen shows, folds or plays is all there, in light colours."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pdf import n_sheets, words_of
from report.reviewed import review_with, trace_text, write
from synthesise import ClipRecipe, synthesise
from unreel.core.failure import Failure, FailureReason
from unreel.report.review.provenance import FileOriginCheck, FileOriginCheckOutcome

WHY = "the ball bends in a way that takes many words to tell, more than a mark on a timeline has room for"
SAID = {
    "recorded:one": {"trace": trace_text((96, 54, 192, 162), start_s=1.25, why=WHY)},
    "recorded:other": {"trace": "REAL"},
    "recorded:gone": {"trace": "REAL"},
}

CLAIM = "The words Sora can be read in its lower right corner, as on clips made with Sora."
MARKED = FileOriginCheck(
    name="Visible marks", found=FileOriginCheckOutcome.SOMETHING, says="Sora stays.", claim=CLAIM
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("evidence")
    file = out / "ball.mp4"
    file.write_bytes(synthesise(ClipRecipe(width=384, height=216, n_frames=48, seed=3)))
    review = review_with(file, SAID)
    lost = Failure(FailureReason.RATE_LIMITED, "status 429")
    silent = replace(review.opinions[2], outcome=lost, verdict=None)
    opinions = (*review.opinions[:2], silent)
    return write(replace(review, opinions=opinions), out, note="A note.", checks=MARKED).page


def opened(watched, page: Path):
    sheet = watched.open(page)
    watched.wait("document.querySelector('.player').dataset.atUs === '1250000'")
    return sheet


def test_paper_has_every_word(watched, page) -> None:
    sheet = opened(watched, page)
    printed = sheet.pdf(format="A4")
    words = words_of(printed)
    assert 3 <= n_sheets(printed) <= 8
    for told in (
        "1 of 3 reviewers says this clip looks AI-generated, from 1.25 s",
        CLAIM,
        "Verdicts",
        "Findings in the file itself",
        WHY,
        "calls it real",
        "rate-limited: status 429",
        "Decide whether the video",  # behind a heading on the screen
        "frame 42",
        "not forensic proof",
    ):
        assert "".join(told.split()) in "".join(words.split()), told
    # As it was before: folded again.
    assert sheet.locator("details[open]").count() == 0


def test_paper_is_light_and_shows_the_frame_with_its_box(watched, page) -> None:
    watched.page.emulate_media(media="print", color_scheme="dark")
    sheet = opened(watched, page)
    paper, ink = sheet.evaluate(
        "[document.documentElement, document.body].map((e, i) =>"
        " getComputedStyle(e)[i ? 'color' : 'backgroundColor'])"
    )
    assert paper == "rgb(255, 255, 255)"
    assert max(int(part) for part in ink[4:-1].split(",")) < 60
    assert not sheet.get_by_role("button", name="Play").is_visible()
    assert sheet.locator(".player-box:visible").count() == 1
    stills = sheet.locator("#stills ~ figure img")
    assert stills.count() == 2
    assert all(np.array(stills.evaluate_all("all => all.map((one) => one.naturalWidth)")) > 0)
    width = sheet.evaluate("document.documentElement.scrollWidth")
    assert width <= sheet.evaluate("window.innerWidth")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_a_claim_and_a_failure_keep_nobody_out(watched, page, scheme) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    sheet = opened(watched, page)
    assert sheet.locator(".player-none.failed").count() == 1
    assert sheet.locator(".claim").inner_text() == CLAIM
    assert watched.violations() == []
