"""`unreel annotate report`: a campaign on one page."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option, rule_options, state_option
from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("campaign")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the page.",
)
@click.option(
    "--copies",
    "media",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the copies that annotators saw.  [default: where `up` serves them from]",
)
@click.option("--url", metavar="ADDRESS", help="Of Label Studio, for ways back to the tasks.")
@click.option(
    "--most",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Disagreements on the page; its table has all tasks.",
)
@rule_options
@click.option("--seed", default=0, show_default=True, help="Of intervals.")
@state_option
@ledger_option
@json_option
def report(*, as_json: bool, **given: Any) -> None:
    """Write CAMPAIGN as one page: what people disagree about first.

    Each disagreement has its clip with everyone's boxes on one timeline, what they wrote, and a way back
    to the task. Then come progress and speed, agreement, how people do against the truth, and what could
    not be read. The page names annotators: `publish` writes what may be handed on.
    """
    Lazy("unreel.cli.annotate_report_job:report_campaign", "annotate").load()(
        given, as_json=as_json
    )
