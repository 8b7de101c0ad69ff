"""The page of a campaign holds what people disagree about, and says what it leaves out."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra annotate: pip install 'unreel[annotate]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

from kept_campaign import CAMPAIGN, Kept, keep_campaign
from pages.specs import read_spec
from unreel.annotation.campaign import EXCLUSION, LedgerNotice
from unreel.annotation.campaign_page import CampaignPageSettings, write_campaign_page
from unreel.annotation.campaign_state import CampaignRecords, read_campaign_records
from unreel.annotation.consensus.outcome import ConsensusRule
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.publishing.publishable_campaign import build_publishable_campaign
from unreel.annotation.quality import CampaignAgreement
from unreel.core.estimate import Estimate

RULE = ConsensusRule(quorum=2, min_overlap=2)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return keep_campaign(tmp_path_factory.mktemp("kept"), n_films=1, n_made=3)


def _specs(text: str) -> list[list[dict[str, Any]]]:
    """What the players of the page are told, task by task."""
    block = re.search(r'id="disputes">(.*?)</script>', text, re.DOTALL)
    assert block
    found: list[list[dict[str, Any]]] = json.loads(block[1])
    for spec in (spec for specs in found for spec in specs):
        read_spec(spec)
    return found


def _records(kept: Kept) -> CampaignRecords:
    with open_ledger(str(kept.ledger)) as ledger:
        return read_campaign_records(ledger, CAMPAIGN)


def test_disagreements_come_with_their_clips_and_everyones_marks(
    kept: Kept, tmp_path: Path
) -> None:
    records = _records(kept)
    figure = Estimate(value=0.4, low=0.1, high=0.7, n=9)
    edition = replace(
        build_publishable_campaign(records, RULE),
        agreement=CampaignAgreement(overall={"alpha": figure}),
    )
    link = "http://127.0.0.1:1/projects/3/data?task=4"
    links = {("ann", task.id): link for task in kept.tasks}
    written = write_campaign_page(
        edition, records, tmp_path, CampaignPageSettings(media=kept.bench, links=links)
    )
    assert (written.n_tasks, written.n_judged, written.n_disputed) == (4, 4, 3)
    assert written.n_media == 3
    text = written.page.read_text(encoding="utf-8")
    assert "0.100 to 0.700, n 9" in text
    assert "frame 99 of 72" in text
    assert link.replace("&", "&amp;") in text
    specs = _specs(text)
    assert len(specs) == 3
    (torn,) = specs[0]
    assert [track["name"] for track in torn["tracks"]] == ["known answer", "ann", "cho"]
    assert (tmp_path / torn["src"]).read_bytes() == (kept.bench / "veo-1.mp4").read_bytes()
    with (tmp_path / "tasks.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["settled"] for row in rows] == ["no", "yes", "yes", "yes"]
    assert rows[-1]["distance"] == "0.0000"


def test_a_page_without_copies_tells_the_words_alone(kept: Kept, tmp_path: Path) -> None:
    records = _records(kept)
    edition = build_publishable_campaign(records, RULE)
    written = write_campaign_page(
        edition, records, tmp_path, CampaignPageSettings(media=tmp_path / "nowhere")
    )
    assert written.n_media == 0
    assert "The clip is not available next to this page." in written.page.read_text(
        encoding="utf-8"
    )


def test_a_copy_that_leads_out_of_the_media_is_not_taken(kept: Kept, tmp_path: Path) -> None:
    outside = tmp_path / "secret.mp4"
    outside.write_bytes(b"secret")
    media = tmp_path / "media"
    media.mkdir()
    for task in kept.tasks:
        (media / task.copies[0].location).symlink_to(outside)
    records = _records(kept)
    edition = build_publishable_campaign(records, RULE)
    written = write_campaign_page(
        edition, records, tmp_path / "out", CampaignPageSettings(media=media)
    )
    assert written.n_media == 0


def test_an_excluded_annotator_is_shown_as_such_and_counts_for_nothing(
    kept: Kept, tmp_path: Path
) -> None:
    notice = LedgerNotice(
        seq=1, campaign=CAMPAIGN, kind=EXCLUSION, subject="cho", by="lead", said="guessed", at_us=1
    )
    records = replace(_records(kept), excluded={"cho": notice})
    edition = build_publishable_campaign(records, RULE)
    text = write_campaign_page(
        edition, records, tmp_path, CampaignPageSettings(media=None)
    ).page.read_text(encoding="utf-8")
    assert "guessed" in text
    with (tmp_path / "tasks.csv").open(encoding="utf-8") as file:
        assert not any("cho" in row["said"] for row in csv.DictReader(file))
