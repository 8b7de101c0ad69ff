"""Implementation of `unreel annotate report`, imported when it runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unreel.annotation.campaign_page import (
    CampaignPageSettings,
    build_judged_task_urls,
    write_campaign_page,
)
from unreel.annotation.campaign_state import read_campaign_records
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.publishing.publishable_campaign import (
    PublishableCampaign,
    build_annotator_scoring_input,
    build_publishable_campaign,
    score_annotators,
)
from unreel.annotation.studio.client import CLIPS, find_studio_connection, get_studio_state_folder
from unreel.api.annotation import build_consensus_rule
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.human_scores import AnnotatorScoreRow
from unreel.benchmarks.loader import open_benchmark
from unreel.cli.annotate import select_consensus_options
from unreel.cli.output import echo, print_json, print_message
from unreel.core.errors import InvalidSettingError, UnreelError
from unreel.core.settings import read_environment_settings


def write_campaign_report(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the HTML page of a campaign, and print its path."""
    settings = read_environment_settings()
    folder = get_studio_state_folder(settings, options["state"])
    with open_ledger(resolve_ledger_url(options["ledger"], settings)) as ledger:
        records = read_campaign_records(ledger, options["campaign"])
        address = options["url"] or _find_label_studio_url(folder)
        links = (
            build_judged_task_urls(ledger, records, address=address.rstrip("/")) if address else {}
        )
    edition = build_publishable_campaign(
        records, build_consensus_rule(**select_consensus_options(options)), seed=options["seed"]
    )
    page_settings = CampaignPageSettings(
        media=options["media"] or folder / CLIPS,
        links=links,
        people=_compute_annotator_scores(edition, seed=options["seed"]),
        most=options["most"],
        seed=options["seed"],
    )
    written = write_campaign_page(edition, records, options["out"], page_settings)
    if as_json:
        print_json(written)
        return
    print_message(
        f"{written.n_judged} of {written.n_tasks} tasks judged, {written.n_settled} settled, "
        f"{written.n_disputed} with disagreement"
    )
    if written.n_shown and not written.n_media:
        print_message("the page has no clips: name the folder of the copies with --copies")
    echo(written.page)


def _find_label_studio_url(folder: Path) -> str:
    try:
        return find_studio_connection(folder).address
    except InvalidSettingError:
        return ""


def _compute_annotator_scores(
    campaign: PublishableCampaign, *, seed: int
) -> tuple[AnnotatorScoreRow, ...]:
    """Return the scores of all annotators of a campaign; empty if its benchmark is missing."""
    names = {name for task in campaign.tasks.values() for name in task.names}
    try:
        rows = open_benchmark(Path(campaign.campaign.benchmark))
        entries = {row.name: row for row in rows if isinstance(row, Entry) and row.name in names}
    except UnreelError as error:
        print_message(f"no annotator is compared with the ground truth: {error}")
        return ()
    return score_annotators(build_annotator_scoring_input(campaign, entries, seed=seed))
