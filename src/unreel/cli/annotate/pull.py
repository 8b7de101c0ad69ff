"""`unreel annotate links`, `pull` and `status`: links, answers and progress of annotators."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate import label_studio_options, ledger_option
from unreel.cli.output import json_option
from unreel.core.registry import LazyImport


@click.command()
@click.argument("campaign")
@click.option("--passwords", is_flag=True, help="Also print the passwords created by `push`.")
@label_studio_options
@ledger_option
@json_option
def links(*, as_json: bool, **options: Any) -> None:
    """Print the links of CAMPAIGN, one per annotator and batch. Send each only to its annotator.

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
    help="Fetch all answers, not only new ones. No answer is stored twice.",
)
@click.option(
    "--decisions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the screening decisions to this file, for `decisions` in `[screen]` of a curation recipe.",
)
@label_studio_options
@ledger_option
@json_option
def pull(*, as_json: bool, **options: Any) -> None:
    """Fetch new and edited answers of the annotators of CAMPAIGN, and store each once.

    Unusable answers are stored as quarantined, with a reason. If a screen or a task was changed in
    Label Studio, answers since then are quarantined, and the screen or task is restored.

    Exits with status 1 if one was changed.
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
