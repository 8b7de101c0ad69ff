"""`unreel annotate report`: write a campaign as one HTML page."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import (
    consensus_rule_options,
    label_studio_state_option,
    ledger_option,
)
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for the page.",
)
@click.option(
    "--copies",
    "media",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the clip copies that annotators saw.  [default: the folder served by `unreel annotate up`]",
)
@click.option(
    "--url",
    metavar="ADDRESS",
    help="URL of the Label Studio server, for the links from the page to tasks.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Maximum number of disagreements that are shown with a video player. The table lists all tasks.",
)
@consensus_rule_options
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed for the confidence intervals.",
)
@label_studio_state_option
@ledger_option
@json_option
def report(*, as_json: bool, **options: Any) -> None:
    """Write an HTML page about CAMPAIGN, with disagreements first.

    Each disagreement shows the clip with all boxes on one timeline, the texts, and a link to the task. The
    page continues with progress and speed, agreement, accuracy against the ground truth, and unreadable
    answers. It names the annotators; use `publish` for data that you hand on.
    """
    LazyImport("unreel.cli.annotate.report_job:write_campaign_report", "annotate").load()(
        options, as_json=as_json
    )
