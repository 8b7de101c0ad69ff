"""`unreel annotate up`: Label Studio, for as long as the command runs."""

from pathlib import Path
from typing import Any

import click

from unreel.cli.annotate_options import ledger_option, state_option
from unreel.cli.output import json_option
from unreel.core.registry import Lazy


@click.command()
@click.option(
    "--program",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Label Studio's program, in an environment of its own.  [default: label-studio on the path]",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. Put a server with TLS before it where others shall reach it.",
)
@state_option
@ledger_option
@json_option
def up(*, as_json: bool, **given: Any) -> None:
    """Start Label Studio on the ledger's PostgreSQL, in a database beside it, or on a file for a trial.

    Only this machine reaches it, nobody signs up without a link, and nothing is told to its makers. Runs
    until Ctrl-C or SIGTERM, then ends with status 0 and leaves no process behind.
    """
    Lazy("unreel.cli.annotate_up_job:run_studio", "annotate").load()(given, as_json=as_json)
