"""`unreel annotate links`, `pull` and `status`: what annotators are sent, say, and have left."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option, studio_options
from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@click.argument("campaign")
@click.option("--passwords", is_flag=True, help="Print the passwords that were made here too.")
@studio_options
@ledger_option
@json_option
def links(*, as_json: bool, **given: Any) -> None:
    """Print the links of CAMPAIGN: one for each annotator and batch, to be sent to nobody else.

    A link asks for the login and then shows one task after the other. No password is in it; those that
    were made here are told with --passwords.
    """
    Lazy("unreel.cli.annotate_pull_job:print_links", "annotate").load()(given, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Fetch again what was seen before; nothing is kept twice.",
)
@click.option(
    "--decisions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what people decided of a queue, for `decisions` of `[screen]` in a recipe.",
)
@studio_options
@ledger_option
@json_option
def pull(*, as_json: bool, **given: Any) -> None:
    """Fetch what annotators of CAMPAIGN saved or edited since the last time, and keep each of it once.

    What cannot be used is kept too, as quarantined with its reason. Where somebody changed a screen or a
    task, answers given since are quarantined, and the screen or task is restored.

    Ends with status 1 where somebody did.
    """
    Lazy("unreel.cli.annotate_pull_job:pull_answers", "annotate").load()(given, as_json=as_json)


@click.command()
@click.argument("campaign")
@ledger_option
@json_option
def status(*, as_json: bool, **given: Any) -> None:
    """Tell of each annotator of CAMPAIGN what is done and left, how fast, and how far others agree.

    It reads the ledger alone: `pull` first.
    """
    Lazy("unreel.cli.annotate_pull_job:print_status", "annotate").load()(given, as_json=as_json)
