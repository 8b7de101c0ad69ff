"""`unreel annotate links`, `pull` and `status`: links, answers and progress of annotators."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import label_studio_options, ledger_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option(
    "--passwords",
    is_flag=True,
    help="Also print the passwords that `unreel annotate push` created for annotators.",
)
@label_studio_options
@ledger_option
@json_option
def links(*, as_json: bool, **options: Any) -> None:
    """Print the links of CAMPAIGN, one per annotator and batch. Send each link only to its annotator.

    A link asks for the login and then shows one task after the other. It contains no password; use
    --passwords to print those created by `push`.
    """
    LazyImport("unreel.cli.annotate.pull_job:print_annotator_links", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Fetch all answers, not only new and edited ones. Each answer is stored once.",
)
@click.option(
    "--decisions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the majority decisions of a screening campaign. A curation recipe reads it as `decisions` in [screen].",
)
@label_studio_options
@ledger_option
@json_option
def pull(*, as_json: bool, **options: Any) -> None:
    """Fetch the annotators' new and edited answers of CAMPAIGN from Label Studio, and store each once.

    Unusable answers are stored as quarantined, with a reason. If a screen or a task was changed in
    Label Studio, answers since then are quarantined, and the screen or task is restored.

    Exits with status 1 if a screen or a task was changed.
    """
    LazyImport("unreel.cli.annotate.pull_job:pull_campaign_answers", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@ledger_option
@json_option
def status(*, as_json: bool, **options: Any) -> None:
    """Print the progress, speed and agreement of each annotator of CAMPAIGN.

    Reads only the ledger: run `pull` first.
    """
    LazyImport("unreel.cli.annotate.pull_job:print_campaign_status", "annotate").load()(
        options, as_json=as_json
    )
