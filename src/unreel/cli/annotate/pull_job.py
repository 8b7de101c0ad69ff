"""Implementation of `unreel annotate links`, `pull` and `status`, imported when they run."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unreel.annotation.campaign_push import write_screening_decisions
from unreel.annotation.progress import AnnotatorProgress
from unreel.annotation.studio.accounts import read_account_passwords
from unreel.annotation.studio.projects import list_annotator_project_links
from unreel.annotation.studio.pull import CampaignPullResult, pull_campaign_annotations
from unreel.annotation.studio.settings import get_studio_state_folder
from unreel.api.annotation import open_campaign
from unreel.cli.annotate.push_job import open_label_studio_and_ledger, print_project_changes
from unreel.cli.output import echo, print_json, print_message, print_table
from unreel.cli.progress import ProgressMeter
from unreel.core.estimate import Estimate, Measured
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import Progress


def print_annotator_links(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the links of a campaign, one row for each annotator and batch."""
    settings = read_environment_settings()
    passwords = read_account_passwords(get_studio_state_folder(settings, options["state"]))
    with open_label_studio_and_ledger(options, settings) as (client, ledger):
        links = list_annotator_project_links(ledger, options["campaign"], address=client.address)
    rows = [asdict(link) for link in links]
    if options["passwords"]:
        rows = [row | {"password": passwords.get(row["login"].lower(), "-")} for row in rows]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(tuple(rows[0]), rows)
    else:
        print_message(
            f"no room of {options['campaign']} is made yet: `unreel annotate push` makes them"
        )


def pull_campaign_answers(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Fetch new answers from Label Studio, print the result, and exit the process."""
    campaign, decided = options["campaign"], {}
    with open_label_studio_and_ledger(options, read_environment_settings()) as (client, ledger):
        with ProgressMeter() as meter:
            meter.tell("asking Label Studio")

            def show(so_far: CampaignPullResult) -> None:
                meter.step("annotations", Progress(done=so_far.seen))

            pulled = pull_campaign_annotations(
                client, ledger, campaign, on_project=show, everything=options["everything"]
            )
        if options["decisions"]:
            decided = write_screening_decisions(ledger, campaign, options["decisions"])
    if as_json:
        print_json({"campaign": campaign, **asdict(pulled), "decisions": decided})
    else:
        _print_pull_result(campaign, pulled, decided)
    sys.exit(1 if pulled.altered else 0)


def _print_pull_result(
    campaign: str, pulled: CampaignPullResult, decided: Mapping[str, int]
) -> None:
    echo(
        f"{campaign}: {pulled.new:,} new annotations of {pulled.seen:,} seen in {pulled.rooms} rooms"
    )
    if pulled.quarantined:
        print_message(
            f"{pulled.quarantined:,} of them cannot be used; they are stored with their reasons"
        )
    for room in pulled.gone:
        print_message(
            f"the room {room} was deleted in Label Studio; `unreel annotate push` makes it again"
        )
    print_project_changes(pulled.altered)
    for word, n in decided.items():
        print_message(f"{word}: {n:,} pieces")


def print_campaign_status(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the progress of a campaign, one row for each annotator."""
    progress = open_campaign(options["campaign"], ledger=options["ledger"]).status()
    if as_json:
        print_json(progress)
        return
    print_message(
        f"{progress.campaign} ({progress.interface}): {progress.settled:,} of {progress.tasks:,} "
        f"tasks are judged by all assigned annotators; {progress.records:,} annotations are stored"
    )
    columns = ("annotator", "done", "left", "unusable", "median_s", "per_hour", "agreement")
    print_table(columns, [_build_annotator_progress_row(person) for person in progress.people])


def _build_annotator_progress_row(person: AnnotatorProgress) -> dict[str, object]:
    return {
        "annotator": person.annotator + (" (excluded)" if person.is_excluded else ""),
        "done": person.done,
        "left": person.left,
        "unusable": person.quarantined,
        "median_s": _format_estimate(person.median_s, places=1),
        "per_hour": "-" if person.per_hour is None else f"{person.per_hour:.0f}",
        "agreement": _format_estimate(person.agreement, places=2),
    }


def _format_estimate(measured: Measured, *, places: int) -> str:
    if not isinstance(measured, Estimate):
        return f"- ({measured.why})"
    value, low, high = (
        f"{number:.{places}f}" for number in (measured.value, measured.low, measured.high)
    )
    return f"{value} ({low} to {high}, n = {measured.n})"
