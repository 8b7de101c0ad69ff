"""The page of a campaign in a real browser: looked at, opened, on a phone, on paper, and attacked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from kept_campaign import CAMPAIGN, keep_campaign
from report.reported import HOSTILE
from unreel.annotation.campaign import QuarantineReason, SubmissionQuarantine, TraceAnswer
from unreel.annotation.campaign_page import CampaignPageSettings, write_campaign_page
from unreel.annotation.campaign_state import CampaignRecords, read_campaign_records
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.publishing.publishable_campaign import build_publishable_campaign

RULE = ConsensusRule(quorum=2, min_overlap=2)
BOXES = "[...document.querySelectorAll('#task-0 .player-box')].filter(b => !b.hidden).length"


def _hostile(records: CampaignRecords) -> CampaignRecords:
    """The same, where every text that an annotator or a benchmark can write is markup."""
    standing = {}
    for by, record in records.current.items():
        outcome = record.outcome
        if isinstance(outcome, TraceAnswer):
            traces = tuple(replace(trace, explanation=HOSTILE) for trace in outcome.traces)
            outcome = replace(outcome, traces=traces)
        standing[by] = replace(record, outcome=outcome)
    broken = replace(
        next(iter(standing.values())),
        outcome=SubmissionQuarantine(QuarantineReason.MALFORMED, HOSTILE),
    )
    tasks = {
        id_: replace(task, names=(f"{task.names[0]} </script>{HOSTILE}",))
        for id_, task in records.tasks.items()
    }
    campaign = replace(records.campaign, guidelines=HOSTILE)
    return replace(records, current=standing, quarantined=(broken,), tasks=tasks, campaign=campaign)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page, and beside it the same campaign with hostile words."""
    root = tmp_path_factory.mktemp("campaign")
    kept = keep_campaign(root, n_films=1, n_made=3)
    with open_ledger(str(kept.ledger)) as ledger:
        records = read_campaign_records(ledger, CAMPAIGN)
    for name, told in (("page", records), ("hostile", _hostile(records))):
        edition = build_publishable_campaign(told, RULE)
        write_campaign_page(edition, told, root / name, CampaignPageSettings(media=kept.bench))
    return root


def test_the_first_disagreement_is_open_with_everyones_boxes_on_the_clip(
    folder: Path, watched: Any
) -> None:
    page = watched.open(folder / "page" / "index.html")
    watched.wait("document.querySelector('#task-0 .player')?.dataset.atUs > 0")
    watched.wait(f"{BOXES} >= 2")
    names = page.locator("#task-0 .player-who").all_inner_texts()
    assert names == ["known answer", "ann", "cho"]
    assert page.locator(".player").count() == 1, "clips of closed tasks are not loaded"
    page.locator("#task-1 summary").click()
    watched.wait("document.querySelectorAll('.player').length === 2")
    assert watched.violations() == []


def test_a_phone_shows_all_of_it_without_scrolling_sideways(folder: Path, narrow: Any) -> None:
    page = narrow.open(folder / "page" / "index.html")
    narrow.wait("document.querySelector('#task-0 .player')?.dataset.atUs > 0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert narrow.violations() == []


def test_hostile_words_are_shown_as_words(folder: Path, watched: Any) -> None:
    page = watched.open(folder / "hostile" / "index.html")
    watched.wait("document.querySelector('#task-0 .player')?.dataset.atUs > 0")
    assert page.title() == f"{CAMPAIGN}: campaign"
    assert page.locator("main img").count() == 0
    assert "onerror" in page.locator("#task-0 .said").first.inner_text()
    assert "onerror" in page.locator("#unreadable ~ ul").inner_text()


def test_paper_has_every_disagreement(folder: Path, watched: Any) -> None:
    page = watched.open(folder / "page" / "index.html")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details.dispute[open]").count() == 3
    assert page.locator("#task-2 .words li").first.is_visible()
    assert not page.locator("#task-0 .player-controls").first.is_visible()
